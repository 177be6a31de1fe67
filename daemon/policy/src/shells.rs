//! The shells that run text: those that the lexer can predict, and all that `search` looks into.

/// Shells whose reading of plain text is tested against the lexer.
const PREDICTED: [&str; 4] = ["bash", "dash", "sh", "zsh"];

/// Programs that run text given to them with `-c`, or on stdin.
const ALL: [&str; 17] = [
    "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "ksh93", "lksh", "mksh", "oksh", "rbash", "sh", "tcsh",
    "yash", "zsh", "nu",
];

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

pub(crate) fn is_predicted(shell: &str) -> bool {
    PREDICTED.contains(&base_name(shell))
}

pub(crate) fn is_shell(program: &str) -> bool {
    ALL.contains(&base_name(program))
}

/// Returns the text of a shell call that can be predicted.
pub fn shell_text(words: &[String]) -> Option<&str> {
    ShellCall::of(words).map(|call| call.text)
}

/// A shell call of exactly the form `sh -c TEXT` or `sh -lc TEXT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShellCall<'a> {
    pub shell: &'a str,
    pub login: bool,
    pub text: &'a str,
}

impl ShellCall<'_> {
    /// Returns the call, if these words have that form.
    pub(crate) fn of(words: &[String]) -> Option<ShellCall<'_>> {
        let [shell, flag, text] = words else { return None };
        let login = match flag.as_str() {
            "-c" => false,
            "-lc" => true,
            // Another flag may change how the text is read.
            _ => return None,
        };
        is_predicted(shell).then_some(ShellCall { shell, login, text })
    }

    /// Returns true if the shell reads files of the home directory before it runs the text.
    pub(crate) fn reads_profile(&self) -> bool {
        self.login || base_name(self.shell) == "zsh"
    }
}
