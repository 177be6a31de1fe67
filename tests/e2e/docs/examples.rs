//! The examples of `toolctl CMD --help`, typed at a terminal: each works and exits with the expected code.

use super::home::Home;
use super::page::Typed;
use super::session::Session;
use toold_test_support::rig::Daemon;

/// Commands that an example needs first, keys that are typed while it runs, and its exit code. An example that is not listed
/// needs nothing, gets no keys and exits with 0.
struct Setup {
    example: &'static str,
    first: &'static [&'static str],
    /// As in a page: the line to wait for, then the key.
    shown: &'static [&'static str],
    code: i32,
}

const fn setup(example: &'static str, first: &'static [&'static str]) -> Setup {
    Setup { example, first, shown: &["…"], code: 0 }
}

const WEB: &str = "toolctl exec --name web --if-running return -- sh -c 'echo listening on 8080; echo some error >&2; seq 2000; echo up; exec sleep 1000' && \
     toolctl wait web --match '^up'";
const WORKERS: &str = "for name in db worker-1; do \
     toolctl exec --name $name --if-running return -- sh -c 'echo up; exec sleep 1000'; toolctl wait $name --match up; done";
const BUILT: &str = "toolctl exec --name build -- true; toolctl exec --name tests -- true; toolctl wait build tests";
const NAP: &str = "toolctl exec --name build --if-running restart -- sleep 1000";
const SERVER: &str =
    "printf '#!/bin/sh\\nexec python3 -m http.server 8080 --bind 127.0.0.1\\n' > server; chmod +x server";
const QUIET_SERVER: &str = "printf '#!/bin/sh\\necho up; exec sleep 1000\\n' > server; chmod +x server";
const REPL: &str = "toolctl exec --stdin --name repl -- python3 -i";
const SORT: &str = "toolctl exec --stdin --name sort -- sort";
const UNPACK: &str = "toolctl exec --stdin --name unpack --cwd \"$(mktemp -d)\" -- tar x";
const EDITOR: &str = "toolctl exec --pty --name editor -- cat";
const MENU: &str = "toolctl exec --pty --name menu -- cat";
const PASSWORD: &str = "toolctl exec --pty --name setup --if-running return -- sh -c 'stty -echo; exec cat'";
const CHANGE: &str =
    "printf '*** Begin Patch\\n*** Add File: new-%s.txt\\n+text\\n*** End Patch\\n' $RANDOM > change.patch";
const UNITS: &str = "toolctl service install --units-only";
const SCRIPT: &str = "toolctl script -c 'from toold_tools import *; terminal(\"true\")'";
const AUDIT: &str = "(toolctl script --name audit -c 'import time; time.sleep(1000)' > audit.out 2>&1 &); \
     until toolctl wait audit --match never --timeout 1ms; [ $? = 124 ]; do :; done";
const KERNEL: &str = "toolctl kernel list --json | grep -q '\"running\"' || toolctl kernel open --name py";
/// The exit code of the fake journalctl, which `service logs` returns.
const JOURNAL_CODE: i32 = 7;

const SETUPS: &[Setup] = &[
    setup("toolctl exec --name web -- ./server", &[QUIET_SERVER]),
    Setup { shown: &["up", "^C"], code: 130, ..setup("toolctl log -f web", &[]) },
    Setup { shown: &["notes.txt: new file", "^\\", "…"], ..setup("toolctl run -t -- vim notes.txt", &[]) },
    setup("toolctl exec --name web --ready-port 8080 --ready-timeout 30s -- ./server", &[SERVER]),
    Setup { shown: &["me@here:~/project$", "^\\", "…"], ..setup("toolctl attach dev", &[]) },
    Setup { shown: &["me@here:~/project$", "^C", "…"], ..setup("toolctl attach -r dev", &[]) },
    Setup { shown: &["me@here:~/project$", "^P^Q", "…"], ..setup("toolctl attach dev --detach-keys C-p,C-q", &[]) },
    Setup { shown: &["no question waits; q leaves", "^C"], ..setup("toolctl approvals -f", &[]) },
    // No approval has this id.
    Setup { code: 3, ..setup("toolctl approve appr_0123456789ab", &[]) },
    Setup { code: 3, ..setup("toolctl approve appr_0123456789ab --session", &[]) },
    Setup { code: 3, ..setup("toolctl deny appr_0123456789ab -m 'use the staging server'", &[]) },
    Setup { code: 3, ..setup("toolctl deny appr_0123456789ab --abort", &[]) },
    setup("toolctl script calls @last", &[SCRIPT]),
    setup("toolctl script result @last", &[SCRIPT]),
    setup("toolctl script cancel audit", &[AUDIT]),
    // It has ended, so that nothing is left to cancel.
    setup("toolctl script cancel @last --call 1f0c5a77-3", &[SCRIPT]),
    setup("toolctl kernel interrupt py", &[KERNEL]),
    setup("toolctl kernel reset py", &[KERNEL]),
    setup("toolctl kernel close py", &[KERNEL]),
    setup("toolctl kernel close py --grace 0", &[KERNEL]),
    setup("toolctl why build", &[BUILT]),
    setup("toolctl policy suggest build", &[BUILT]),
    setup("toolctl patch change.patch", &[CHANGE]),
    setup("toolctl patch --check < change.patch", &[CHANGE]),
    // No patch has this id.
    Setup { code: 3, ..setup("toolctl patch --revert patch_0123456789ab", &[]) },
    setup("toolctl poll web", &[WEB]),
    Setup {
        shown: &["…", "some error", "…", "^C"],
        code: 130,
        ..setup("toolctl log web -f --grep 'error|warn' -C 2", &[WEB])
    },
    setup("toolctl wait build tests --timeout 10m", &[BUILT]),
    setup("toolctl wait web --match 'listening on' && toolctl poll web", &[WEB]),
    setup("toolctl wait setup --input", &[PASSWORD]),
    setup("toolctl notify build", &[BUILT]),
    Setup {
        shown: &["…", "… exited … exit 0 …", "^C"],
        code: 130,
        ..setup("toolctl events -f --type exited --type watch_match", &[BUILT])
    },
    setup("toolctl kill web", &[WEB]),
    setup("toolctl kill web 'worker-*'", &[WEB, WORKERS]),
    setup("toolctl kill --label team=web", &[]),
    Setup {
        shown: &["…", "…| up", "…", "^C"],
        code: 130,
        ..setup("toolctl log -f -t web db 'worker-*'", &[WEB, WORKERS])
    },
    setup("toolctl kill -9 @last --grace 0", &["toolctl exec -- sleep 1000"]),
    setup("toolctl signal web HUP", &[WEB]),
    setup("toolctl signal proc_0b3b USR1", &["ID=$(toolctl exec -- sleep 1000)"]),
    setup("toolctl restart web", &[WEB]),
    setup("toolctl restart web --keep-env --grace 30s", &[]),
    setup("toolctl pause build", &[NAP]),
    setup("toolctl resume build", &[NAP]),
    setup("toolctl pause @last", &[NAP]),
    setup("toolctl resume @last", &[NAP]),
    setup("toolctl write repl 'no newline'", &[REPL]),
    setup("tar c . | toolctl write unpack -", &[UNPACK]),
    setup("toolctl submit repl 'print(6 * 7)'", &[REPL]),
    Setup { shown: &["secret for setup:", "^C"], code: 130, ..setup("toolctl submit --secret setup", &[PASSWORD]) },
    setup("toolctl keys editor Esc :wq Enter", &[EDITOR]),
    setup("toolctl keys menu Down Down Enter", &[MENU]),
    setup("toolctl screen editor", &[EDITOR]),
    setup("toolctl close sort", &[SORT]),
    setup("toolctl write sort - < list.txt && toolctl close sort", &["toolctl wait sort", SORT, "seq 99 > list.txt"]),
    setup("toolctl resize editor 24x80", &[EDITOR]),
    Setup { shown: &["ID …", "…", "^C", "…"], ..setup("toolctl list --watch --sort cpu", &[WEB]) },
    Setup { shown: &["toold …", "…", "^C", "…"], ..setup("toolctl top", &[WEB]) },
    Setup { shown: &["http://127.0.0.1:…", "…", "^C"], code: 130, ..setup("toolctl web", &[]) },
    Setup { shown: &["http://127.0.0.1:…", "…", "^C"], code: 130, ..setup("toolctl web --write", &[]) },
    setup("toolctl inspect web", &[WEB]),
    setup("toolctl forget build tests", &[BUILT]),
    setup("toolctl shutdown", &["toolctl info"]),
    setup("toolctl shutdown --kill", &["toolctl info"]),
    setup("toolctl service start", &[UNITS]),
    setup("toolctl service stop", &[UNITS]),
    setup("toolctl service restart", &[UNITS]),
    setup("toolctl service status", &[UNITS]),
    Setup { code: JOURNAL_CODE, ..setup("toolctl service logs -f", &[UNITS]) },
    Setup { code: JOURNAL_CODE, ..setup("toolctl service logs -n 50 -- --since today", &[]) },
    setup("toolctl man | man -l -", &["export MANPAGER=cat"]),
];

/// Every command below this one, as its help lists them.
fn commands(d: &Daemon, prefix: &[&str]) -> Vec<Vec<String>> {
    let help = d.ctl(&[prefix, &["--help"]].concat()).stdout;
    // Under one heading or several: everything before the options and the arguments.
    let listed = help.lines().take_while(|line| !["Options:", "Global options:", "Arguments:"].contains(line));
    let mut all = vec![prefix.iter().map(|part| part.to_string()).collect()];
    for name in listed
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
    {
        // `service help` is clap's own.
        if prefix.is_empty() || name != "help" {
            all.extend(commands(d, &[prefix, &[name]].concat()));
        }
    }
    all
}

/// The examples in the help of a command, without their descriptions.
fn examples(d: &Daemon, command: &[String]) -> Vec<String> {
    let args: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    let help = d.ctl(&args).stdout;
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1).filter_map(|line| line.strip_prefix("  "));
    lines.map(|line| line.split("  #").next().unwrap().trim().to_owned()).collect()
}

