//! Adds the caller's PATH, shell, locale, time zone and TERM to an exec request, for the daemon may have others. Pure: our
//! environment is an argument.

use toold_proto::params::{EnvMode, ExecParams};
use toold_proto::pty::Pty;

/// The locale variables. By name: other data is sometimes passed through ssh as `LC_…`.
const LOCALE: [&str; 15] = [
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_ADDRESS",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
];

/// Adds the variables to the request, whose own win.
pub fn add_caller_env(params: &mut ExecParams, env: impl Fn(&str) -> Option<String>, on_terminal: bool) {
    if params.env_mode == EnvMode::Replace {
        return;
    }
    // A locale in the request is intended: our LC_ALL would override it.
    let chosen = ["LANG", "LC_ALL"].iter().any(|name| params.env.contains_key(*name));
    let mut names = vec!["PATH", "SHELL", "TZ"];
    names.extend(LOCALE.iter().filter(|_| !chosen));
    if params.pty != Pty::No {
        names.push("COLORTERM");
        // The "dumb" of a script or an editor is about their own output, not about a terminal of the process.
        names.extend(env("TERM").filter(|term| on_terminal || !matches!(term.as_str(), "" | "dumb")).map(|_| "TERM"));
    }
    for name in names {
        if let Some(value) = env(name) {
            params.env.entry(name.into()).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn added(given: &[(&str, &str)], mode: EnvMode, pty: Pty, ours: &[(&str, &str)], on_terminal: bool) -> Vec<String> {
        let env = given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let mut params = ExecParams { env, env_mode: mode, pty, ..Default::default() };
        let ours: BTreeMap<&str, &str> = ours.iter().copied().collect();
        add_caller_env(&mut params, |name| ours.get(name).map(|value| (*value).into()), on_terminal);
        params.env.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    const OURS: [(&str, &str); 9] = [
        ("PATH", "/ours"),
        ("SHELL", "/bin/ours"),
        ("LANG", "de_DE.UTF-8"),
        ("LC_ALL", "C"),
        ("LC_TOKEN", "secret"),
        ("TZ", "UTC"),
        ("TERM", "foot"),
        ("COLORTERM", "truecolor"),
        ("EDITOR", "vi"),
    ];

    #[test]
    fn the_language_and_the_zone_are_ours_and_with_a_terminal_its_kind_too() {
        let plain = ["LANG=de_DE.UTF-8", "LC_ALL=C", "PATH=/ours", "SHELL=/bin/ours", "TZ=UTC"];
        assert_eq!(added(&[], EnvMode::Clean, Pty::No, &OURS, true), plain);
        assert_eq!(added(&[], EnvMode::Inherit, Pty::No, &OURS, true), plain);
        let all = [
            "COLORTERM=truecolor",
            "LANG=de_DE.UTF-8",
            "LC_ALL=C",
            "PATH=/ours",
            "SHELL=/bin/ours",
            "TERM=foot",
            "TZ=UTC",
        ];
        assert_eq!(added(&[], EnvMode::Clean, Pty::Default, &OURS, false), all);
        assert_eq!(added(&[], EnvMode::Replace, Pty::Default, &OURS, true), [""; 0]);
    }

    #[test]
    fn given_variables_win_and_our_locale_does_not_override_them() {
        let given = [("LANG", "fr_FR.UTF-8"), ("TERM", "vt100"), ("PATH", "/theirs")];
        let all =
            ["COLORTERM=truecolor", "LANG=fr_FR.UTF-8", "PATH=/theirs", "SHELL=/bin/ours", "TERM=vt100", "TZ=UTC"];
        assert_eq!(added(&given, EnvMode::Clean, Pty::Default, &OURS, true), all);
    }

    #[test]
    fn a_dumb_terminal_is_passed_on_only_if_there_is_one() {
        let dumb = [("TERM", "dumb")];
        assert_eq!(added(&[], EnvMode::Clean, Pty::Default, &dumb, true), ["TERM=dumb"]);
        assert_eq!(added(&[], EnvMode::Clean, Pty::Default, &dumb, false), [""; 0]);
    }
}
