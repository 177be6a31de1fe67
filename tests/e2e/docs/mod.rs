//! README and `docs/` show what happens: every session in them is typed at a terminal, in the order of its page.
//!
//! Commands of a page are in ```` ```console ```` blocks. They run in one shell, in a home of their own; the shown output
//! is compared (`docs/compare.rs`). A command exits with 0, unless the next one prints `$?`. `UPDATE_GOLDEN=1` writes what
//! happened into pages that differ, with the ids and times of one run.

mod agents;
mod compare;
mod examples;
mod home;
mod page;
mod session;

use compare::{ids, pairs, updated_line};
use home::Home;
use page::{Block, Page, Typed};
use serde_json::json;
use session::{Outcome, Session, key};
use std::collections::HashMap;
use std::fs;
use toold_test_support::rig::Daemon;

/// Commands that are typed and not shown: the page, the command that follows (empty: any), and the command.
const UNSEEN: &[(&str, &str, &str)] = &[
    ("docs/cli.md", "", "toolctl exec --name web --ready-port 8765 -- python3 -u -m http.server 8765 --bind 127.0.0.1"),
    (
        "docs/cli.md",
        "",
        "toolctl exec --name tests --timeout 15m --memory 512M -c 'for i in 1 2 3; do echo \"test $i ok\"; done; echo \"warning: slow\"; echo \"test 4 FAILED\"; sleep 300; true'",
    ),
    ("docs/cli.md", "", "toolctl wait tests --match FAILED"),
    ("docs/cli.md", "", "toolctl run -- sh -c 'echo hello; exit 3' || true"),
    ("docs/cli.md", "", "toolctl wait tests --quiet 200ms"),
    ("docs/patch.md", "", "printf 'fn main() {\\n    println!(\"hello\");\\n}\\n' > main.rs"),
    (
        "docs/patch.md",
        "",
        "printf '%s\\n' '*** Begin Patch' '*** Update File: main.rs' '@@ fn main() {' '-    println!(\"hello\");' '+    println!(\"hello, world\");' '*** Add File: notes/todo.txt' '+read the manual' '*** End Patch' > change.patch",
    ),
    (
        "docs/patch.md",
        "",
        "printf '%s\\n' \"apply_patch <<'EOF'\" '*** Begin Patch' '*** Update File: main.rs' '-    println!(\"hello\");' '+    println!(\"bye\");' '*** End Patch' 'EOF' > command",
    ),
    ("docs/attach.md", "", "echo 'remember the milk' > notes.txt"),
    // A person looks at the screen when the program has drawn it.
    ("docs/screen.md", "toolctl keys pager PageDown Down", "toolctl wait pager --quiet 300ms > /dev/null"),
    ("docs/screen.md", "toolctl screen pager", "toolctl wait pager --quiet 300ms > /dev/null"),
    // Both show the current time, and the next command would show a later one.
    ("README.md", "toolctl events -n 4", "toolctl events --consumer unseen --from oldest --type completion --wait 30s"),
    (
        "docs/events.md",
        "toolctl events -n 4",
        "toolctl events --consumer unseen --from oldest --type completion --wait 30s",
    ),
    // The server has printed its line, as the reader of the page has seen by then.
    ("README.md", "toolctl log web -n 2", "toolctl wait web --match 404 > /dev/null"),
];

/// Commands of a page that are not run, and the reason.
const NOT_RUN: &[(&str, &str, &str)] = &[];

/// The maximum duration of a session in seconds.
const MAX_SESSION_SECS: u32 = 120;

/// The code of a command that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Prefixes of lines about building this repository.
const BUILDING: &[&str] = &[
    "cargo ",
    "bash .ci/run",
    "rustup ",
    "git ",
    "packaging/deb",
    "tests/counts",
    "TOOLD_DAMAGE_ROUNDS=",
    "TOOLD_SOAK_SECONDS=",
];

