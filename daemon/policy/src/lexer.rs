//! The strict lexer: splits shell text into commands if every one of them can be predicted, for sh, bash, dash and zsh alike.
//! `tests/differential.rs` runs accepted texts in these shells and compares.

/// Reserved words of these shells, and builtins that change how later commands are found, set variables, evaluate their
/// arguments or run other commands. A text with one of them in command position cannot be predicted.
const UNPREDICTABLE: &[&str] = &[
    ".",
    "alias",
    "autoload",
    "bg",
    "bind",
    "bindkey",
    "break",
    "builtin",
    "bye",
    "caller",
    "case",
    "chdir",
    "command",
    "compadd",
    "comparguments",
    "compcall",
    "compctl",
    "compdescribe",
    "compfiles",
    "compgen",
    "compgroups",
    "complete",
    "compopt",
    "compquote",
    "compset",
    "comptags",
    "comptry",
    "compvalues",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disable",
    "disown",
    "do",
    "done",
    "echotc",
    "echoti",
    "elif",
    "else",
    "emulate",
    "enable",
    "end",
    "esac",
    "eval",
    "exec",
    "export",
    "fc",
    "fg",
    "fi",
    "float",
    "for",
    "foreach",
    "function",
    "functions",
    "getln",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "integer",
    "jobs",
    "let",
    "limit",
    "local",
    "log",
    "logout",
    "mapfile",
    "nocorrect",
    "noglob",
    "popd",
    "print",
    "printf",
    "private",
    "pushd",
    "pushln",
    "r",
    "read",
    "readarray",
    "readonly",
    "rehash",
    "repeat",
    "return",
    "run-help",
    "sched",
    "select",
    "set",
    "setopt",
    "shift",
    "shopt",
    "source",
    "suspend",
    "then",
    "time",
    "times",
    "trap",
    "ttyctl",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unfunction",
    "unhash",
    "unlimit",
    "unset",
    "unsetopt",
    "until",
    "vared",
    "wait",
    "whence",
    "where",
    "which-command",
    "while",
    "zcompile",
    "zformat",
    "zle",
    "zmodload",
    "zparseopts",
    "zregexparse",
    "zstyle",
];

/// Builtins of all four shells that run nothing and change no name.
const HARMLESS_BUILTINS: [&str; 8] = ["cd", "echo", "exit", "false", "kill", "pwd", "test", "true"];

/// Operators of `test` that evaluate an argument as arithmetic or as a variable, in some shell.
const EVALUATING_TESTS: [&str; 9] = ["-v", "-R", "-o", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Returns true for a builtin of the shell that is not looked for in PATH.
pub(crate) fn is_harmless_builtin(name: &str) -> bool {
    HARMLESS_BUILTINS.contains(&name)
}

/// Returns every command that a shell runs for this text, or nothing if that cannot be predicted.
pub fn plain_commands(text: &str) -> Option<Vec<Vec<String>>> {
    let mut lexer = Lexer::default();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => lexer.end_word()?,
            '\n' => lexer.end_line()?,
            ';' => lexer.end_command(Next::Optional)?,
            '&' if rest.next_if_eq(&'&').is_some() => lexer.end_command(Next::Required)?,
            '|' => {
                let _ = rest.next_if_eq(&'|');
                lexer.end_command(Next::Required)?;
            }
            '\'' | '"' => {
                let word = lexer.word.get_or_insert_default();
                word.quoted = true;
                loop {
                    match rest.next()? {
                        end if end == c => break,
                        '$' | '`' | '\\' if c == '"' => return None,
                        inner if is_quotable(inner) => word.text.push(inner),
                        // A control character: shells use some of them as marks of their own.
                        _ => return None,
                    }
                }
            }
            c if is_plain(c) => {
                let word = lexer.word.get_or_insert_default();
                // zsh replaces `=name` with the path of that program.
                if c == '=' && word.text.is_empty() {
                    return None;
                }
                word.text.push(c);
            }
            // Whatever it means to the shell, the lexer does not know it.
            _ => return None,
        }
    }
    lexer.finish()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c)
}

fn is_quotable(c: char) -> bool {
    matches!(c, '\t' | '\n') || !c.is_control()
}

#[derive(Default)]
struct Quotable {
    text: String,
    quoted: bool,
}

/// The need for a command after an operator.
#[derive(Default, PartialEq)]
enum Next {
    #[default]
    Optional,
    Required,
}

#[derive(Default)]
struct Lexer {
    commands: Vec<Vec<String>>,
    current: Vec<String>,
    word: Option<Quotable>,
    next: Next,
    changed_directory: bool,
}