/// Types the examples of one command in a home of their own and returns the failures.
fn failures(examples: &[String]) -> Vec<String> {
    let home = Home::new();
    let mut session: Vec<(i32, Typed)> = Vec::new();
    let typed = |command: &str, shown: &[&str]| {
        let shown = shown.iter().map(|line| line.to_string()).collect();
        Typed { command: command.into(), shown, lines: 0..0 }
    };
    for example in examples {
        let setup = SETUPS.iter().find(|setup| setup.example == example);
        session.extend(setup.iter().flat_map(|setup| setup.first).map(|command| (0, typed(command, &["…"]))));
        session.push((setup.map_or(0, |setup| setup.code), typed(example, setup.map_or(&["…"], |setup| setup.shown))));
    }
    let commands: Vec<Typed> = session.iter().map(|(_, typed)| typed.clone()).collect();
    let mut terminal = Session::start(&home, "examples", &commands);
    let outcomes =
        session.iter().enumerate().map(|(i, (code, typed))| (code, &typed.command, terminal.watch(i, typed)));
    let bad = outcomes.filter(|(code, _, outcome)| **code != outcome.code);
    bad.map(|(code, command, outcome)| {
        format!("{command}\nexits with {}, not {code}: {:#?}", outcome.code, outcome.screen)
    })
    .collect()
}

#[test]
fn every_example_of_every_command_works_as_shown() {
    let d = Daemon::prepare("", &[]);
    let all: Vec<Vec<String>> = commands(&d, &[]).iter().map(|command| examples(&d, command)).collect();
    let count: usize = all.iter().map(Vec::len).sum();
    assert!(count > 55, "only {count} examples were found");
    for setup in SETUPS {
        assert!(all.iter().flatten().any(|example| example == setup.example), "no example any more: {}", setup.example);
    }
    let wrong: Vec<String> = all.iter().flat_map(|examples| failures(examples)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
