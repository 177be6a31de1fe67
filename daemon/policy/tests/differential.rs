//! Random texts that the lexer calls plain, run by real shells: no command runs that was not predicted. The commands are stubs
//! that print their arguments. `TOOLD_LEXER_TEXTS` is the number of accepted texts; the default is small.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use toold_policy::plain_commands;

const SHELLS: [&str; 3] = ["bash", "dash", "zsh"];
const DEFAULT_TEXTS: usize = 600;
/// Texts that one shell runs, each in a subshell of its own.
const BATCH_LEN: usize = 200;

/// Names of the stubs.
const STUBS: [&str; 6] = ["alpha", "beta", "git", "ls", "x.y", "a-b"];

/// Pieces of texts. Most are plain; the others are what an attacker would try.
const PIECES: &[&str] = &[
    "alpha",
    "beta",
    "git",
    "ls",
    "x.y",
    "a-b",
    "alpha ",
    "git status",
    "ls -l ",
    " ",
    " ",
    "\t",
    "\n",
    "\n",
    ";",
    "; ",
    "&&",
    " && ",
    "||",
    " || ",
    "|",
    " | ",
    "'",
    "'",
    "''",
    "\"",
    "\"",
    "\"\"",
    "'a b'",
    "\"c d\"",
    "'x;git y'",
    "\"p|ls\"",
    "'\n'",
    "a=b",
    "=",
    "=ls",
    "=git",
    "--x=y",
    "-",
    "-n",
    "%",
    "%1",
    "@",
    "+",
    ":",
    ",",
    ".",
    "./alpha",
    "/",
    "..",
    "0",
    "1",
    "2",
    "é",
    "'é'",
    "\"ß→\"",
    "true",
    "false",
    "cd",
    "cd /",
    "pwd",
    "echo",
    "echo x",
    "test",
    "test -v",
    "test x -eq ",
    "exit",
    "exit 0",
    "kill",
    "type",
    "which",
    "which ls",
    "&",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    "$",
    "$x",
    "$(git)",
    "`ls`",
    "\\",
    "*",
    "?",
    "[",
    "]",
    "~",
    "#",
    "!",
    "^",
    "\r",
    "\u{b}",
    "\u{7f}",
    "\u{1}",
    "\u{a0}",
    "if",
    "then",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "while",
    "case",
    "esac",
    "time",
    "function",
    "select",
    "until",
    "repeat",
    "coproc",
    "foreach",
    "end",
    "[[",
    "]]",
    "nocorrect",
    "noglob",
    "alias",
    "alias git=ls",
    "eval",
    "eval git",
    "exec",
    "exec ls",
    "command",
    "builtin",
    "export",
    "export PATH=/",
    "hash",
    "hash -p",
    "set",
    "unset",
    "trap",
    "trap git",
    "source",
    "printf",
    "printf -v",
    "read",
    "'a[$(git)]'",
    "'$(git)'",
    "\"it's\"",
    "run-help",
    "which-command",
    "r",
    "log",
    "print",
    "let",
    "emulate",
    "setopt",
    "zmodload",
    "typeset",
    "local",
    "declare",
    "readonly",
    "enable",
    "shopt",
];

/// A xorshift generator: the same texts in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn text(&mut self) -> String {
        // Half of the texts are made of the first pieces only: others are rarely plain.
        let bound = if self.below(2) == 0 { 40 } else { PIECES.len() };
        let len = 1 + self.below(9);
        let mut text = if self.below(3) > 0 { STUBS[self.below(STUBS.len())].to_string() + " " } else { String::new() };
        for _ in 0..len {
            text.push_str(PIECES[self.below(bound)]);
        }
        text
    }
}

/// Makes the stubs: programs that write the number of the text, their name and their arguments to descriptor 9, as one write.
fn make_stubs(dir: &Path) {
    for name in STUBS {
        let path = dir.join(name);
        let script = "#!/bin/sh\nout=\"${0##*/}\"\nfor a in \"$@\"; do out=\"$out\u{1f}$a\"; done\nprintf '%s\\035%s\\036' \"$TEXT\" \"$out\" >&9\n";
        std::fs::write(&path, script).expect("writable");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("own file");
    }
}

