//! Full-screen programs, driven by named keys and read by their screens: vim, less, top and a curses menu.

use crate::api::screen::{screen, sees};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use toold_test_support::rig::{Daemon, id, skip_unless};

/// Starts a program on a terminal of this size.
#[track_caller]
fn start(d: &Daemon, argv: &[&str], rows: u32, cols: u32) -> String {
    let env = json!({ "TERM": "xterm-256color", "LC_ALL": "C.UTF-8" });
    id(&d.ok("exec", json!({ "argv": argv, "pty": { "rows": rows, "cols": cols }, "env": env, "cwd": d.home() })))
}

#[track_caller]
fn keys(d: &Daemon, process: &str, keys: Value) {
    let written = d.ok("write", json!({ "id": process, "keys": keys }));
    assert_eq!(written["complete"], true, "{written}");
}

fn rows(screen: &Value) -> Vec<&str> {
    screen["text"].as_str().unwrap().lines().collect()
}

/// Returns true if the program is missing here.
fn is_missing(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    let tried = command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    skip_unless(tried.is_ok_and(|status| status.success()), &format!("{program} is not installed"))
}

fn numbered_file(d: &Daemon) -> String {
    let lines: String = (1..=100).map(|n| format!("line {n}\n")).collect();
    std::fs::write(d.home().join("numbers.txt"), lines).unwrap();
    "numbers.txt".into()
}

