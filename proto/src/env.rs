//! The variables that a clean environment has. Daemon and client use the same list: `clean` over the socket takes the daemon's
//! values, `toolctl --env-mode clean` the caller's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The variables of the daemon's environment that a process gets. `env` overrides them. `toolctl` sends its caller's with `replace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvMode {
    /// A safe subset: PATH, HOME, the locale and a few more.
    #[default]
    Clean,
    /// All of them.
    Inherit,
    /// None: only those in `env`.
    Replace,
}

/// Names that `clean` passes on.
pub const CLEAN_NAMES: &[&str] = &[
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
pub const CLEAN_PREFIXES: &[&str] = &["LC_", "XDG_", "CONDA"];
/// Parts of names of secrets, in capitals. `clean` does not pass them on, whatever their prefix.
pub const SECRET_PARTS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "PASSWD", "AUTH"];
/// The TERM of a process on a terminal, if neither its caller nor the daemon has a usable one.
pub const DEFAULT_TERM: &str = "xterm-256color";

/// Returns true if `clean` passes a variable on: it is listed and its name is not that of a secret, or the config has it in
/// `pass`.
pub fn is_clean(name: &str, pass: &[String]) -> bool {
    if pass.iter().any(|p| p == name) {
        return true;
    }
    let listed = CLEAN_NAMES.contains(&name) || CLEAN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let upper = name.to_ascii_uppercase();
    listed && !SECRET_PARTS.iter().any(|part| upper.contains(part))
}

#[cfg(test)]
mod tests {
    use super::is_clean;

    #[test]
    fn a_listed_name_passes_unless_it_is_that_of_a_secret_and_the_config_overrides_both() {
        let pass = ["MY_TOKEN".to_string()];
        let clean = ["PATH", "LC_TIME", "XDG_RUNTIME_DIR", "CONDA", "CONDA_PREFIX", "MY_TOKEN"];
        assert_eq!(clean.map(|name| is_clean(name, &pass)), [true; 6]);
        let others = ["path", "PATHX", "EDITOR", "XDG_api_key", "LC_TOKEN", "YOUR_TOKEN", ""];
        assert_eq!(others.map(|name| is_clean(name, &pass)), [false; 7]);
    }
}