/// Runs texts in a shell and returns the commands that ran, text by text.
fn run(shell: &str, texts: &[String], dir: &Path) -> Vec<Vec<Vec<String>>> {
    let out = dir.join("out");
    let mut script = String::new();
    let quote = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    for (at, text) in texts.iter().enumerate() {
        // Each text in a shell of its own, by -c as the daemon runs it.
        script += &format!("TEXT={at} {shell} {} -c {} </dev/null >/dev/null 2>&1\n", flags(shell), quote(text));
    }
    // A new file: zsh may end before a program on the left of a pipe has, which would write into the next batch.
    let _ = std::fs::remove_file(&out);
    drop(std::fs::File::create(&out).expect("writable"));
    let mut child = Command::new("/bin/sh")
        .args(["-s"])
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", dir.join("bin").display()))
        .env("OUT", &out)
        .current_dir(dir.join("cwd"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(format!("exec 9>>\"$OUT\"\n{script}").as_bytes()).expect("the shell reads");
    drop(stdin);
    child.wait().expect("the shell ends");
    let written = String::from_utf8_lossy(&std::fs::read(&out).expect("output")).into_owned();
    let mut found = vec![Vec::new(); texts.len()];
    for entry in written.split('\u{1e}').filter(|entry| !entry.is_empty()) {
        let (at, command) = entry.split_once('\u{1d}').expect("the text and the command");
        let at: usize = at.parse().expect("an index");
        found[at].push(command.split('\u{1f}').map(String::from).collect());
    }
    found
}

/// Without files of the system or the user.
fn flags(shell: &str) -> &'static str {
    match shell {
        "zsh" => "-f",
        _ => "",
    }
}

#[test]
fn no_shell_runs_a_command_that_the_lexer_did_not_predict() {
    let wanted = std::env::var("TOOLD_LEXER_TEXTS").ok().and_then(|n| n.parse().ok()).unwrap_or(DEFAULT_TEXTS);
    let seed = std::env::var("TOOLD_LEXER_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0x9e37_79b9_7f4a_7c15);
    let dir = tempfile::tempdir().expect("a temporary directory");
    for name in ["bin", "cwd"] {
        std::fs::create_dir(dir.path().join(name)).expect("a directory");
    }
    make_stubs(&dir.path().join("bin"));
    make_stubs(&dir.path().join("cwd"));
    let shells: Vec<&str> = SHELLS.into_iter().filter(|shell| Path::new("/bin").join(shell).exists()).collect();
    for shell in SHELLS.iter().filter(|shell| !shells.contains(shell)) {
        println!("skipped: {shell} is not installed");
    }
    let (mut random, mut accepted, mut tried) = (Random(seed), 0, 0u64);
    let mut ran = vec![0usize; shells.len()];
    while accepted < wanted {
        let mut texts = Vec::new();
        while texts.len() < BATCH_LEN.min(wanted - accepted) {
            tried += 1;
            let text = random.text();
            // A kill of a number could hit this very test.
            if plain_commands(&text).is_some_and(|commands| commands.iter().all(|words| words[0] != "kill")) {
                texts.push(text);
            }
        }
        accepted += texts.len();
        for (shell, ran) in shells.iter().zip(&mut ran) {
            let found = run(shell, &texts, dir.path());
            for (text, commands) in texts.iter().zip(found) {
                let predicted = plain_commands(text).expect("it was accepted");
                *ran += commands.len();
                let mut left: Vec<Vec<String>> = predicted
                    .iter()
                    .map(|words| {
                        let name = words[0].rsplit('/').next().unwrap_or_default().to_string();
                        std::iter::once(name).chain(words[1..].iter().cloned()).collect()
                    })
                    .collect();
                for command in commands {
                    let at = left.iter().position(|words| *words == command);
                    let at =
                        at.unwrap_or_else(|| panic!("{shell} ran {command:?} for {text:?}, predicted {predicted:?}"));
                    left.remove(at);
                }
            }
        }
    }
    for (shell, ran) in shells.iter().zip(&ran) {
        println!("{shell}: {accepted} accepted texts of {tried}, {ran} commands ran, 0 unpredicted");
        assert!(*ran > 0, "{shell} ran the stubs");
    }
}
