//! The examples of `toolctl CMD --help`, typed: each does what it is there to show, and exits as it should.

use super::home::Home;
use super::page::Typed;
use super::session::Seat;
use toold_test_support::rig::Daemon;

/// What an example needs first, what is seen and typed while it runs, and the code it exits with. One that is not here needs
/// nothing, is left alone and exits with 0.
struct Scene {
    example: &'static str,
    first: &'static [&'static str],
    /// As in a page: the line that is waited for, then the key.
    shown: &'static [&'static str],
    code: i32,
}

const fn scene(example: &'static str, first: &'static [&'static str]) -> Scene {
    Scene { example, first, shown: &["…"], code: 0 }
}

const WEB: &str = "toolctl exec --name web --if-running return -- sh -c 'echo listening on 8080; echo some error >&2; seq 2000; echo up; exec sleep 1000' && \
     toolctl wait web --match '^up'";
const BUILT: &str = "toolctl exec --name build -- true; toolctl exec --name tests -- true; toolctl wait build tests";
const SERVER: &str =
    "printf '#!/bin/sh\\nexec python3 -m http.server 8080 --bind 127.0.0.1\\n' > server; chmod +x server";
const QUIET_SERVER: &str = "printf '#!/bin/sh\\necho up; exec sleep 1000\\n' > server; chmod +x server";
const REPL: &str = "toolctl exec --stdin --name repl -- python3 -i";
const SORT: &str = "toolctl exec --stdin --name sort -- sort";
const UNPACK: &str = "toolctl exec --stdin --name unpack --cwd \"$(mktemp -d)\" -- tar x";
const EDITOR: &str = "toolctl exec --pty --name editor -- cat";
const UNITS: &str = "toolctl service install --units-only";
/// What the stand-in for journalctl exits with: `service logs` hands it on.
const JOURNAL: i32 = 7;

const SCENES: &[Scene] = &[
    scene("toolctl exec --name web -- ./server", &[QUIET_SERVER]),
    Scene { shown: &["up", "^C"], code: 130, ..scene("toolctl log -f web", &[]) },
    Scene { shown: &["notes.txt: new file", "^\\", "…"], ..scene("toolctl run -t -- vim notes.txt", &[]) },
    scene("toolctl exec --name web --ready-port 8080 --ready-timeout 30s -- ./server", &[SERVER]),
    Scene { shown: &["me@here:~/project$", "^\\", "…"], ..scene("toolctl attach dev", &[]) },
    Scene { shown: &["me@here:~/project$", "^C", "…"], ..scene("toolctl attach -r dev", &[]) },
    Scene { shown: &["me@here:~/project$", "^P^Q", "…"], ..scene("toolctl attach dev --detach-keys C-p,C-q", &[]) },
    scene("toolctl poll web", &[WEB]),
    Scene {
        shown: &["…", "some error", "…", "^C"],
        code: 130,
        ..scene("toolctl log web -f --grep 'error|warn' -C 2", &[WEB])
    },
    scene("toolctl wait build tests --timeout 10m", &[BUILT]),
    scene("toolctl wait web --match 'listening on' && toolctl poll web", &[WEB]),
    scene("toolctl notify build", &[BUILT]),
    Scene {
        shown: &["…", "… exited … exit 0 …", "^C"],
        code: 130,
        ..scene("toolctl events -f --type exited --type watch_match", &[BUILT])
    },
    scene("toolctl kill web", &[WEB]),
    scene("toolctl kill -9 @last --grace 0", &["toolctl exec -- sleep 1000"]),
    scene("toolctl signal web HUP", &[WEB]),
    scene("toolctl signal proc_0b3b USR1", &["ID=$(toolctl exec -- sleep 1000)"]),
    scene("toolctl write repl 'no newline'", &[REPL]),
    scene("tar c . | toolctl write unpack -", &[UNPACK]),
    scene("toolctl submit repl 'print(6 * 7)'", &[REPL]),
    scene("toolctl close sort", &[SORT]),
    scene("toolctl write sort - < words.txt && toolctl close sort", &["toolctl wait sort", SORT, "seq 99 > words.txt"]),
    scene("toolctl resize editor 24x80", &[EDITOR]),
    Scene { shown: &["ID …", "…", "^C", "…"], ..scene("toolctl list --watch --sort cpu", &[WEB]) },
    scene("toolctl inspect web", &[WEB]),
    scene("toolctl forget build tests", &[BUILT]),
    scene("toolctl shutdown", &["toolctl info"]),
    scene("toolctl shutdown --kill", &["toolctl info"]),
    scene("toolctl service start", &[UNITS]),
    scene("toolctl service stop", &[UNITS]),
    scene("toolctl service restart", &[UNITS]),
    scene("toolctl service status", &[UNITS]),
    Scene { code: JOURNAL, ..scene("toolctl service logs -f", &[UNITS]) },
    Scene { code: JOURNAL, ..scene("toolctl service logs -n 50 -- --since today", &[]) },
    scene("toolctl man | man -l -", &["export MANPAGER=cat"]),
];

/// The commands under these words, as their help lists them.
fn commands(d: &Daemon, words: &[&str]) -> Vec<Vec<String>> {
    let help = d.ctl(&[words, &["--help"]].concat()).stdout;
    // Under one heading or several: everything before the options and the arguments.
    let listed = help.lines().take_while(|line| !["Options:", "Global options:", "Arguments:"].contains(line));
    let mut all = vec![words.iter().map(|word| word.to_string()).collect()];
    for name in listed
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
    {
        // `service help` is clap's own.
        if words.is_empty() || name != "help" {
            all.extend(commands(d, &[words, &[name]].concat()));
        }
    }
    all
}

/// The examples in a command's help, without what is said about them.
fn examples(d: &Daemon, words: &[String]) -> Vec<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let help = d.ctl(&words).stdout;
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1).filter_map(|line| line.strip_prefix("  "));
    lines.map(|line| line.split("  #").next().unwrap().trim().to_owned()).collect()
}

