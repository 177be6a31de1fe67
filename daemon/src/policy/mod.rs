//! The policy of this daemon: its rules, the settings of its sessions, and the judgement of a call by them.

mod resolve;
mod rule_dir;
mod session_defaults;
mod sessions;
mod suggest;

pub use session_defaults::SessionDefaults;
pub use sessions::{DamagedSession, SessionError, SessionSettings, Sessions};
pub use suggest::{RefusedProcess, Suggestion, suggest};

use crate::clock::{mono_ms, retention_ms, wall_ms};
use crate::config::Config;
use crate::config::policy::{Profile, find_profile};
use crate::events::{EventTime, Journal, NewEvent};
use crate::spec::SpawnRequest;
use resolve::JobPath;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use toold_policy::{
    ApprovalMode, Call, DangerAction, Judgement, Rule, RuleError, Rules, SessionPolicy, Unmatched, Verdict, What,
};
use toold_proto::event::{Denied, EventFields, PolicyLoaded};
use toold_proto::params::ExecParams;
use toold_proto::policy as wire;
use toold_proto::policy::{ApprovalPolicy, DangerPolicy, PolicyReport, RuleRef};

/// The longest command in an event, in characters.
const MAX_EVENT_COMMAND: usize = 2000;

/// Judges calls by the rules and the settings of their sessions.
pub struct Judge {
    /// The directory of rule files. None: there is no config directory.
    dir: Option<PathBuf>,
    rules: RwLock<Arc<Rules>>,
    /// Held while files are read or written: two changes come one after the other.
    loading: Mutex<()>,
    pub sessions: Sessions,
    journal: Arc<Journal>,
}

/// The caller of a judged call, for the event of a refusal.
#[derive(Debug, Clone, Copy)]
pub struct JudgedCaller {
    pub uid: u32,
    pub pid: i32,
}

/// A call of a tool that is refused.
pub struct RefusedCall<'a> {
    /// The tool and its arguments.
    pub what: &'a str,
    pub cwd: Option<&'a str>,
    pub session_key: Option<&'a str>,
    pub task_id: Option<&'a str>,
}

/// A call that the policy refuses.
#[derive(Debug)]
pub struct PolicyRefusal {
    pub reason: String,
    /// The rule that denies it, if one does.
    pub rule: Option<RuleRef>,
}

/// A call that may start, or that a person must be asked about.
#[derive(Debug)]
pub enum Admitted {
    /// It may start. A look at it was enough if there is no judgement.
    Allow(Option<Box<Judgement>>),
    Ask(Box<Judgement>),
}

impl Judge {
    /// Reads rules and sessions. A bad rule file does not keep the daemon from starting: commands that it may have judged are
    /// asked about. Returns descriptions of damage.
    pub fn open(config_file: Option<&Path>, state_dir: &Path, journal: Arc<Journal>) -> (Judge, Vec<String>) {
        let dir = config_file.and_then(Path::parent).map(|dir| dir.join("rules"));
        let (sessions, damage) = Sessions::open(state_dir.join("sessions"));
        let loaded = dir.as_deref().map(rule_dir::load);
        let rules = Arc::new(loaded.as_ref().map(|loaded| loaded.rules.clone()).unwrap_or_default());
        let judge = Judge { dir, rules: RwLock::new(rules.clone()), loading: Mutex::new(()), sessions, journal };
        if let Some(loaded) = loaded.filter(|loaded| !loaded.rules.files.is_empty() || !loaded.errors.is_empty()) {
            for error in &loaded.errors {
                tracing::error!(%error, "a rule file is refused; commands that it may have judged are asked about");
            }
            judge.publish_loaded(&rules, &loaded.errors);
        }
        (judge, damage)
    }

