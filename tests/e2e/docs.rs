//! What README and `docs/` show is what happens: every session in them is typed at a terminal, in the order of its page.
//!
//! A page's commands are in ```` ```console ```` blocks. They run in one shell, in a home of their own; what the page shows of
//! their output is compared (`docs/same.rs`). A command exits with 0, unless the next one prints `$?`. `UPDATE_GOLDEN=1`
//! writes what happened into the pages.

mod examples;
mod home;
mod page;
mod same;
mod seat;

use crate::rig::Daemon;
use home::Home;
use page::{Block, Page, Typed};
use same::same;
use seat::{Outcome, Seat, key};
use serde_json::json;
use std::fs;

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

/// Types a page. What came of its commands, and what was otherwise than the page says.
fn typed(page: &Page) -> (Vec<(usize, Outcome)>, Vec<String>) {
    let home = Home::new();
    for block in &page.blocks {
        if let Block::Text { language, text } = block {
            saved(&home, page, language, text);
        }
    }
    let session = session(page);
    let words: Vec<Typed> = session.iter().map(|(_, typed)| typed.clone()).collect();
    let mut seat = Seat::take(&home, "session", &words);
    let (mut outcomes, mut wrong) = (Vec::new(), Vec::new());
    for (i, (number, typed)) in session.iter().enumerate() {
        let outcome = seat.watch(i, typed);
        let shown: Vec<String> = typed.shown.iter().filter(|line| key(line).is_none()).cloned().collect();
        // What a full screen showed is gone with it.
        let last_key = typed.shown.iter().rposition(|line| key(line).is_some()).map_or(0, |at| at + 1);
        let screen: Vec<&str> = outcome.screen.iter().map(String::as_str).collect();
        let asked = session.get(i + 1).is_some_and(|(_, next)| next.words.contains("$?"));
        let fine = outcome.code == 0 || asked || (outcome.code == INTERRUPTED && typed.shown.iter().any(|l| l == "^C"));
        if !(same(&shown, &screen) || same(&typed.shown[last_key..], &screen)) || !fine {
            let (shown, screen) = (shown.join("\n"), screen.join("\n"));
            wrong.push(format!("$ {}\n--- shown\n{shown}\n--- happened, {}\n{screen}", typed.words, outcome.code));
            outcomes.extend(number.map(|number| (number, outcome)));
        }
    }
    (outcomes, wrong)
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

/// The page as it would be if it showed what happened.
fn updated(page: &Page, outcomes: &[(usize, Outcome)]) -> String {
    let mut lines: Vec<String> = page.text.lines().map(String::from).collect();
    let all = page.typed();
    for (number, outcome) in outcomes.iter().rev() {
        let typed = all[*number];
        let mut now = outcome.screen.clone();
        for (i, line) in typed.shown.iter().enumerate().filter(|(_, line)| key(line).is_some()) {
            now.insert(i.min(now.len()), line.clone());
        }
        lines.splice(typed.lines.clone(), now);
    }
    lines.join("\n") + "\n"
}

/// Types one page, and fails with what was otherwise.
fn is_what_happens(name: &str) {
    let page = page::all().into_iter().find(|page| page.name == name).unwrap();
    let (outcomes, wrong) = typed(&page);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(page.path(), updated(&page, &outcomes)).unwrap();
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
