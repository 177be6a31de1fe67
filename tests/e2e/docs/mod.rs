//! What README and `docs/` show is what happens: every session in them is typed at a terminal, in the order of its page.
//!
//! A page's commands are in ```` ```console ```` blocks. They run in one shell, in a home of their own; what the page shows of
//! their output is compared (`docs/compare.rs`). A command exits with 0, unless the next one prints `$?`. `UPDATE_GOLDEN=1`
//! writes what happened into the pages that say otherwise, with the ids and times of one run.

mod compare;
mod examples;
mod home;
mod page;
mod session;

use compare::{ids, pairs, retold};
use home::Home;
use page::{Block, Page, Typed};
use serde_json::json;
use session::{Outcome, Seat, key};
use std::collections::HashMap;
use std::fs;
use toold_test_support::rig::Daemon;

/// Typed unseen: the page, the command that it comes before (all of them: none), and the words.
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
    ("docs/attach.md", "", "echo 'remember the milk' > notes.txt"),
    // Both are of this moment, and the next command would see it a moment later too.
    ("README.md", "toolctl events -n 5", "toolctl events --consumer unseen --type completion --wait 30s"),
    ("docs/events.md", "toolctl events -n 5", "toolctl events --consumer unseen --type completion --wait 30s"),
    // As a person has seen by then: the server has printed its line.
    ("README.md", "toolctl log web -n 2", "toolctl wait web --match 404 > /dev/null"),
];

/// What is in a page and is not run, and why.
const NOT_RUN: &[(&str, &str, &str)] = &[];

/// No page takes so many seconds to type.
const SESSION: u32 = 120;

/// The code of a command that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Words that a line about building this repository begins with.
const BUILDING: &[&str] = &["cargo ", "bash .ci/run", "rustup ", "git ", "packaging/deb", "tests/counts"];

/// The commands of a page with what is typed unseen between them; the page's own have a number in it.
fn session(page: &Page) -> Vec<(Option<usize>, Typed)> {
    let unseen = |words: &str| Typed { words: words.into(), shown: vec!["…".into()], lines: 0..0 };
    let before = |typed: &str| {
        let ours = UNSEEN.iter().filter(move |(name, before, _)| *name == page.name && typed == *before);
        ours.map(|(_, _, words)| (None, unseen(words))).collect::<Vec<_>>()
    };
    let mut all = before("");
    for (number, typed) in page.typed().into_iter().enumerate() {
        if NOT_RUN.iter().any(|(name, words, _)| *name == page.name && *words == typed.words) {
            continue;
        }
        let plain = typed.words.split("  #").next().unwrap().trim();
        all.extend(before(plain));
        all.push((Some(number), typed.clone()));
    }
    all
}

/// One command of a page after it was typed.
struct Told {
    /// Which of the page's it is.
    number: usize,
    outcome: Outcome,
    /// Which line that the page shows is which on the screen. None: the page shows something else.
    lines: Option<Vec<(usize, usize)>>,
}

/// Types a page. What came of its commands, and what was otherwise than the page says.
fn typed(page: &Page) -> (Vec<Told>, Vec<String>) {
    let home = Home::new();
    for block in &page.blocks {
        if let Block::Text { language, text } = block {
            saved(&home, page, language, text);
        }
    }
    let session = session(page);
    let words: Vec<Typed> = session.iter().map(|(_, typed)| typed.clone()).collect();
    let mut seat = Seat::take(&home, "session", &words);
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for (i, (number, typed)) in session.iter().enumerate() {
        let outcome = seat.watch(i, typed);
        let screen: Vec<&str> = outcome.screen.iter().map(String::as_str).collect();
        let lines = lines(typed, &screen);
        let asked = session.get(i + 1).is_some_and(|(_, next)| next.words.contains("$?"));
        let fine = outcome.code == 0 || asked || (outcome.code == INTERRUPTED && typed.shown.iter().any(|l| l == "^C"));
        if lines.is_none() || !fine {
            let (shown, screen) = (typed.shown.join("\n"), screen.join("\n"));
            wrong.push(format!("$ {}\n--- shown\n{shown}\n--- happened, {}\n{screen}", typed.words, outcome.code));
        }
        all.extend(number.map(|number| Told { number, outcome, lines }));
    }
    wrong.extend(called_by_two(page, &all));
    wrong.extend(of_several_sessions(page));
    (all, wrong)
}

/// Whether the times that a page shows are further apart than a session takes: then it is the record of several.
fn of_several_sessions(page: &Page) -> Option<String> {
    let time = regex::Regex::new(r"\b(\d\d):(\d\d):(\d\d)\b").unwrap();
    let shown: String = page.typed().iter().flat_map(|typed| typed.shown.clone()).map(|line| line + "\n").collect();
    let seconds = |found: regex::Captures<'_>| {
        let part = |n: usize| found[n].parse::<u32>().unwrap();
        part(1) * 3600 + part(2) * 60 + part(3)
    };
    let times: Vec<u32> = time.captures_iter(&shown).map(seconds).collect();
    let apart = times.iter().max()? - times.iter().min()?;
    (apart >= SESSION).then(|| format!("its times are {apart} seconds apart"))
}

