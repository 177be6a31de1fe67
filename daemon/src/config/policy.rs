//! The tables `[policy]`, `[sandbox]`, `[profile.NAME]`, `[fs]` and `[patch]`, and the order of profiles by width.

use super::Invalid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toold_proto::policy::{ApprovalPolicy, DangerPolicy, Unmatched};
use toold_proto::sandbox::{Measure, Network, ProfileMode};

/// The verdicts and their limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// The profile of an `exec` without `sandbox`.
    pub default: String,
    /// The profile that nothing is wider than, approved or not.
    pub max: String,
    pub approval: ApprovalPolicy,
    pub approval_timeout_ms: u64,
    /// The verdict on a command that no rule matches.
    pub unmatched: Unmatched,
    /// The verdict on forced removal.
    pub danger: DangerPolicy,
    /// Approvals of one session that wait at the same time.
    pub max_pending: u64,
}

/// The mechanisms that confine a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// All that this machine has.
    Auto,
    /// Namespaces without Landlock.
    Namespaces,
    /// Landlock without namespaces.
    Landlock,
}

/// The values that all profiles share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sandbox {
    pub mechanism: Mechanism,
    /// Paths that cannot be read. `~/` is the home directory.
    pub hide: Vec<String>,
    /// Paths inside a root that stay read-only, relative to it.
    pub protect: Vec<String>,
    /// Sockets that stay in reach.
    pub unix_sockets: Vec<String>,
    /// The regenerable caches of cargo, npm, go, uv and pip are roots.
    pub caches: bool,
    /// Refused writes are seen; otherwise only refused network calls.
    pub observe: bool,
}

/// The rights of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub mode: ProfileMode,
    /// Directories that it may write in beside its cwd. `~/` is the home directory.
    #[serde(default)]
    pub roots: Vec<String>,
    #[serde(default = "Profile::default_network")]
    pub network: Network,
    /// Measures without which nothing starts.
    #[serde(default)]
    pub require: Vec<Measure>,
    /// Sockets that stay in reach, beside those of `[sandbox]`.
    #[serde(default)]
    pub unix_sockets: Vec<String>,
    /// Overrides `[sandbox] caches`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<bool>,
}

/// `fs.*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fs {
    /// The longest text that `fs.read` returns.
    pub read_max_chars: u64,
    /// The largest file that is read whole: for its hash, a diff or an edit.
    pub max_file_bytes: u64,
}

/// `patch.*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Patch {
    /// The most bytes of all files of one patch.
    pub max_bytes: u64,
    /// Time for which a patch can be reverted.
    pub keep_ms: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            default: "full".into(),
            max: "full".into(),
            approval: ApprovalPolicy::OnRequest,
            approval_timeout_ms: 600_000,
            unmatched: Unmatched::Allow,
            danger: DangerPolicy::Ask,
            max_pending: 64,
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).into()).collect();
        Sandbox {
            mechanism: Mechanism::Auto,
            hide: texts(&[
                "~/.ssh",
                "~/.gnupg",
                "~/.aws",
                "~/.kube",
                "~/.netrc",
                "~/.docker/config.json",
                "~/.config/gcloud",
            ]),
            protect: texts(&[
                ".git/hooks",
                ".git/config",
                ".toold",
                ".codex",
                ".claude",
                ".vscode",
                ".idea",
                ".mcp.json",
                ".envrc",
            ]),
            unix_sockets: Vec::new(),
            caches: false,
            observe: true,
        }
    }
}

impl Default for Fs {
    fn default() -> Self {
        Fs { read_max_chars: 100_000, max_file_bytes: 64 << 20 }
    }
}

impl Default for Patch {
    fn default() -> Self {
        Patch { max_bytes: 64 << 20, keep_ms: 86_400_000 }
    }
}

/// The built-in profiles, the widest first.
pub const BUILT_IN: [(&str, ProfileMode); 3] = [
    ("full", ProfileMode::Full),
    ("workspace-write", ProfileMode::WorkspaceWrite),
    ("read-only", ProfileMode::ReadOnly),
];

impl Profile {
    /// Returns a profile with nothing but its mode.
    pub fn of_mode(mode: ProfileMode) -> Profile {
        let network = if mode == ProfileMode::Full { Network::Full } else { Network::Off };
        Profile { mode, roots: Vec::new(), network, require: Vec::new(), unix_sockets: Vec::new(), caches: None }
    }

    fn default_network() -> Network {
        Network::Off
    }

