//! Asks for paths outside the roots of a call: `fs.*` and `patch.*` wait for the answer, which gives a directory.

use super::Approvals;
use super::question::{Question, script_offer};
use crate::call_clock::{self, ScriptCall};
use crate::config::policy::{expand, find_profile};
use crate::sandbox::plan::Judged;
use crate::spec::AskError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_policy::ApprovalMode;
use toold_proto::approval::{
    Action, ActionFile, Approval, ApprovalKind, ApprovalState, Caller, Covers, Offer, Scope, Why,
};
use toold_proto::sandbox::ProfileMode;

/// A call that wants to change files outside its roots.
pub struct PathQuestion {
    pub kind: ApprovalKind,
    pub files: Vec<ActionFile>,
    /// The change as text.
    pub diff: Option<String>,
    pub cwd: Option<String>,
    pub session_key: Option<String>,
    pub task_id: Option<String>,
    pub request_id: Option<String>,
    pub timeout_ms: Option<u64>,
    pub by: Caller,
}

/// The reason why a call did not get a directory.
#[derive(Debug)]
pub enum PathRefused {
    /// A person did not allow it, or no person answered.
    Denied(Box<Approval>),
    /// No person was asked.
    NotAsked(&'static str),
    Ask(AskError),
    /// The directory is another one than the person saw.
    Swapped(PathBuf),
}

impl Approvals {
    /// Returns the directories that a person allows for this call: by grants of its session or script, or by an answer, which it waits for.
    /// `places` are the directories that the call needs. The same `request_id` with the same change waits for the same answer.
    pub async fn ask_for_paths(
        self: &Arc<Self>,
        places: &[PathBuf],
        ask: PathQuestion,
    ) -> Result<Vec<Judged>, PathRefused> {
        let (mut given, mut roots): (Vec<Judged>, Vec<Judged>) = (Vec::new(), Vec::new());
        for place in places {
            let root = nearest(place).ok_or(PathRefused::NotAsked("its file system cannot be granted as a whole"))?;
            if !self.is_below_ceiling(&root.path) {
                return Err(PathRefused::NotAsked("policy.max allows no wider roots"));
            }
            match self.use_root(ask.session_key.as_deref(), &root).await {
                Some(granted) => given.push(granted),
                None if roots.iter().any(|known| root.path.starts_with(&known.path)) => {}
                None => roots.push(root),
            }
        }
        if roots.is_empty() {
            return Ok(given);
        }
        let policy = &self.registry.config.policy;
        let timeout_ms = ask.timeout_ms.unwrap_or(policy.approval_timeout_ms);
        if timeout_ms == 0 {
            return Err(PathRefused::NotAsked("it needs an approval, and approval_timeout_ms is 0"));
        }
        let key = ask.session_key.as_deref();
        if self.judge.approval_mode(key, &self.registry.config) == ApprovalMode::Never {
            return Err(PathRefused::NotAsked("it needs an approval, and the policy `never` asks no person"));
        }
        let script_call = call_clock::script_call();
        if self.use_script_grant(script_call.as_ref()).await.is_some() {
            given.extend(roots);
            return Ok(given);
        }
        let question = question(&roots, ask, timeout_ms, script_call.as_ref());
        let answer = self.ask_and_wait(&question).await.map_err(PathRefused::Ask)?;
        let Some(answer) = answer else { return Err(PathRefused::NotAsked("its answer is lost")) };
        if answer.state != ApprovalState::Approved {
            return Err(PathRefused::Denied(Box::new(answer)));
        }
        // The person saw names. Only the directories that had them then are given.
        let is_same = |root: &Judged| Judged::open_canonical(root.path.clone()).is_ok_and(|now| now.is_same(root));
        if let Some(swapped) = roots.iter().find(|root| !is_same(root)) {
            return Err(PathRefused::Swapped(swapped.path.clone()));
        }
        given.extend(roots);
        Ok(given)
    }

    /// Returns the directory of a grant that this one is in, and counts its use.
    async fn use_root(self: &Arc<Self>, session_key: Option<&str>, wanted: &Judged) -> Option<Judged> {
        let opened = |covers: &Covers| {
            let root = Path::new(covers.root.as_ref()?);
            let judged = wanted.path.starts_with(root).then(|| Judged::open_canonical(root.into()).ok())??;
            // A directory that was swapped is not the one that was granted.
            (covers.root_id == Some(identity(&judged))).then_some(judged)
        };
        let id = self.use_session_grant(session_key, |covers| opened(covers).is_some()).await?;
        opened(&self.grant(id)?.covers)
    }

    /// Returns true if `policy.max` lets a call write here.
    fn is_below_ceiling(&self, root: &Path) -> bool {
        let config = &self.registry.config;
        let Some(max) = find_profile(&config.policy.max, &config.profile) else { return false };
        match max.mode {
            ProfileMode::Full => true,
            ProfileMode::ReadOnly => false,
            ProfileMode::WorkspaceWrite => {
                max.roots.is_empty() || max.roots.iter().any(|of| root.starts_with(expand(of)))
            }
        }
    }
}

/// Opens the nearest directory above a path that exists. The root of the file system is none.
fn nearest(place: &Path) -> Option<Judged> {
    let above = place.ancestors().filter(|path| path.parent().is_some());
    above.filter_map(|path| Judged::open(path).ok()).find(|judged| judged.is_dir && judged.path.parent().is_some())
}

/// Returns the identity of a directory, as a grant keeps it.
fn identity(root: &Judged) -> String {
    format!("{}:{}", root.dev, root.ino)
}

fn question(roots: &[Judged], ask: PathQuestion, timeout_ms: u64, call: Option<&ScriptCall>) -> Question {
    let text = |root: &Judged| root.path.to_string_lossy().into_owned();
    let why = |root| Why { label: "right".into(), text: format!("{} is outside the roots", text(root)) };
    let why = roots.iter().map(why).collect();
    let mut offers = vec![Offer { scope: Scope::Once, grant: None }];
    // A grant is one directory. The one above several would be more than the patch needs.
    if let ([root], true) = (roots, ask.session_key.is_some()) {
        let covers = Covers { root: Some(text(root)), root_id: Some(identity(root)), ..Covers::default() };
        offers.push(Offer { scope: Scope::Session, grant: Some(covers) });
    }
    offers.extend(call.map(script_offer));
    Question {
        kind: ask.kind,
        why,
        action: Action { cwd: ask.cwd, files: ask.files, diff: ask.diff, ..Action::default() },
        session_key: ask.session_key,
        task_id: ask.task_id,
        requested_by: ask.by,
        timeout_ms,
        offers,
        request_id: ask.request_id,
        script: call.map(|call| call.script),
    }
}
