//! Builds the environment of a process. Pure: the daemon's own environment is an argument.

use super::InvalidParam;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use toold_proto::env::{DEFAULT_TERM, is_clean};
use toold_proto::params::EnvMode;

/// Variables by name. A value is any bytes but NUL.
pub type Variables = BTreeMap<String, Vec<u8>>;

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
pub const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Builds the variables of a process: those of the daemon that `mode` passes on, then those of the call.
pub fn build(
    mode: EnvMode,
    own: impl Iterator<Item = (String, Vec<u8>)>,
    pass: &[String],
    call: &Variables,
    terminal: bool,
) -> Variables {
    let mut env: Variables = match mode {
        EnvMode::Replace => BTreeMap::new(),
        EnvMode::Inherit => own.filter(|(name, _)| !SERVICE_MANAGER_VARS.contains(&name.as_str())).collect(),
        EnvMode::Clean => own.filter(|(name, _)| is_clean(name, pass)).collect(),
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
        if term.is_empty() || *term == b"dumb" {
            *term = DEFAULT_TERM.into();
        }
    }
    env.extend(call.iter().map(|(name, value)| (name.clone(), value.clone())));
    env
}

/// Returns the variables of a call. A wrong one is named; no value is in the error.
pub fn given(text: &BTreeMap<String, String>, base64: &BTreeMap<String, String>) -> Result<Variables, InvalidParam> {
    let text = text.iter().map(|(name, value)| ("env", name, Ok(value.clone().into_bytes())));
    let bytes = base64.iter().map(|(name, value)| ("env_base64", name, STANDARD.decode(value)));
    let mut all = Variables::new();
    for (param, name, value) in text.chain(bytes) {
        let param = || format!("{param}.{name}").replace('\0', "\\0");
        let Ok(value) = value else { return Err(InvalidParam::new(param(), "is not base64")) };
        if name.contains('\0') || value.contains(&0) {
            return Err(InvalidParam::new(param(), "must not contain a NUL character"));
        }
        if name.is_empty() || name.contains('=') {
            return Err(InvalidParam::new(param(), "is not a name: it is empty or has a `=` in it"));
        }
        if all.insert(name.clone(), value).is_some() {
            return Err(InvalidParam::new(param(), "is also in `env`"));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Variables {
        list.iter().map(|(n, v)| ((*n).to_string(), v.as_bytes().to_vec())).collect()
    }

    fn own() -> Variables {
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
            let shown = |name: &str| env.get(name).map(Vec::as_slice);
            assert_eq!((shown("LANG"), shown("LC_ALL"), shown("LC_TIME")), (Some(&b"de"[..]), None, Some(&b"C"[..])));
            let env = build(mode, own().into_iter(), &[], &pairs(&[("LC_TIME", "de")]), false);
            assert_eq!(env.get("LC_ALL"), Some(&b"C".to_vec()), "LC_TIME alone leaves the rest");
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

    #[test]
    fn a_wrong_variable_of_a_call_is_named_and_no_value_is_in_the_error() {
        let map = |list: &[(&str, &str)]| list.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        let given = |env: &[(&str, &str)], env_base64: &[(&str, &str)]| super::given(&map(env), &map(env_base64));
        let all = given(&[("A", "1")], &[("B", "/w=="), ("EMPTY", "")]).expect("all are right");
        let expected = [("A", &b"1"[..]), ("B", &[0xff]), ("EMPTY", &[])];
        assert_eq!(all, expected.map(|(name, value)| (name.to_string(), value.to_vec())).into());
        for (env, env_base64, param) in [
            (&[("A", "s3cret\0")][..], &[][..], "env.A"),
            (&[("A=s3cret", "")], &[], "env.A=s3cret"),
            (&[], &[("A", "s3cret")], "env_base64.A"),
            (&[], &[("A", "AA==")], "env_base64.A"),
            (&[], &[("", "YQ==")], "env_base64."),
            (&[("A", "s3cret")], &[("A", "YQ==")], "env_base64.A"),
        ] {
            let error = given(env, env_base64).expect_err(param);
            assert_eq!(error.param, param);
            assert!(!format!("{:?}", error.problem).contains("s3cret"), "{error:?}");
        }
    }
}
