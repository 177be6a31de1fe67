//! Builds the environment of a process. Pure: the daemon's own environment is an argument.

use std::collections::BTreeMap;
use toold_proto::params::EnvMode;

/// Names that `clean` passes on.
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
/// Prefixes of names that `clean` passes on.
const CLEAN_PREFIXES: &[&str] = &["LC_", "XDG_", "CONDA"];
/// Parts of names of secrets. `clean` does not pass them on, whatever their prefix.
const SECRET_PARTS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "PASSWD", "AUTH"];
/// Variables that the service manager sets for the daemon alone. A child that had them could act as the daemon.
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
/// The PATH if the daemon has none: without one a shell finds nothing.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The TERM of a process on a terminal, if neither the call nor the daemon has a usable one.
const DEFAULT_TERM: &str = "xterm-256color";

/// Builds the variables of a process: those of the daemon that `mode` passes on, then those of the call.
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
    // A LANG of the call replaces the whole locale: beside the daemon's LC_ALL it would have no effect.
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
    fn clean_passes_a_short_list_and_a_secret_only_if_the_config_names_it() {
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
    fn the_locale_of_the_daemon_does_not_override_a_lang_of_the_call() {
        for mode in [EnvMode::Clean, EnvMode::Inherit] {
            let env = build(mode, own().into_iter(), &[], &pairs(&[("LANG", "de"), ("LC_TIME", "C")]), false);
            let shown = |name: &str| env.get(name).map(String::as_str);
            assert_eq!((shown("LANG"), shown("LC_ALL"), shown("LC_TIME")), (Some("de"), None, Some("C")));
            let env = build(mode, own().into_iter(), &[], &pairs(&[("LC_TIME", "de")]), false);
            assert_eq!(env.get("LC_ALL").map(String::as_str), Some("C"), "LC_TIME alone leaves the rest");
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