    /// Returns the key in which it allows more than `ceiling`. A ceiling without `roots` allows any; one with `roots` allows
    /// directories inside them. The cwd is judged where it is known.
    pub fn wider_than(&self, ceiling: &Profile, caches: bool) -> Option<&'static str> {
        if ceiling.mode == ProfileMode::Full {
            return None;
        }
        let is_below = |root: &String| {
            let root = expand(root);
            ceiling.roots.iter().any(|of| root.starts_with(expand(of)))
        };
        let has_caches = |profile: &Profile| profile.caches.unwrap_or(caches);
        let checks = [
            (width_of_mode(self.mode) > width_of_mode(ceiling.mode), "mode"),
            (width_of_network(self.network) > width_of_network(ceiling.network), "network"),
            (!ceiling.roots.is_empty() && !self.roots.iter().all(is_below), "roots"),
            (!self.unix_sockets.iter().all(|path| ceiling.unix_sockets.contains(path)), "unix_sockets"),
            (has_caches(self) && !has_caches(ceiling), "caches"),
        ];
        checks.into_iter().find(|(is_wider, _)| *is_wider).map(|(_, key)| key)
    }
}

fn width_of_mode(mode: ProfileMode) -> u8 {
    match mode {
        ProfileMode::ReadOnly => 0,
        ProfileMode::WorkspaceWrite => 1,
        ProfileMode::Full => 2,
    }
}

fn width_of_network(network: Network) -> u8 {
    match network {
        Network::Off => 0,
        Network::Loopback => 1,
        Network::Full => 2,
    }
}

/// Replaces `~` at the beginning by the home directory.
pub fn expand(path: &str) -> PathBuf {
    let home = || directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_path_buf());
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            home().map_or_else(|| path.into(), |home| home.join(rest.trim_start_matches('/')))
        }
        _ => path.into(),
    }
}

/// Finds a profile by its name: a built-in one, or one of the config.
pub fn find_profile(name: &str, named: &BTreeMap<String, Profile>) -> Option<Profile> {
    let built_in = BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, mode)| Profile::of_mode(*mode));
    built_in.or_else(|| named.get(name).cloned())
}

/// Returns the first value that cannot be used.
pub(super) fn first_invalid(
    policy: &Policy,
    sandbox: &Sandbox,
    profiles: &BTreeMap<String, Profile>,
) -> Option<Invalid> {
    let invalid = |key: String, why: String| Some(Invalid { key: key.into(), why: why.into() });
    let is_absolute = |path: &String| expand(path).is_absolute();
    let unknown = |name: &str| {
        let names: Vec<&str> =
            BUILT_IN.iter().map(|(name, _)| *name).chain(profiles.keys().map(String::as_str)).collect();
        format!("there is no profile {name:?}; there are {}", names.join(", "))
    };
    for (name, profile) in profiles {
        let key = |key: &str| format!("profile.{name}.{key}");
        if BUILT_IN.iter().any(|(built_in, _)| built_in == name) {
            return invalid(format!("profile.{name}"), "the name is that of a built-in profile".into());
        }
        if !super::is_queue_name(name) {
            return invalid("profile".into(), super::QUEUE_NAME_RULE.into());
        }
        if let Some(path) = profile.roots.iter().find(|path| !is_absolute(path)) {
            return invalid(key("roots"), format!("must be absolute paths, not {path:?}"));
        }
        if let Some(path) = profile.unix_sockets.iter().find(|path| !is_absolute(path)) {
            return invalid(key("unix_sockets"), format!("must be absolute paths, not {path:?}"));
        }
        if profile.mode == ProfileMode::Full && !profile.require.is_empty() {
            return invalid(key("require"), "the mode full enforces nothing".into());
        }
        if profile.mode != ProfileMode::WorkspaceWrite && !profile.roots.is_empty() {
            return invalid(key("roots"), "only the mode workspace-write has roots".into());
        }
    }
    let Some(max) = find_profile(&policy.max, profiles) else {
        return invalid("policy.max".into(), unknown(&policy.max));
    };
    let wider = |name: &str, key: &str| format!("{name} is wider than policy.max, {}, in {key}", policy.max);
    for (name, profile) in profiles {
        if let Some(key) = profile.wider_than(&max, sandbox.caches) {
            return invalid(format!("profile.{name}.{key}"), wider(name, key));
        }
    }
    let Some(default) = find_profile(&policy.default, profiles) else {
        return invalid("policy.default".into(), unknown(&policy.default));
    };
    if let Some(key) = default.wider_than(&max, sandbox.caches) {
        return invalid("policy.default".into(), wider(&policy.default, key));
    }
    if let Some(path) = sandbox.hide.iter().find(|path| !is_absolute(path)) {
        return invalid("sandbox.hide".into(), format!("must be absolute paths or begin with ~/, not {path:?}"));
    }
    if let Some(path) = sandbox.unix_sockets.iter().find(|path| !is_absolute(path)) {
        return invalid("sandbox.unix_sockets".into(), format!("must be absolute paths, not {path:?}"));
    }
    if let Some(path) = sandbox.protect.iter().find(|path| !is_plain_relative(path)) {
        return invalid("sandbox.protect".into(), format!("must be paths inside a root, not {path:?}"));
    }
    (policy.max_pending == 0).then(|| Invalid { key: "policy.max_pending".into(), why: "must be at least 1".into() })
}

