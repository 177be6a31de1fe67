//! Two or more worked examples for every command whose own file has none.

/// The examples of a command, by its words. None: its own file has them, or it is no command of ours.
pub fn of(path: &str) -> Option<&'static [&'static str]> {
    EXAMPLES.iter().find(|(words, _)| *words == path).map(|(_, lines)| *lines)
}

const EXAMPLES: &[(&str, &[&str])] = &[
    ("toolctl poll", &["toolctl poll web", "toolctl poll @last --cursor 4096 --wait 30s"]),
    (
        "toolctl wait",
        &["toolctl wait build tests --timeout 10m", "toolctl wait web --match 'listening on' && toolctl poll web"],
    ),
    ("toolctl kill", &["toolctl kill web", "toolctl kill -9 @last --grace 0"]),
    ("toolctl signal", &["toolctl signal web HUP", "toolctl signal proc_0b3b USR1"]),
    ("toolctl write", &["toolctl write repl 'no newline'", "tar c . | toolctl write unpack -"]),
    ("toolctl submit", &["toolctl submit repl 'print(6 * 7)'", "toolctl submit @last yes"]),
    ("toolctl close", &["toolctl close sort", "toolctl write sort - < words.txt && toolctl close sort"]),
    ("toolctl resize", &["toolctl resize editor 24x80", "toolctl resize @last 50x132"]),
    ("toolctl info", &["toolctl info", "toolctl info --json | jq .limits"]),
    ("toolctl shutdown", &["toolctl shutdown", "toolctl shutdown --kill"]),
    ("toolctl service", &["toolctl service install", "toolctl service status --json"]),
    ("toolctl service install", &["toolctl service install", "toolctl service install --units-only"]),
    ("toolctl service uninstall", &["toolctl service uninstall", "toolctl service uninstall --json"]),
    ("toolctl service start", &["toolctl service start", "toolctl service start && toolctl service status"]),
    ("toolctl service stop", &["toolctl service stop", "toolctl service stop && toolctl service status"]),
    ("toolctl service restart", &["toolctl service restart", "cargo install --path . && toolctl service restart"]),
    ("toolctl service status", &["toolctl service status", "toolctl service status --json | jq .service"]),
    ("toolctl service logs", &["toolctl service logs -f", "toolctl service logs -n 50 -- --since today"]),
    (
        "toolctl doctor",
        &["toolctl doctor", "toolctl doctor --json | jq -r '.checks[] | select(.verdict != \"ok\").mend'"],
    ),
    (
        "toolctl completions",
        &[
            "bash=~/.local/share/bash-completion/completions",
            "mkdir -p $bash && toolctl completions bash > $bash/toolctl",
            "zsh=~/.local/share/zsh/site-functions",
            "mkdir -p $zsh && toolctl completions zsh > $zsh/_toolctl",
            "fish=~/.config/fish/completions",
            "mkdir -p $fish && toolctl completions fish > $fish/toolctl.fish",
        ],
    ),
    ("toolctl man", &["toolctl man | man -l -", "toolctl man ~/.local/share/man/man1"]),
    ("toolctl help", &["toolctl help kill", "toolctl help topics"]),
];