/// The commands of a page with the unseen ones between them; those of the page have their number.
fn session(page: &Page) -> Vec<(Option<usize>, Typed)> {
    let unseen = |command: &str| Typed { command: command.into(), shown: vec!["…".into()], lines: 0..0 };
    let before = |typed: &str| {
        let ours = UNSEEN.iter().filter(move |(name, before, _)| *name == page.name && typed == *before);
        ours.map(|(_, _, command)| (None, unseen(command))).collect::<Vec<_>>()
    };
    let mut all = before("");
    for (number, typed) in page.typed().into_iter().enumerate() {
        if NOT_RUN.iter().any(|(name, command, _)| *name == page.name && *command == typed.command) {
            continue;
        }
        let plain = typed.command.split("  #").next().unwrap().trim();
        all.extend(before(plain));
        all.push((Some(number), typed.clone()));
    }
    all
}

/// One command of a page after it was typed.
struct Checked {
    /// Its number in the page.
    number: usize,
    outcome: Outcome,
    /// Pairs of shown lines and lines on the screen. None if they do not match.
    lines: Option<Vec<(usize, usize)>>,
}

/// Types a page. Returns its commands with their outcomes, and the differences from the page.
fn typed(page: &Page) -> (Vec<Checked>, Vec<String>) {
    let home = Home::new();
    for block in &page.blocks {
        if let Block::Text { language, text } = block {
            saved(&home, page, language, text);
        }
    }
    let session = session(page);
    let commands: Vec<Typed> = session.iter().map(|(_, typed)| typed.clone()).collect();
    let mut terminal = Session::start(&home, "session", &commands);
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for (i, (number, typed)) in session.iter().enumerate() {
        let outcome = terminal.watch(i, typed);
        let screen: Vec<&str> = outcome.screen.iter().map(String::as_str).collect();
        let lines = lines(typed, &screen);
        let asked = session.get(i + 1).is_some_and(|(_, next)| next.command.contains("$?"));
        let fine = outcome.code == 0 || asked || (outcome.code == INTERRUPTED && typed.shown.iter().any(|l| l == "^C"));
        if lines.is_none() || !fine {
            let (shown, screen) = (typed.shown.join("\n"), screen.join("\n"));
            wrong.push(format!("$ {}\n--- shown\n{shown}\n--- happened, {}\n{screen}", typed.command, outcome.code));
        }
        all.extend(number.map(|number| Checked { number, outcome, lines }));
    }
    wrong.extend(called_by_two(page, &all));
    wrong.extend(of_several_sessions(page));
    (all, wrong)
}

/// The reason if the times in a page are further apart than a session takes: then it shows several runs.
fn of_several_sessions(page: &Page) -> Option<String> {
    let time = regex::Regex::new(r"\b(\d\d):(\d\d):(\d\d)\b").unwrap();
    let shown: String = page.typed().iter().flat_map(|typed| typed.shown.clone()).map(|line| line + "\n").collect();
    let seconds = |found: regex::Captures<'_>| {
        let part = |n: usize| found[n].parse::<u32>().unwrap();
        part(1) * 3600 + part(2) * 60 + part(3)
    };
    let times: Vec<u32> = time.captures_iter(&shown).map(seconds).collect();
    let apart = times.iter().max()? - times.iter().min()?;
    (apart >= MAX_SESSION_SECS).then(|| format!("its times are {apart} seconds apart"))
}

/// Pairs the shown lines of a command with the lines on the screen after it has ended.
fn lines(typed: &Typed, screen: &[&str]) -> Option<Vec<(usize, usize)>> {
    let from = |first: usize| {
        let places: Vec<usize> = (first..typed.shown.len()).filter(|at| key(&typed.shown[*at]).is_none()).collect();
        let shown: Vec<String> = places.iter().map(|at| typed.shown[*at].clone()).collect();
        Some(pairs(&shown, screen)?.into_iter().map(|(at, seen)| (places[at], seen)).collect())
    };
    // The content of a full screen is gone when it ends.
    let last_key = typed.shown.iter().rposition(|line| key(line).is_some()).map_or(0, |at| at + 1);
    from(0).or_else(|| from(last_key))
}