/// Returns true for a relative path of names, without `.` and `..`.
fn is_plain_relative(path: &str) -> bool {
    let mut names = Path::new(path).components();
    !path.is_empty() && names.all(|name| matches!(name, std::path::Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn check(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|e| e.to_string())?;
        match config.first_invalid() {
            Some(invalid) => Err(format!("{}: {}", invalid.key, invalid.why)),
            None => Ok(config),
        }
    }

    fn refuse(text: &str) -> String {
        check(text).expect_err("refused")
    }

    #[test]
    fn the_documented_tables_load_as_the_defaults() {
        let documented = "[policy]\ndefault = \"full\"\nmax = \"full\"\napproval = \"on-request\"\n\
            approval_timeout_ms = 600000\nunmatched = \"allow\"\ndanger = \"ask\"\nmax_pending = 64\n\
            [sandbox]\nmechanism = \"auto\"\nunix_sockets = []\ncaches = false\nobserve = true\n\
            [fs]\nread_max_chars = 100000\n[patch]\nmax_bytes = 67108864\nkeep_ms = 86400000\n";
        assert_eq!(check(documented), Ok(Config::default()));
        let named = check(
            "[profile.ci]\nmode = \"workspace-write\"\nroots = []\nnetwork = \"loopback\"\nrequire = [\"fs_write\", \"network\"]",
        );
        let profile = &named.expect("valid").profile["ci"];
        assert_eq!(
            (profile.network, &profile.require[..]),
            (Network::Loopback, &[Measure::FsWrite, Measure::Network][..])
        );
    }

    #[test]
    fn a_value_that_cannot_be_used_is_refused_with_its_key() {
        assert!(
            refuse("[policy]\ndefault = \"ci\"")
                .starts_with("policy.default: there is no profile \"ci\"; there are full")
        );
        assert!(refuse("[policy]\nmax = \"x\"").starts_with("policy.max: there is no profile"));
        assert!(refuse("[policy]\nmax = \"read-only\"").starts_with("policy.default: full is wider than policy.max"));
        assert!(refuse("[profile.full]\nmode = \"full\"").contains("built-in"));
        assert!(refuse("[profile.x]\nmode = \"writable\"").contains("unknown variant `writable`"));
        assert!(refuse("[profile.x]\nmode = \"read-only\"\nrots = []").contains("rots"));
        assert!(refuse("[profile.x]\nroots = []").contains("mode"));
        assert!(refuse("[profile.x]\nmode = \"workspace-write\"\nroots = [\"src\"]").starts_with("profile.x.roots"));
        assert!(refuse("[profile.x]\nmode = \"workspace-write\"\nrequire = [\"fs\"]").contains("unknown variant `fs`"));
        assert!(refuse("[sandbox]\nprotect = [\"../x\"]").starts_with("sandbox.protect"));
        assert!(refuse("[sandbox]\nhide = [\"keys\"]").starts_with("sandbox.hide"));
        assert!(refuse("[policy]\nmax_pending = 0").starts_with("policy.max_pending"));
        let wider = "[policy]\ndefault = \"read-only\"\nmax = \"workspace-write\"\n\
            [profile.ci]\nmode = \"workspace-write\"\nnetwork = \"loopback\"";
        assert!(refuse(wider).starts_with("profile.ci.network: ci is wider than policy.max"));
    }

    #[test]
    fn a_profile_is_wider_by_the_key_that_allows_more() {
        let below = |roots: &[&str], network| Profile {
            roots: roots.iter().map(|root| (*root).into()).collect(),
            network,
            ..Profile::of_mode(ProfileMode::WorkspaceWrite)
        };
        let ceiling = below(&["/srv/app"], Network::Loopback);
        assert_eq!(below(&["/srv/app/src"], Network::Off).wider_than(&ceiling, false), None);
        assert_eq!(below(&["/srv/apples"], Network::Off).wider_than(&ceiling, false), Some("roots"));
        assert_eq!(below(&[], Network::Full).wider_than(&ceiling, false), Some("network"));
        assert_eq!(Profile::of_mode(ProfileMode::Full).wider_than(&ceiling, false), Some("mode"));
        assert_eq!(Profile::of_mode(ProfileMode::ReadOnly).wider_than(&ceiling, false), None);
        let caches = Profile { caches: Some(true), ..below(&[], Network::Off) };
        assert_eq!(caches.wider_than(&ceiling, false), Some("caches"));
        assert_eq!(caches.wider_than(&ceiling, true), None);
    }
}
