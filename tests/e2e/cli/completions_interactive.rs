//! Completions at a terminal: a line, TAB, and the line that the shell's own editor makes of it.

use serde_json::json;
use std::process::Command;
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, skip_unless};
use toold_test_support::term::Term;

/// The line before TAB and the start of the line after it. `web` runs, and `nightly` has read events.
const TYPED: &[(&str, &str)] = &[
    ("toolctl events --type watch_d", "toolctl events --type watch_disabled"),
    ("toolctl events --type=needs", "toolctl events --type=needs_input"),
    ("toolctl events --consumer ni", "toolctl events --consumer nightly"),
    ("toolctl wait web --consumer ni", "toolctl wait web --consumer nightly"),
    ("toolctl help exit", "toolctl help exit-codes"),
    ("toolctl help insp", "toolctl help inspect"),
    ("toolctl help service unin", "toolctl help service uninstall"),
    ("toolctl list --status los", "toolctl list --status lost"),
    ("toolctl list --sort st", "toolctl list --sort status"),
    ("toolctl log web --stream stde", "toolctl log web --stream stderr"),
    ("toolctl exec --name x --if-running ret", "toolctl exec --name x --if-running return"),
    ("toolctl kill -s WIN", "toolctl kill -s WINCH"),
    ("toolctl kill web --signal SIGWIN", "toolctl kill web --signal SIGWINCH"),
    ("toolctl signal web vta", "toolctl signal web vtalrm"),
    ("toolctl --color alw", "toolctl --color always"),
    ("toolctl list --color=nev", "toolctl list --color=never"),
    ("toolctl run -c 'make all' --if", "toolctl run -c 'make all' --if-running"),
    ("toolctl run -- toold-fet", "toolctl run -- toold-fetch"),
    ("toolctl exec --env A=b --name x toold-fet", "toolctl exec --env A=b --name x toold-fetch"),
    ("toolctl run --env A=b -- cat only-f", "toolctl run --env A=b -- cat only-file"),
    ("toolctl run -- toolctl log web --stream stdo", "toolctl run -- toolctl log web --stream stdout"),
];

/// At C-x p the shell prints the edited line and clears it.
const BASH: &str = r#"PS1='$ '; bind -x '"\C-xp": printf "<%s>\n" "$READLINE_LINE"; READLINE_LINE= READLINE_POINT=0'; source <(toolctl completions bash); echo re''ady"#;
const ZSH: &str = r#"PS1='$ '; autoload -Uz compinit; compinit -D -u; source <(toolctl completions zsh); shown() { zle -I; print -r -- "<$BUFFER>"; BUFFER=; }; zle -N shown; bindkey '^Xp' shown; echo re''ady"#;

fn daemon() -> Daemon {
    let d = Daemon::start();
    assert_eq!(d.ctl(&["exec", "--name", "web", "--", "/bin/sleep", "1000"]).code, 0);
    d.ok("events.next", json!({"consumer": "nightly"}));
    std::fs::write(d.root().join("only-file"), "").unwrap();
    d
}

/// Types every line into a shell on a terminal.
fn type_all(shell: &str, setup: &str) {
    let d = daemon();
    let term = Term::shell(&d, &format!("PATH=${{0%/*}}:$PATH exec {shell}"), &[]);
    term.types(&format!("{setup}\n"));
    term.printed("ready");
    for (line, completed) in TYPED {
        term.types(&format!("{line}\t\x18p"));
        term.printed(&format!("<{completed}"));
    }
}

#[test]
fn bash_completes_values_commands_and_files_as_they_are_typed() {
    type_all("bash --norc --noprofile -i", BASH);
}

#[test]
fn zsh_completes_values_commands_and_files_as_they_are_typed() {
    if !skip_unless(Command::new("zsh").arg("--version").output().is_ok(), "zsh is not installed") {
        type_all("zsh -f -i", ZSH);
    }
}

#[test]
fn fish_completes_values_commands_and_files_as_they_are_typed() {
    if skip_unless(Command::new("fish").arg("--version").output().is_ok(), "fish is not installed") {
        return;
    }
    let d = daemon();
    for (line, completed) in TYPED {
        let script = "toolctl completions fish | source; complete -C$argv[1]";
        let output = output_of(d.tool("fish", &["--no-config", "-c", script, line]).spawn().unwrap());
        let value = completed.rsplit(' ').next().unwrap();
        let offered: Vec<&str> = output.stdout.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(offered, [value], "{line}: {output:?}");
    }
}