    /// Returns the rules in force.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    fn has_rules(&self) -> bool {
        !self.rules.read().unwrap_or_else(|poisoned| poisoned.into_inner()).is_empty()
    }

    /// Reads the rule files again. If one is bad, the old rules stay.
    pub fn reload(&self) -> Result<wire::PolicyReloadResult, RuleError> {
        let _loading = self.loading.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.load()
    }

    /// Appends rules to `approved.toml` and puts them in force.
    pub fn append_approved(&self, rules: &[Rule]) -> Result<(), RuleError> {
        let _loading = self.loading.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(dir) = &self.dir else {
            let why = "there is no config directory".into();
            return Err(RuleError { file: toold_policy::APPROVED_FILE.into(), index: None, example: None, why });
        };
        rule_dir::append_approved(dir, rules)?;
        self.load().map(|_| ())
    }

    fn load(&self) -> Result<wire::PolicyReloadResult, RuleError> {
        let mut loaded = match &self.dir {
            Some(dir) => rule_dir::load(dir),
            None => rule_dir::LoadedRules { rules: Rules::default(), errors: Vec::new() },
        };
        if !loaded.errors.is_empty() {
            self.publish_loaded(&self.rules(), &loaded.errors);
            return Err(loaded.errors.swap_remove(0));
        }
        let rules = Arc::new(loaded.rules);
        *self.rules.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = rules.clone();
        self.publish_loaded(&rules, &[]);
        Ok(wire::PolicyReloadResult { rules: rules.count() as u64, files: rules.files.len() as u64 })
    }

    /// Describes the rules in force for `daemon.info`.
    pub fn report(&self) -> PolicyReport {
        let rules = self.rules();
        PolicyReport {
            rules: rules.count() as u64,
            files: rules.files.len() as u64,
            errors: rules.bad.iter().map(|bad| bad.error.clone()).collect(),
        }
    }

    fn publish_loaded(&self, rules: &Rules, errors: &[RuleError]) {
        self.publish(
            &PolicyLoaded {
                ok: errors.is_empty(),
                rules: rules.count() as u64,
                files: rules.files.len() as u64,
                errors: errors.iter().map(ToString::to_string).collect(),
            },
            None,
            None,
        );
    }

    fn publish(&self, fields: &dyn EventFields, session_key: Option<&str>, task_id: Option<&str>) {
        let event = NewEvent { fields, id: None, session_key, task_id, state: &[], cancelled: false };
        let now = EventTime { wall_ms: wall_ms(), mono_ms: mono_ms(), retention_ms: retention_ms() };
        if let Err(e) = self.journal.publish(&event, now, |_| {}) {
            tracing::error!(%e, kind = fields.event_type().name(), "failed to store an event of the policy");
        }
    }

    /// Admits a call, or refuses it with one `denied` event. A call without rules and without a session takes a look at its
    /// letters, and no memory.
    pub fn admit(
        &self,
        call: &ExecParams,
        request: &SpawnRequest,
        config: &Config,
        caller: JudgedCaller,
    ) -> Result<Admitted, PolicyRefusal> {
        let policy = self.session_policy(call, config);
        let what = what(call, request);
        let asks_by_default = policy.unmatched == Unmatched::Ask || policy.approval == ApprovalMode::Untrusted;
        if !self.has_rules() && !asks_by_default && toold_policy::needs_no_search(what) {
            return Ok(Admitted::Allow(None));
        }
        let judgement = Box::new(self.judge(call, request, config));
        match judgement.verdict {
            Verdict::Allow => Ok(Admitted::Allow(Some(judgement))),
            Verdict::Ask => Ok(Admitted::Ask(judgement)),
            Verdict::Deny => Err(self.refuse(request, Some(&judgement), judgement.reason().into(), caller)),
        }
    }

    /// Records a refusal: one `denied` event.
    pub fn refuse(
        &self,
        request: &SpawnRequest,
        judgement: Option<&Judgement>,
        reason: String,
        caller: JudgedCaller,
    ) -> PolicyRefusal {
        let spec = &request.spec;
        let matches = judgement.into_iter().flat_map(|judgement| &judgement.matches);
        let strictest = matches.filter(|found| found.verdict != Verdict::Allow);
        let rule = strictest.max_by_key(|found| found.verdict);
        let rule = rule.map(|found| RuleRef { file: found.file.clone(), index: found.index as u64 });
        let event = Denied {
            command: spec.command.chars().take(MAX_EVENT_COMMAND).collect(),
            cwd: spec.cwd.clone(),
            reason: reason.clone(),
            rule: rule.clone(),
            uid: caller.uid,
            pid: caller.pid,
        };
        self.publish(&event, spec.session_key.as_deref(), spec.task_id.as_deref());
        PolicyRefusal { reason, rule }
    }

    /// Records the refusal of a call of a tool: one `denied` event.
    pub fn refuse_tool(&self, call: &RefusedCall<'_>, reason: &str, caller: JudgedCaller) {
        let event = Denied {
            command: call.what.chars().take(MAX_EVENT_COMMAND).collect(),
            cwd: call.cwd.unwrap_or_default().into(),
            reason: reason.into(),
            rule: None,
            uid: caller.uid,
            pid: caller.pid,
        };
        self.publish(&event, call.session_key, call.task_id);
    }

    /// Judges a call without any effect.
    pub fn judge(&self, call: &ExecParams, request: &SpawnRequest, config: &Config) -> Judgement {
        let writable = &writable(request)[..];
        let cwd = Path::new(&request.spec.cwd);
        let variable = |name: &[u8]| {
            let of =
                |entry: &'_ Vec<u8>| entry.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")).map(<[u8]>::len);
            request.env.iter().find_map(|entry| Some(&entry[entry.len() - of(entry)?..]))
        };
        let job_path = JobPath { path: variable(b"PATH"), cwd };
        let home = variable(b"HOME").map(|home| Path::new(OsStr::from_bytes(home)));
        let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_path_buf()));
        let judged = Call {
            what: what(call, request),
            set_names: &set_names(call),
            resolve: &|name| job_path.resolve(name),
            writable,
            home_is_writable: home.is_some_and(|home| writable.iter().any(|root| home.starts_with(root))),
        };
        toold_policy::judge(&judged, &self.session_policy(call, config), &self.rules())
    }

    /// Returns when a person is asked about the calls of a session.
    pub fn approval_mode(&self, session_key: Option<&str>, config: &Config) -> ApprovalMode {
        let session = self.sessions.get(session_key);
        match session.and_then(|session| session.approval).unwrap_or(config.policy.approval) {
            ApprovalPolicy::Never => ApprovalMode::Never,
            ApprovalPolicy::OnRequest => ApprovalMode::OnRequest,
            ApprovalPolicy::OnFailure => ApprovalMode::OnFailure,
            ApprovalPolicy::Untrusted => ApprovalMode::Untrusted,
        }
    }

    /// The settings by which calls of this session are judged.
    pub fn session_policy(&self, call: &ExecParams, config: &Config) -> SessionPolicy {
        SessionPolicy {
            approval: self.approval_mode(call.session_key.as_deref(), config),
            unmatched: match config.policy.unmatched {
                wire::Unmatched::Allow => Unmatched::Allow,
                wire::Unmatched::Ask => Unmatched::Ask,
            },
            danger: match config.policy.danger {
                DangerPolicy::Ask => DangerAction::Ask,
                DangerPolicy::Deny => DangerAction::Deny,
                DangerPolicy::Allow => DangerAction::Allow,
            },
        }
    }
}

