//! Preserves the `env` of a call through the files that a login shell reads first. Pure.
//!
//! On most systems `/etc/profile` sets PATH, whatever the caller gave. So the values are passed a second time, as shell text in
//! one variable, and an `eval` of it precedes the command: on the same line, so that line numbers in the shell's messages are
//! those of the command. No argument contains a value: arguments are on disk and in `ps`.

use super::env::Variables;

/// The variable with the shell text. It is unset before the command starts.
pub const ENV_VAR: &str = "TOOLD_ENV";
/// The beginning of the shell's argument.
const EVAL: &str = "eval \"$TOOLD_ENV\"; ";
/// The longest shell text. The kernel takes 128 KiB for one variable. Values that do not fit are left to the login files.
const MAX_VAR_LEN: usize = 96 * 1024;
/// Variables that shells set themselves, refuse to set, or act on: in zsh, setting UID changes the user.
const SHELL_VARS: &[&str] = &[
    "_",
    "ARGV0",
    "COLUMNS",
    "DIRSTACK",
    "EGID",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "ERRNO",
    "EUID",
    "FUNCNAME",
    "GID",
    "GROUPS",
    "HISTCMD",
    "IFS",
    "LINENO",
    "LINES",
    "OLDPWD",
    "OPTARG",
    "OPTERR",
    "OPTIND",
    "PIPESTATUS",
    "PPID",
    "PWD",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SHLVL",
    "SRANDOM",
    "TMOUT",
    "TTY",
    "UID",
    "USERNAME",
];
const SHELL_VAR_PREFIXES: &[&str] = &["BASH", "ZSH", "FISH_"];

/// The syntax of a shell for setting variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellSyntax {
    Posix,
    Fish,
}

impl ShellSyntax {
    /// None: an unknown shell.
    fn of(shell: &str) -> Option<ShellSyntax> {
        match shell.rsplit('/').next().unwrap_or_default() {
            "sh" | "bash" | "rbash" | "dash" | "ash" | "zsh" | "ksh" | "ksh93" | "mksh" | "oksh" | "yash" => {
                Some(ShellSyntax::Posix)
            }
            "fish" => Some(ShellSyntax::Fish),
            _ => None,
        }
    }

    /// Returns the shell text that sets a variable. A value is any bytes: quotes end at one of these characters only.
    fn set(self, name: &str, value: &[u8]) -> Vec<u8> {
        let escaped = |byte: &u8| -> &'static [u8] {
            match (self, byte) {
                (ShellSyntax::Posix, b'\'') => br"'\''",
                (ShellSyntax::Fish, b'\'') => br"\'",
                (ShellSyntax::Fish, b'\\') => br"\\",
                (ShellSyntax::Posix | ShellSyntax::Fish, _) => b"",
            }
        };
        let begin = match self {
            ShellSyntax::Posix => format!("export {name}='"),
            ShellSyntax::Fish => format!("set -gx {name} '"),
        };
        let mut text = Vec::with_capacity(begin.len() + value.len() + 8);
        text.extend_from_slice(begin.as_bytes());
        for byte in value {
            match escaped(byte) {
                b"" => text.push(*byte),
                escaped => text.extend_from_slice(escaped),
            }
        }
        text.extend_from_slice(b"'; ");
        text
    }

    fn unset(self, name: &str) -> String {
        match self {
            ShellSyntax::Posix => format!("unset {name}"),
            ShellSyntax::Fish => format!("set -e {name}"),
        }
    }
}

/// Returns true for a shell that takes `-lc`.
pub fn is_known_shell(shell: &str) -> bool {
    ShellSyntax::of(shell).is_some()
}

/// Returns the command with the `eval` before it, and the shell text. None: there is nothing to preserve, or the shell is
/// unknown.
pub fn preserve_env(shell: &str, command: &str, given: &Variables) -> Option<(String, Vec<u8>)> {
    let syntax = ShellSyntax::of(shell)?;
    let mut text = Vec::new();
    // PATH first, in case not everything fits.
    let first = given.get_key_value("PATH").into_iter();
    for (name, value) in first.chain(given.iter().filter(|(name, _)| *name != "PATH" && is_plain_variable(name))) {
        let set = syntax.set(name, value);
        if text.len() + set.len() <= MAX_VAR_LEN {
            text.extend_from_slice(&set);
        }
    }
    if text.is_empty() {
        return None;
    }
    text.extend_from_slice(syntax.unset(ENV_VAR).as_bytes());
    Some((format!("{EVAL}{command}"), text))
}

/// Returns true if the text of a shell begins with the `eval`.
pub fn has_eval(text: &str) -> bool {
    text.starts_with(EVAL)
}

/// Returns true if the name is an ordinary variable in every shell. In zsh many lower-case names are special.
fn is_plain_variable(name: &str) -> bool {
    let letters = |b: u8| b.is_ascii_uppercase() || b == b'_';
    let valid = name.bytes().next().is_some_and(letters) && name.bytes().all(|b| letters(b) || b.is_ascii_digit());
    valid
        && !SHELL_VARS.contains(&name)
        && !SHELL_VAR_PREFIXES.iter().any(|begin| name.starts_with(begin))
        && name != ENV_VAR
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(list: &[(&str, &str)]) -> Variables {
        list.iter().map(|(n, v)| ((*n).to_string(), v.as_bytes().to_vec())).collect()
    }

    #[test]
    fn values_are_set_again_before_the_command_and_none_is_in_the_command() {
        let (command, script) = preserve_env("/bin/bash", "make", &given(&[("LANG", "de"), ("PATH", "/it's")]))
            .expect("there is something to preserve");
        assert_eq!(command, "eval \"$TOOLD_ENV\"; make");
        assert_eq!(script, br"export PATH='/it'\''s'; export LANG='de'; unset TOOLD_ENV");
        let (_, script) =
            preserve_env("fish", "make", &given(&[("A", r"\'")])).expect("there is something to preserve");
        assert_eq!(script, br"set -gx A '\\\''; set -e TOOLD_ENV");
    }

    #[test]
    fn without_a_value_to_preserve_the_command_is_unchanged() {
        assert_eq!(preserve_env("/bin/sh", "make", &given(&[])), None);
        assert_eq!(preserve_env("/bin/tcsh", "make", &given(&[("PATH", "/bin")])), None, "an unknown syntax");
        let own =
            given(&[("UID", "0"), ("path", "x"), ("BASH_ENV", "x"), ("a-b", "x"), ("1A", "x"), ("", "x"), ("Ä", "x")]);
        assert_eq!(preserve_env("zsh", "make", &own), None, "special or invalid names");
    }

    #[test]
    fn a_value_that_does_not_fit_is_left_out_and_path_is_not() {
        let (_, script) =
            preserve_env("sh", "make", &given(&[("A", &"x".repeat(MAX_VAR_LEN)), ("B", "b"), ("PATH", "/bin")]))
                .expect("there is something to preserve");
        assert_eq!(script, b"export PATH='/bin'; export B='b'; unset TOOLD_ENV");
    }
}