/// Types the examples of one command in a home of their own, and gives what went wrong.
fn wrong(examples: &[String]) -> Vec<String> {
    let home = Home::new();
    let mut session: Vec<(i32, Typed)> = Vec::new();
    let typed = |words: &str, shown: &[&str]| {
        let shown = shown.iter().map(|line| line.to_string()).collect();
        Typed { words: words.into(), shown, lines: 0..0 }
    };
    for example in examples {
        let scene = SCENES.iter().find(|scene| scene.example == example);
        session.extend(scene.iter().flat_map(|scene| scene.first).map(|words| (0, typed(words, &["…"]))));
        session.push((scene.map_or(0, |scene| scene.code), typed(example, scene.map_or(&["…"], |scene| scene.shown))));
    }
    let words: Vec<Typed> = session.iter().map(|(_, typed)| typed.clone()).collect();
    let mut seat = Seat::take(&home, "examples", &words);
    let outcomes = session.iter().enumerate().map(|(i, (code, typed))| (code, &typed.words, seat.watch(i, typed)));
    let bad = outcomes.filter(|(code, _, outcome)| **code != outcome.code);
    bad.map(|(code, words, outcome)| format!("{words}\nexits with {}, not {code}: {:#?}", outcome.code, outcome.screen))
        .collect()
}

#[test]
fn every_example_of_every_command_does_what_it_shows() {
    let d = Daemon::prepare("", &[]);
    let all: Vec<Vec<String>> = commands(&d, &[]).iter().map(|words| examples(&d, words)).collect();
    let count: usize = all.iter().map(Vec::len).sum();
    assert!(count > 55, "only {count} examples were found");
    for scene in SCENES {
        assert!(all.iter().flatten().any(|example| example == scene.example), "no example any more: {}", scene.example);
    }
    let wrong: Vec<String> = all.iter().flat_map(|examples| wrong(examples)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