#[test]
fn vim_writes_what_was_typed() {
    if is_missing("vim", &["--version"]) {
        return;
    }
    let mut d = Daemon::start();
    let process = start(&d, &["vim", "-u", "NONE", "-N", "-n", "-i", "NONE", "note.txt"], 8, 60);
    sees(&d, &process, "\"note.txt\" [New]");
    keys(&d, &process, json!(["i", "first line", "Enter", { "text": "Up" }]));
    let typed = sees(&d, &process, "Up");
    assert_eq!((rows(&typed)[..3].to_vec(), &typed["alternate"]), (vec!["first line", "Up", "~"], &json!(true)));
    assert_eq!(typed["cursor"], json!({ "row": 1, "col": 2, "visible": true }));
    d.restart();
    assert_eq!(screen(&d, &process), typed);
    // The cursor key moves: it is not text, and vim has turned on application cursor mode.
    keys(&d, &process, json!(["Up", "Home", "the "]));
    sees(&d, &process, "the first line");
    keys(&d, &process, json!(["Esc", ":wq", "Enter"]));
    assert_eq!(d.exited(&process)["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(d.home().join("note.txt")).unwrap(), "the first line\nUp\n");
    assert_eq!(screen(&d, &process)["alternate"], false);
}

/// Vim sets the margins of its first screen once, and relies on a resized terminal to forget them.
#[test]
fn vim_is_readable_after_a_resize() {
    if is_missing("vim", &["--version"]) {
        return;
    }
    let d = Daemon::start();
    let file = numbered_file(&d);
    let process = start(&d, &["vim", "-u", "NONE", "-N", "-n", "-i", "NONE", &file], 8, 40);
    let shows = |first: usize, last: usize| {
        let lines: Vec<String> = (first..=last).map(|n| format!("line {n}")).collect();
        d.eventually(&format!("lines {first} to {last} are shown"), || {
            rows(&screen(&d, &process))[..].iter().zip(&lines).filter(|(row, line)| row == line).count() == lines.len()
        });
    };
    shows(1, 7);
    keys(&d, &process, json!(["C-e", "C-e"]));
    shows(3, 9);
    d.ok("resize", json!({ "id": process, "rows": 14, "cols": 50 }));
    shows(3, 15);
    keys(&d, &process, json!(["C-e", "C-e", "C-e", "C-y"]));
    shows(5, 17);
    keys(&d, &process, json!([":q!", "Enter"]));
    assert_eq!(d.exited(&process)["exit_code"], 0);
}

#[test]
fn less_scrolls_by_keys() {
    if is_missing("less", &["--version"]) {
        return;
    }
    let d = Daemon::start();
    let file = numbered_file(&d);
    let process = start(&d, &["less", "-X", &file], 10, 40);
    let first = sees(&d, &process, "line 9");
    assert_eq!(rows(&first)[0], "line 1");
    for (key, top, shown) in
        [("Down", "line 2", "line 10"), ("PageDown", "line 11", "line 19"), ("Up", "line 10", "line 10")]
    {
        keys(&d, &process, json!([key]));
        d.eventually(&format!("{top} is the first row after {key}"), || {
            let screen = screen(&d, &process);
            rows(&screen)[0] == top && screen["text"].as_str().unwrap().contains(shown)
        });
    }
    keys(&d, &process, json!(["/", "line 77", "Enter"]));
    d.eventually("the match is the first row", || rows(&screen(&d, &process))[0] == "line 77");
    keys(&d, &process, json!(["q"]));
    assert_eq!(d.exited(&process)["exit_code"], 0);
}

#[test]
fn top_shows_its_table_and_its_help() {
    if is_missing("top", &["-v"]) {
        return;
    }
    let d = Daemon::start();
    let process = start(&d, &["top", "-d", "60"], 24, 100);
    let table = sees(&d, &process, "%CPU");
    assert!(rows(&table)[0].starts_with("top - ") && table["text"].as_str().unwrap().contains("PID"), "{table}");
    keys(&d, &process, json!(["h"]));
    sees(&d, &process, "Help for Interactive Commands");
    keys(&d, &process, json!(["Esc"]));
    sees(&d, &process, "%CPU");
    keys(&d, &process, json!(["q"]));
    assert_eq!(d.exited(&process)["exit_code"], 0);
}

const MENU: &str = r#"
import curses
items = ["one", "two", "three"]
def menu(window):
    curses.curs_set(0)
    at = 0
    while True:
        window.erase()
        window.box()
        for n, item in enumerate(items):
            window.addstr(n + 1, 2, ("> " if n == at else "  ") + item, curses.A_REVERSE if n == at else 0)
        window.refresh()
        key = window.getch()
        if key == curses.KEY_DOWN: at = min(at + 1, len(items) - 1)
        elif key == curses.KEY_UP: at = max(at - 1, 0)
        elif key in (curses.KEY_ENTER, 10, 13): return items[at]
        elif key == curses.KEY_F10: return "none"
print("chose", curses.wrapper(menu))
"#;

#[test]
fn a_curses_menu_is_chosen_from() {
    if is_missing("python3", &["-c", "import curses"]) {
        return;
    }
    let d = Daemon::start();
    let process = start(&d, &["python3", "-c", MENU], 6, 20);
    let first = sees(&d, &process, "> one");
    let frame = ["┌──────────────────┐", "│ > one            │", "│   two            │", "│   three          │"];
    assert_eq!((rows(&first)[..4].to_vec(), &first["cursor"]["visible"]), (frame.to_vec(), &json!(false)));
    keys(&d, &process, json!(["Down", "Down", "Down", "Up"]));
    // A screen may be seen while the program draws it.
    d.eventually("the second item alone is chosen", || {
        let screen = screen(&d, &process);
        let text = screen["text"].as_str().unwrap();
        text.contains("> two") && text.matches('>').count() == 1
    });
    keys(&d, &process, json!(["Down"]));
    sees(&d, &process, "> three");
    keys(&d, &process, json!(["Enter"]));
    assert_eq!(d.closed(&process)["exit_code"], 0);
    let last = screen(&d, &process);
    assert!(last["text"].as_str().unwrap().contains("chose three") && last["alternate"] == false, "{last}");
    let other = start(&d, &["python3", "-c", MENU], 6, 20);
    sees(&d, &other, "> one");
    keys(&d, &other, json!(["F10"]));
    d.printed(&other, "chose none");
}