impl Lexer {
    fn end_word(&mut self) -> Option<()> {
        let Some(word) = self.word.take() else { return Some(()) };
        if self.current.is_empty() {
            let begins_plainly = |c: char| c.is_ascii_alphanumeric() || "_./".contains(c);
            let is_name = word.text.starts_with(begins_plainly) && !word.text.contains('=');
            if word.quoted || !is_name || UNPREDICTABLE.contains(&word.text.as_str()) {
                return None;
            }
            // Relative to a directory that is not known here.
            if self.changed_directory && word.text.contains('/') && !word.text.starts_with('/') {
                return None;
            }
        }
        self.current.push(word.text);
        Some(())
    }

    fn end_line(&mut self) -> Option<()> {
        self.end_word()?;
        if self.current.is_empty() { Some(()) } else { self.end_command(Next::Optional) }
    }

    fn end_command(&mut self, next: Next) -> Option<()> {
        self.end_word()?;
        let command = std::mem::take(&mut self.current);
        check_builtin(command.first()?, &command[1..])?;
        self.changed_directory |= command[0] == "cd";
        self.commands.push(command);
        self.next = next;
        Some(())
    }

    fn finish(mut self) -> Option<Vec<Vec<String>>> {
        self.end_word()?;
        if !self.current.is_empty() {
            self.end_command(Next::Optional)?;
        }
        (self.next == Next::Optional && !self.commands.is_empty()).then_some(self.commands)
    }
}

/// Checks that a builtin evaluates none of its arguments: `test -v 'a[$(id)]'` runs `id` in bash, and zsh takes the argument
/// of `exit` for arithmetic.
fn check_builtin(name: &str, args: &[String]) -> Option<()> {
    if !is_harmless_builtin(name) {
        return Some(());
    }
    let is_simple = |arg: &String| !arg.contains(['$', '`', '[', '(']);
    let is_number = |arg: &String| arg.bytes().all(|b| b.is_ascii_digit());
    let is_known = match name {
        "test" => !args.iter().any(|arg| EVALUATING_TESTS.contains(&arg.as_str())),
        "exit" => args.iter().all(is_number),
        // They take their arguments as they are.
        _ => true,
    };
    (is_known && args.iter().all(is_simple)).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, commands: &[&[&str]]) {
        let expected = commands.iter().map(|c| c.iter().map(|w| w.to_string()).collect::<Vec<_>>()).collect();
        assert_eq!(plain_commands(text), Some(expected), "{text:?}");
    }

    #[test]
    fn plain_text_is_split_into_its_commands() {
        plain("git status", &[&["git", "status"]]);
        plain("git log --format='%H %s' -n 3", &[&["git", "log", "--format=%H %s", "-n", "3"]]);
        plain("a && b || c; d | e\nf\n\n", &[&["a"], &["b"], &["c"], &["d"], &["e"], &["f"]]);
        plain("a &&\n\n b |\n c", &[&["a"], &["b"], &["c"]]);
        plain("a 'x;y' \"p|q\" 'it''s' ''", &[&["a", "x;y", "p|q", "its", ""]]);
        plain("a;", &[&["a"]]);
        plain("cd /tmp && ls", &[&["cd", "/tmp"], &["ls"]]);
        plain("./run.sh a=b", &[&["./run.sh", "a=b"]]);
        plain("echo if then", &[&["echo", "if", "then"]]);
        plain("grep 'a$' x", &[&["grep", "a$", "x"]]);
    }

    #[test]
    fn everything_else_is_opaque() {
        let opaque = [
            "",
            "  ",
            "\n",
            ";",
            "a;;b",
            "; a",
            "a &",
            "a & b",
            "a |& b",
            "a ||",
            "a &&",
            "a | | b",
            "a\n; b",
            "(a)",
            "{ a; }",
            "a > f",
            "a < f",
            "a $x",
            "a `b`",
            "a $(b)",
            "a \"$x\"",
            "a \"\\x\"",
            "a \\x",
            "a *",
            "a ?",
            "a [x]",
            "a ~",
            "a {x,y}",
            "a #x",
            "a !",
            "! a",
            "if a",
            "time a",
            "a && then",
            "x=1 a",
            "'a' b",
            "a'b' c",
            "\"a\"",
            "a 'b",
            "a \"b",
            "=ls",
            "a =ls",
            "- a",
            "%1",
            "+x",
            ". a",
            "eval a",
            "exec a",
            "command a",
            "export PATH=/x",
            "alias a=b",
            "hash -p /x/git git",
            "printf -v PATH /x",
            "read x",
            "trap a EXIT",
            "test -v 'a[$(id)]'",
            "test x -eq 1",
            "exit 'x'",
            "cd /tmp && ./a",
            "a \r",
            "a '\x01'",
            "repeat 3 a",
            "noglob a",
        ];
        for text in opaque {
            assert_eq!(plain_commands(text), None, "{text:?}");
        }
    }
}