/// Which line that a page shows of a command is which on the screen when it has ended.
fn lines(typed: &Typed, screen: &[&str]) -> Option<Vec<(usize, usize)>> {
    let from = |first: usize| {
        let places: Vec<usize> = (first..typed.shown.len()).filter(|at| key(&typed.shown[*at]).is_none()).collect();
        let shown: Vec<String> = places.iter().map(|at| typed.shown[*at].clone()).collect();
        Some(pairs(&shown, screen)?.into_iter().map(|(at, seen)| (places[at], seen)).collect())
    };
    // What a full screen showed is gone with it.
    let last_key = typed.shown.iter().rposition(|line| key(line).is_some()).map_or(0, |at| at + 1);
    from(0).or_else(|| from(last_key))
}

/// What a page calls by two ids, or by that of another: it would be the record of several runs.
fn called_by_two(page: &Page, all: &[Told]) -> Vec<String> {
    let typed = page.typed();
    let lines = all.iter().flat_map(|told| {
        let shown = &typed[told.number].shown;
        told.lines.iter().flatten().flat_map(|(at, seen)| ids(&shown[*at], &told.outcome.screen[*seen]))
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

/// A block that is neither a session nor about building: a config is checked, a file is saved under its name.
fn saved(home: &Home, page: &Page, language: &str, text: &str) {
    if language == "toml" {
        let path = home.d.root().join("page.toml");
        fs::write(&path, text).unwrap();
        let mut check = home.d.command();
        let told = check.args(["--check-config", "--config"]).arg(&path).output().unwrap();
        assert!(told.status.success(), "{}: {told:?}\n{text}", page.name);
        return;
    }
    let first = text.lines().next().unwrap_or_default();
    let name = first.trim_start_matches(['#', '/', '"', '-', ';', ' ']).split([' ', ':']).next().unwrap();
    let used = page.typed().iter().any(|typed| typed.words.contains(name));
    assert!(
        name.contains('.') && used,
        "{}: a block of {language} names its file first, and is run: {first}",
        page.name
    );
    fs::write(home.project().join(name), text).unwrap();
}

/// The page as it would be if it showed what happened. All of it is of this run, or its ids and times would not fit together.
fn updated(page: &Page, all: &[Told]) -> String {
    let mut lines: Vec<String> = page.text.lines().map(String::from).collect();
    let typed = page.typed();
    for told in all.iter().rev() {
        let (typed, screen) = (typed[told.number], &told.outcome.screen);
        let mut now = typed.shown.clone();
        match &told.lines {
            Some(pairs) => pairs.iter().for_each(|(at, seen)| now[*at] = retold(&typed.shown[*at], &screen[*seen])),
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

/// Types one page, and fails with what was otherwise.
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

/// One test for each page, so that they run beside each other and fail by name.
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
    jobs_is_what_happens "docs/jobs.md",
    needs_input_is_what_happens "docs/needs-input.md",
    protocol_is_what_happens "docs/protocol.md",
    service_is_what_happens "docs/service.md",
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
            let line = lines.iter().find(|line| !BUILDING.iter().any(|words| line.starts_with(words)));
            assert!(line.is_none(), "{}: only what builds this is in a `sh` block: {line:?}", page.name);
        }
    }
    for (name, words, why) in NOT_RUN {
        let there = page::all().iter().any(|page| page.name == *name && page.typed().iter().any(|t| t.words == *words));
        assert!(there && !why.is_empty(), "{name} has no such command any more: {words}");
    }
    for (name, words, _) in UNSEEN {
        let has = |page: &Page| page.typed().iter().any(|t| words.is_empty() || t.words.starts_with(words));
        assert!(page::all().iter().any(|page| page.name == *name && has(page)), "{name} has no {words}");
    }
}

#[test]
fn every_command_in_the_prose_is_one() {
    let home = Home::new();
    let inline = regex::Regex::new("`(toolctl [^`]+)`").unwrap();
    let topics = "client/src/help/topics";
    let topics = fs::read_dir(topics).unwrap().map(|topic| fs::read_to_string(topic.unwrap().path()).unwrap());
    let pages = page::all();
    let prose = pages.iter().map(|page| page.prose().join("\n")).chain(topics);
    let mut seen = 0;
    for text in prose {
        for words in inline.captures_iter(&text).map(|found| found[1].to_owned()) {
            // What comes before the program to run, or a second command.
            let ours = words.split(" -- ").next().unwrap().split(['#', ';', '|']).next().unwrap();
            let ours = ours.split(" -c ").next().unwrap().replace('…', "");
            let mut words = ours.split_whitespace().skip(1).collect::<Vec<_>>();
            words.push("--help");
            let told = home.d.ctl(&words);
            assert_eq!(told.code, 0, "{ours}: {told:?}");
            seen += 1;
        }
    }
    assert!(seen > 10, "only {seen} commands were found");
}
