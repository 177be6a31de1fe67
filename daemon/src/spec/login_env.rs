//! What a call gives in `env`, kept through the files that a login shell reads first. Pure.
//!
//! `/etc/profile` sets a PATH of its own on most systems, whatever was given. So the given values go along a second time, in
//! one variable that holds shell text, and the command is preceded by its `eval`: on the same line, so that line numbers in the
//! shell's messages are those of the command. Values are in no argument, for arguments are on disk and in `ps`.

use std::collections::BTreeMap;

/// The variable. It is gone before the command begins.
pub const CARRIER: &str = "TOOLD_ENV";
/// The kernel takes 128 KiB for one variable. What does not fit is left to the login files.
const ROOM: usize = 96 * 1024;
/// What shells set themselves, refuse to set, or do something by: in zsh to set UID is to become that user.
const SHELLS_OWN: &[&str] = &[
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
const SHELLS_BEGIN: &[&str] = &["BASH", "ZSH", "FISH_"];

/// How a shell is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tongue {
    Posix,
    Fish,
}

impl Tongue {
    /// None for a shell that we cannot talk to.
    fn of(shell: &str) -> Option<Tongue> {
        match shell.rsplit('/').next().unwrap_or_default() {
            "sh" | "bash" | "rbash" | "dash" | "ash" | "zsh" | "ksh" | "ksh93" | "mksh" | "oksh" | "yash" => {
                Some(Tongue::Posix)
            }
            "fish" => Some(Tongue::Fish),
            _ => None,
        }
    }

    fn set(self, name: &str, value: &str) -> String {
        match self {
            Tongue::Posix => format!("export {name}='{}'; ", value.replace('\'', r"'\''")),
            Tongue::Fish => format!("set -gx {name} '{}'; ", value.replace('\\', r"\\").replace('\'', r"\'")),
        }
    }

    fn forget(self, name: &str) -> String {
        match self {
            Tongue::Posix => format!("unset {name}"),
            Tongue::Fish => format!("set -e {name}"),
        }
    }
}

/// The command with what precedes it, and the value of the carrier. None: there is nothing to keep, or no way to.
pub fn keep(shell: &str, command: &str, given: &BTreeMap<String, String>) -> Option<(String, String)> {
    let tongue = Tongue::of(shell)?;
    let mut text = String::new();
    // PATH before all others, should there be no room for all.
    let first = given.get_key_value("PATH").into_iter();
    for (name, value) in first.chain(given.iter().filter(|(name, _)| *name != "PATH" && is_plain(name))) {
        let set = tongue.set(name, value);
        if text.len() + set.len() <= ROOM {
            text += &set;
        }
    }
    if text.is_empty() {
        return None;
    }
    text += &tongue.forget(CARRIER);
    Some((format!("eval \"${CARRIER}\"; {command}"), text))
}

/// Whether a shell takes the name for a variable like any other. Small letters are often more than that in zsh.
fn is_plain(name: &str) -> bool {
    let letters = |b: u8| b.is_ascii_uppercase() || b == b'_';
    let word = name.bytes().next().is_some_and(letters) && name.bytes().all(|b| letters(b) || b.is_ascii_digit());
    word && !SHELLS_OWN.contains(&name) && !SHELLS_BEGIN.iter().any(|begin| name.starts_with(begin)) && name != CARRIER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter().map(|(n, v)| ((*n).to_string(), (*v).to_string())).collect()
    }

    #[test]
    fn what_is_given_is_set_again_before_the_command_and_no_value_is_in_the_command() {
        let (command, carried) = keep("/bin/bash", "make", &given(&[("LANG", "de"), ("PATH", "/it's")]))
            .expect("there is something to keep");
        assert_eq!(command, "eval \"$TOOLD_ENV\"; make");
        assert_eq!(carried, r"export PATH='/it'\''s'; export LANG='de'; unset TOOLD_ENV");
        let (_, carried) = keep("fish", "make", &given(&[("A", r"\'")])).expect("there is something to keep");
        assert_eq!(carried, r"set -gx A '\\\''; set -e TOOLD_ENV");
    }

    #[test]
    fn nothing_precedes_a_command_for_nothing() {
        assert_eq!(keep("/bin/sh", "make", &given(&[])), None);
        assert_eq!(keep("/bin/tcsh", "make", &given(&[("PATH", "/bin")])), None, "it speaks another language");
        let own =
            given(&[("UID", "0"), ("path", "x"), ("BASH_ENV", "x"), ("a-b", "x"), ("1A", "x"), ("", "x"), ("Ä", "x")]);
        assert_eq!(keep("zsh", "make", &own), None, "names that are more than variables, or none");
    }

    #[test]
    fn a_value_that_does_not_fit_is_left_out_and_path_is_not() {
        let (_, carried) = keep("sh", "make", &given(&[("A", &"x".repeat(ROOM)), ("B", "b"), ("PATH", "/bin")]))
            .expect("there is something to keep");
        assert_eq!(carried, "export PATH='/bin'; export B='b'; unset TOOLD_ENV");
    }
}