/// Processes that a page shows with two ids, or with the id of another: it would show several runs.
fn called_by_two(page: &Page, all: &[Checked]) -> Vec<String> {
    let typed = page.typed();
    let lines = all.iter().flat_map(|checked| {
        let shown = &typed[checked.number].shown;
        checked.lines.iter().flatten().flat_map(|(at, seen)| ids(&shown[*at], &checked.outcome.screen[*seen]))
    });
    let (mut by_page, mut by_run) = (HashMap::new(), HashMap::new());
    let mut wrong = Vec::new();
    for (then, now) in lines {
        let (before, other) =
            (by_page.entry(then.clone()).or_insert(now.clone()), by_run.entry(now.clone()).or_insert(then.clone()));
        if *before != now || *other != then {
            wrong.push(format!("{then} is another process than before, or has another id there: {other}"));
        }
    }
    wrong
}

/// Handles a block that is neither a session nor about building: checks a config or JSON, saves a file under its name.
fn saved(home: &Home, page: &Page, language: &str, text: &str) {
    if language == "toml" {
        let path = home.d.root().join("page.toml");
        fs::write(&path, text).unwrap();
        let mut check = home.d.command();
        let output = check.args(["--check-config", "--config"]).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}: {output:?}\n{text}", page.name);
        return;
    }
    if language == "markdown" {
        // For pasting; `agents` types its commands.
        assert_eq!(page.name, "docs/agents.md");
        return;
    }
    if language == "json" {
        serde_json::from_str::<serde_json::Value>(text).unwrap_or_else(|e| panic!("{}: {e}\n{text}", page.name));
        return;
    }
    let first = text.lines().next().unwrap_or_default();
    let name = first.trim_start_matches(['#', '/', '"', '-', ';', ' ']).split([' ', ':']).next().unwrap();
    let used = page.typed().iter().any(|typed| typed.command.contains(name));
    assert!(
        name.contains('.') && used,
        "{}: a block of {language} names its file first, and is run: {first}",
        page.name
    );
    fs::write(home.project().join(name), text).unwrap();
}

/// The page with what happened. All of it is from this run, or its ids and times would not be consistent.
fn updated(page: &Page, all: &[Checked]) -> String {
    let mut lines: Vec<String> = page.text.lines().map(String::from).collect();
    let typed = page.typed();
    for checked in all.iter().rev() {
        let (typed, screen) = (typed[checked.number], &checked.outcome.screen);
        let mut now = typed.shown.clone();
        match &checked.lines {
            Some(pairs) => {
                pairs.iter().for_each(|(at, seen)| now[*at] = updated_line(&typed.shown[*at], &screen[*seen]))
            }
            None => {
                now = screen.clone();
                for (i, line) in typed.shown.iter().enumerate().filter(|(_, line)| key(line).is_some()) {
                    now.insert(i.min(now.len()), line.clone());
                }
            }
        }
        lines.splice(typed.lines.clone(), now);
    }
    lines.join("\n") + "\n"
}

/// Types one page, and fails with the differences.
fn is_what_happens(name: &str) {
    let page = page::all().into_iter().find(|page| page.name == name).unwrap();
    let (all, wrong) = typed(&page);
    if !wrong.is_empty() && std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(page.path(), updated(&page, &all)).unwrap();
    }
    assert!(wrong.is_empty(), "{name} is not what happens:\n\n{}\n", wrong.join("\n\n"));
}

#[test]
fn every_key_of_the_config_is_in_its_page_with_its_default() {
    let page = page::all().into_iter().find(|page| page.name == "docs/config.md").unwrap();
    let text = page.blocks.iter().find_map(|block| match block {
        Block::Text { language, text } if language == "toml" => Some(text),
        Block::Text { .. } | Block::Session(_) | Block::Building(_) => None,
    });
    let limits = |config: &str| Daemon::start_with(config, &[]).ok("daemon.info", json!({}))["limits"].clone();
    let defaults = limits("");
    assert_eq!(limits(text.unwrap()), defaults);
    for key in defaults.as_object().unwrap().keys().map(|key| key.rsplit('.').next().unwrap()) {
        let there = text.unwrap().lines().any(|line| line.split_whitespace().next() == Some(key));
        assert!(there, "{key} is not in docs/config.md");
    }
}

