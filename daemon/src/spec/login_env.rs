//! What a call gives in `env`, kept through the files that a login shell reads first. Pure.
//!
//! `/etc/profile` sets a PATH of its own on most systems, whatever was given. So the given values go along a second time, in
//! one variable that holds shell text, and the command is preceded by its `eval`: on the same line, so that line numbers in the
//! shell's messages are those of the command. Values are in no argument, for arguments are on disk and in `ps`.

use std::collections::BTreeMap;

/// The variable. It is gone before the command begins.
pub const ENV_VAR: &str = "TOOLD_ENV";
/// The kernel takes 128 KiB for one variable. What does not fit is left to the login files.
const MAX_VAR_LEN: usize = 96 * 1024;
/// What shells set themselves, refuse to set, or do something by: in zsh to set UID is to become that user.
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

/// How a shell is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellSyntax {
    Posix,
    Fish,
}

impl ShellSyntax {
    /// None for a shell that we cannot talk to.
    fn of(shell: &str) -> Option<ShellSyntax> {
        match shell.rsplit('/').next().unwrap_or_default() {
            "sh" | "bash" | "rbash" | "dash" | "ash" | "zsh" | "ksh" | "ksh93" | "mksh" | "oksh" | "yash" => {
                Some(ShellSyntax::Posix)
            }
            "fish" => Some(ShellSyntax::Fish),
            _ => None,
        }
    }

    fn set(self, name: &str, value: &str) -> String {
        match self {
            ShellSyntax::Posix => format!("export {name}='{}'; ", value.replace('\'', r"'\''")),
            ShellSyntax::Fish => format!("set -gx {name} '{}'; ", value.replace('\\', r"\\").replace('\'', r"\'")),
        }
    }

    fn unset(self, name: &str) -> String {
        match self {
            ShellSyntax::Posix => format!("unset {name}"),
            ShellSyntax::Fish => format!("set -e {name}"),
        }
    }
}

/// The command with what precedes it, and the value of the carrier. None: there is nothing to keep, or no way to.
pub fn preserve_env(shell: &str, command: &str, given: &BTreeMap<String, String>) -> Option<(String, String)> {
    let syntax = ShellSyntax::of(shell)?;
    let mut text = String::new();
    // PATH before all others, should there be no room for all.
    let first = given.get_key_value("PATH").into_iter();
    for (name, value) in first.chain(given.iter().filter(|(name, _)| *name != "PATH" && is_plain_variable(name))) {
        let set = syntax.set(name, value);
        if text.len() + set.len() <= MAX_VAR_LEN {
            text += &set;
        }
    }
    if text.is_empty() {
        return None;
    }
    text += &syntax.unset(ENV_VAR);
    Some((format!("eval \"${ENV_VAR}\"; {command}"), text))
}

/// Whether a shell takes the name for a variable like any other. Small letters are often more than that in zsh.
fn is_plain_variable(name: &str) -> bool {
    let letters = |b: u8| b.is_ascii_uppercase() || b == b'_';
    let word = name.bytes().next().is_some_and(letters) && name.bytes().all(|b| letters(b) || b.is_ascii_digit());
    word && !SHELL_VARS.contains(&name)
        && !SHELL_VAR_PREFIXES.iter().any(|begin| name.starts_with(begin))
        && name != ENV_VAR
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter().map(|(n, v)| ((*n).to_string(), (*v).to_string())).collect()
    }

    #[test]
    fn what_is_given_is_set_again_before_the_command_and_no_value_is_in_the_command() {
        let (command, script) = preserve_env("/bin/bash", "make", &given(&[("LANG", "de"), ("PATH", "/it's")]))
            .expect("there is something to keep");
        assert_eq!(command, "eval \"$TOOLD_ENV\"; make");
        assert_eq!(script, r"export PATH='/it'\''s'; export LANG='de'; unset TOOLD_ENV");
        let (_, script) = preserve_env("fish", "make", &given(&[("A", r"\'")])).expect("there is something to keep");
        assert_eq!(script, r"set -gx A '\\\''; set -e TOOLD_ENV");
    }

    #[test]
    fn nothing_precedes_a_command_for_nothing() {
        assert_eq!(preserve_env("/bin/sh", "make", &given(&[])), None);
        assert_eq!(preserve_env("/bin/tcsh", "make", &given(&[("PATH", "/bin")])), None, "it speaks another language");
        let own =
            given(&[("UID", "0"), ("path", "x"), ("BASH_ENV", "x"), ("a-b", "x"), ("1A", "x"), ("", "x"), ("Ä", "x")]);
        assert_eq!(preserve_env("zsh", "make", &own), None, "names that are more than variables, or none");
    }

    #[test]
    fn a_value_that_does_not_fit_is_left_out_and_path_is_not() {
        let (_, script) =
            preserve_env("sh", "make", &given(&[("A", &"x".repeat(MAX_VAR_LEN)), ("B", "b"), ("PATH", "/bin")]))
                .expect("there is something to keep");
        assert_eq!(script, "export PATH='/bin'; export B='b'; unset TOOLD_ENV");
    }
}
