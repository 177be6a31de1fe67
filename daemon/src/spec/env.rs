//! The environment a process gets. Pure: the daemon's own is an argument.

use std::collections::BTreeMap;
use toold_proto::params::EnvMode;

/// Names that `clean` passes.
const CLEAN_NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TERM",
    "TMPDIR",
    "TMP",
    "TEMP",
    "TZ",
    "PYTHONPATH",
    "VIRTUAL_ENV",
];
/// Beginnings of names that `clean` passes.
const CLEAN_PREFIXES: &[&str] = &["LC_", "XDG_", "CONDA"];
/// What a name that carries a secret has in it.
const SECRET_PARTS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "PASSWD", "AUTH"];
/// What the service manager told the daemon and nobody else: a child that had it could speak for us.
const SERVICE_MANAGER_VARS: &[&str] = &[
    "NOTIFY_SOCKET",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "JOURNAL_STREAM",
    "INVOCATION_ID",
];
/// Without any PATH a shell finds nothing.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// What a terminal of ours understands, when nobody says.
const DEFAULT_TERM: &str = "xterm-256color";

/// The variables of a process: the daemon's, as far as `mode` lets them through, then the call's own.
pub fn build(
    mode: EnvMode,
    own: impl Iterator<Item = (String, String)>,
    pass: &[String],
    call: &BTreeMap<String, String>,
    terminal: bool,
) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = match mode {
        EnvMode::Replace => BTreeMap::new(),
        EnvMode::Inherit => own.filter(|(name, _)| !SERVICE_MANAGER_VARS.contains(&name.as_str())).collect(),
        EnvMode::Clean => own.filter(|(name, _)| passes_clean(name, pass)).collect(),
    };
    // A language is given whole: beside another's LC_ALL a LANG would be without effect.
    if call.contains_key("LANG") {
        env.retain(|name, _| name != "LANGUAGE" && !name.starts_with("LC_"));
    }
    if mode == EnvMode::Clean {
        env.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
    }
    if terminal && mode != EnvMode::Replace {
        let term = env.entry("TERM".into()).or_default();
        if term.is_empty() || term == "dumb" {
            *term = DEFAULT_TERM.into();
        }
    }
    env.extend(call.iter().map(|(name, value)| (name.clone(), value.clone())));
    env
}

fn passes_clean(name: &str, pass: &[String]) -> bool {
    if pass.iter().any(|p| p == name) {
        return true;
    }
    let known = CLEAN_NAMES.contains(&name) || CLEAN_PREFIXES.iter().any(|p| name.starts_with(p));
    let upper = name.to_ascii_uppercase();
    known && !SECRET_PARTS.iter().any(|s| upper.contains(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter().map(|(n, v)| ((*n).to_string(), (*v).to_string())).collect()
    }

    fn own() -> BTreeMap<String, String> {
        pairs(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("XDG_SESSION_TOKEN", "t"),
            ("CONDA_PREFIX", "/c"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("github_token", "g"),
            ("EDITOR", "vi"),
        ])
    }

    #[test]
    fn clean_passes_a_short_list_and_never_a_secret_unless_it_is_named() {
        let call = pairs(&[("MY_TOKEN", "mine")]);
        let env = build(EnvMode::Clean, own().into_iter(), &["github_token".into()], &call, false);
        let expected = pairs(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("CONDA_PREFIX", "/c"),
            ("github_token", "g"),
            ("MY_TOKEN", "mine"),
        ]);
        assert_eq!(env, expected);
    }

    #[test]
    fn a_language_that_is_given_is_not_undone_by_the_daemons() {
        for mode in [EnvMode::Clean, EnvMode::Inherit] {
            let env = build(mode, own().into_iter(), &[], &pairs(&[("LANG", "de"), ("LC_TIME", "C")]), false);
            let shown = |name: &str| env.get(name).map(String::as_str);
            assert_eq!((shown("LANG"), shown("LC_ALL"), shown("LC_TIME")), (Some("de"), None, Some("C")));
            let env = build(mode, own().into_iter(), &[], &pairs(&[("LC_TIME", "de")]), false);
            assert_eq!(env.get("LC_ALL").map(String::as_str), Some("C"), "a part of it leaves the rest");
        }
    }

    #[test]
    fn inherit_passes_all_replace_none_and_the_call_always_wins() {
        let call = pairs(&[("PATH", "/mine")]);
        let mut all = own();
        all.insert("PATH".into(), "/mine".into());
        assert_eq!(build(EnvMode::Inherit, own().into_iter(), &[], &call, false), all);
        assert_eq!(build(EnvMode::Replace, own().into_iter(), &[], &call, true), call);
    }
}