/// One test per page, so that they run in parallel and fail by name.
macro_rules! pages {
    ($($test:ident $name:literal,)*) => {
        $(#[test]
        fn $test() {
            is_what_happens($name);
        })*
        const TYPED: &[&str] = &[$($name),*];
    };
}

pages! {
    readme_is_what_happens "README.md",
    attach_is_what_happens "docs/attach.md",
    cli_is_what_happens "docs/cli.md",
    config_is_what_happens "docs/config.md",
    events_is_what_happens "docs/events.md",
    files_is_what_happens "docs/files.md",
    jobs_is_what_happens "docs/jobs.md",
    needs_input_is_what_happens "docs/needs-input.md",
    patch_is_what_happens "docs/patch.md",
    policy_is_what_happens "docs/policy.md",
    protocol_is_what_happens "docs/protocol.md",
    queues_is_what_happens "docs/queues.md",
    approvals_is_what_happens "docs/approvals.md",
    sandbox_is_what_happens "docs/sandbox.md",
    screen_is_what_happens "docs/screen.md",
    scripts_is_what_happens "docs/scripts.md",
    stage_is_what_happens "docs/stage.md",
    service_is_what_happens "docs/service.md",
    tools_is_what_happens "docs/tools.md",
}

#[test]
fn every_page_with_a_session_is_typed() {
    let pages = page::all();
    let mute = pages.iter().filter(|page| !TYPED.contains(&page.name.as_str()) && !page.typed().is_empty());
    assert_eq!(mute.map(|page| page.name.as_str()).collect::<Vec<_>>(), [""; 0], "add them to `pages!`");
    let commands: usize = pages.iter().map(|page| page.typed().len()).sum();
    assert!(commands > 60, "only {commands} commands were found");
}

#[test]
fn no_command_hides_from_the_test() {
    for page in page::all() {
        let prose = page.prose();
        let code = prose.windows(2).find(|two| two[0].is_empty() && two[1].starts_with("    "));
        assert!(code.is_none(), "{}: code is in a fenced block: {code:?}", page.name);
        for block in &page.blocks {
            let Block::Building(lines) = block else { continue };
            let line = lines.iter().find(|line| !BUILDING.iter().any(|prefix| line.starts_with(prefix)));
            assert!(line.is_none(), "{}: only what builds this is in a `sh` block: {line:?}", page.name);
        }
    }
    for (name, command, why) in NOT_RUN {
        let there =
            page::all().iter().any(|page| page.name == *name && page.typed().iter().any(|t| t.command == *command));
        assert!(there && !why.is_empty(), "{name} has no such command any more: {command}");
    }
    for (name, next, _) in UNSEEN {
        let has = |page: &Page| page.typed().iter().any(|t| next.is_empty() || t.command.starts_with(next));
        assert!(page::all().iter().any(|page| page.name == *name && has(page)), "{name} has no {next}");
    }
}

#[test]
fn every_command_in_the_prose_exists() {
    let home = Home::new();
    let inline = regex::Regex::new("`(toolctl [^`]+)`").unwrap();
    let topics = "client/src/help/topics";
    let topics = fs::read_dir(topics).unwrap().map(|topic| fs::read_to_string(topic.unwrap().path()).unwrap());
    let pages = page::all();
    let prose = pages.iter().map(|page| page.prose().join("\n")).chain(topics);
    let mut seen = 0;
    for text in prose {
        for command in inline.captures_iter(&text).map(|found| found[1].to_owned()) {
            // The part before the program to run, or before a second command.
            let ours = command.split(" -- ").next().unwrap().split(['#', ';', '|']).next().unwrap();
            let ours = ours.split(" -c ").next().unwrap().replace('…', "");
            let mut args = ours.split_whitespace().skip(1).collect::<Vec<_>>();
            args.push("--help");
            let output = home.d.ctl(&args);
            assert_eq!(output.code, 0, "{ours}: {output:?}");
            seen += 1;
        }
    }
    assert!(seen > 10, "only {seen} commands were found");
}