/// The directories that the job may write in, without links. A job without a sandbox can write anywhere: its working directory
/// stands for what it works on.
fn writable(request: &SpawnRequest) -> Vec<PathBuf> {
    if let Some(sandbox) = &request.spec.sandbox {
        let roots = sandbox.roots.iter().map(|root| PathBuf::from(&root.path));
        return roots.chain([PathBuf::from("/tmp")]).collect();
    }
    let cwd = Path::new(&request.spec.cwd);
    vec![cwd.canonicalize().unwrap_or_else(|_| cwd.to_path_buf())]
}

/// Returns true if rules allow every command of a call to run under this profile without a question.
pub fn is_granted(judgement: &Judgement, profile: &Profile, config: &Config) -> bool {
    let covers = |name: &String| {
        let granted = find_profile(name, &config.profile);
        granted.is_some_and(|granted| profile.wider_than(&granted, config.sandbox.caches).is_none())
    };
    !judgement.granted.is_empty() && judgement.granted.iter().all(|names| names.iter().any(covers))
}

/// The command of a call as the judge takes it.
fn what<'a>(call: &'a ExecParams, request: &'a SpawnRequest) -> What<'a> {
    match &call.command {
        Some(text) => What::Shell { text, shell: &request.spec.program, login: call.login.unwrap_or(true) },
        None => What::Argv(&request.spec.argv),
    }
}

/// The names of variables that the call sets to another value than the daemon has.
fn set_names(call: &ExecParams) -> Vec<String> {
    let given = crate::spec::given(&call.env, &call.env_base64).unwrap_or_default();
    let is_changed = |(name, value): &(&String, &Vec<u8>)| {
        std::env::var_os(name).is_none_or(|own| own.as_bytes() != value.as_slice())
    };
    given.iter().filter(is_changed).map(|(name, _)| name.clone()).collect()
}
