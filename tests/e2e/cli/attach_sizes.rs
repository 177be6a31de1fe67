//! `toolctl attach` where the window and the process's screen differ in size: the visible part, the effective size, and the
//! position of the detach message.

use crate::cli::attach::on_terminal;
use serde_json::json;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::term::{DETACH, SIZE, Term};

/// Fills a screen of 30 rows and 100 columns, not the alternate one, and prints each typed line.
const LARGE: &str = "stty -echo; printf '\\033[H\\033[J'; for n in $(seq 1 30); do \
    printf \"\\033[$n;1Hrow $n%080d the end\" 0; done; printf '\\033[2;1H'; \
    while read -r line; do printf '\\033[12;1Hgot %s.\\033[2;1H' \"$line\"; done";

fn large(d: &Daemon) -> String {
    let proc = id(&d.sh_with(LARGE, json!({ "pty": { "rows": 30, "cols": 100 } })));
    d.printed(&proc, "row 30");
    proc
}

/// The rows as a window of this size shows them, above our status line.
fn cut(rows: u16, cols: usize) -> Vec<String> {
    (1..rows).map(|n| format!("row {n}{:080} the end", 0).chars().take(cols).collect()).collect()
}

#[test]
fn a_viewer_sees_the_part_that_fits_and_both_sizes() {
    // The broken code wrote the bytes unchanged: lines wrapped, and the screen scrolled away.
    let d = Daemon::start();
    let proc = large(&d);
    let viewer = Term::ctl(&d, &["attach", "-r", &proc]);
    let status = "[toolctl: its screen is 30x100, your window 24x80; Ctrl-C leaves]";
    let mut expected = [cut(24, 80), vec![status.into()]].concat();
    let screen = viewer.sees(&expected[22..].join("\n"));
    assert_eq!(screen.lines().collect::<Vec<_>>(), expected);
    d.ok("submit", json!({ "id": proc, "data": "hello" }));
    expected[11] = "got hello.".to_owned() + &expected[11][10..];
    assert_eq!(viewer.sees("got hello.").lines().collect::<Vec<_>>(), expected);
    viewer.resize(12, 40);
    let status = "[its 30x100, yours 12x40]";
    let small = [cut(12, 40), vec![status.into()]].concat();
    let screen = viewer.sees(&small[10..].join("\n"));
    assert_eq!(screen.lines().collect::<Vec<_>>(), small, "the window may change");
    viewer.resize(40, 120);
    viewer.sees("your window 40x120");
    let screen = viewer.sees("row 30");
    assert!(screen.contains("row 30") && screen.lines().next().is_some_and(|row| row.ends_with("the end")), "{screen}");
    viewer.types("\x03");
    assert_eq!(viewer.ends(), 0);
    let screen = viewer.sees("is still running: toolctl attach");
    assert!(!screen.contains("row "), "the window is restored: {screen}");
    assert_eq!(d.process(&proc)["pty_size"], json!({ "rows": 30, "cols": 100 }));
}

#[test]
fn the_last_of_two_sizes_wins_and_the_other_client_is_notified() {
    let d = Daemon::start();
    let proc = on_terminal(&d, "trap 'echo now $(stty size)' WINCH; echo ready; while :; do sleep 0.02; done");
    d.printed(&proc, "ready");
    let one = Term::ctl(&d, &["attach", &proc]);
    // After this answer no `resize` of the first client is pending, which could overtake the one of the second.
    one.resize(25, 80);
    one.sees("now 25 80");
    let two = Term::ctl(&d, &["attach", &proc]);
    two.sees("ready");
    two.resize(30, 100);
    two.sees("now 30 100");
    let status = "[toolctl: its screen is 30x100, your window 25x80; resize yours to change it]";
    // The program's answer to the new size and the status row may arrive in either order.
    one.sees("now 30 100");
    one.sees(status);
    // To get another size, a client resizes its window; then the first one is notified.
    one.resize(20, 70);
    assert!(!one.sees("now 20 70").contains("toolctl:"), "its size is the screen's");
    two.sees("[toolctl: another client resized the screen to 20x70; resize your window to make it 30x100]");
    two.types(DETACH);
    assert_eq!(two.ends(), 0);
}

#[test]
fn the_detach_message_is_below_the_screen() {
    // The broken code wrote it at the cursor, inside the program's text.
    let d = Daemon::start();
    let proc = large(&d);
    let term = Term::ctl(&d, &["attach", &proc]);
    term.sees("row 24");
    term.types(DETACH);
    assert_eq!(term.ends(), 0);
    let screen = term.sees("is still running: toolctl attach");
    let (above, below) = screen.split_once("toolctl: ").unwrap();
    assert!(above.contains("row 23") && !below.contains("row "), "{screen}");
    // And after the window has grown, for a program that writes line by line.
    let proc = on_terminal(&d, "printf 'one\\ntwo\\nthree\\033[2A\\r'; exec sleep 1000");
    d.printed(&proc, "three");
    let term = Term::ctl(&d, &["attach", &proc]);
    term.sees("three");
    term.resize(SIZE.0 + 6, SIZE.1);
    d.eventually("the size arrives", || d.process(&proc)["pty_size"] == json!({ "rows": 30, "cols": 80 }));
    term.types(DETACH);
    assert_eq!(term.ends(), 0);
    let screen = term.sees("is still running: toolctl attach");
    assert!(screen.split_once("toolctl: ").is_some_and(|(above, _)| above.contains("three")), "{screen}");
}

#[test]
fn the_detach_message_starts_a_line_after_a_viewport() {
    // The broken code wrote it after the prompt that was there before the sizes differed.
    let d = Daemon::start();
    let one = Term::ctl(&d, &["run", "-t", "--", "/bin/sh", "-c", "printf 'prompt> '; exec sleep 1000"]);
    one.sees("prompt>");
    let proc = d.ids(json!({}))[0].clone();
    let two = Term::ctl(&d, &["attach", &proc]);
    two.sees("prompt>");
    two.resize(30, 100);
    d.eventually("the size arrives", || d.process(&proc)["pty_size"] == json!({ "rows": 30, "cols": 100 }));
    one.types("x");
    one.sees("[toolctl: ");
    one.types(DETACH);
    assert_eq!(one.ends(), 0);
    let screen = one.sees("is still running: toolctl attach");
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    assert_eq!((lines[0], &lines[1][..14]), ("prompt>", "toolctl: proc_"), "{screen}");
}

#[test]
fn the_detach_message_is_below_the_text_from_before_the_viewport() {
    // As `top` does it, with the cursor in the last column: the broken code started there.
    let script = "stty -echo; printf '\\033[H\\033[J'; for n in $(seq 1 24); do printf \"\\033[$n;1Hrow $n\"; done; \
        printf '\\033[3;80H'; while read -r line && [ $line != q ]; do printf '\\033[12;1Hgot %s\\033[3;80H' $line; done";
    let d = Daemon::start();
    let proc = on_terminal(&d, script);
    d.printed(&proc, "row 24");
    let (one, two) = (Term::ctl(&d, &["attach", &proc]), Term::ctl(&d, &["attach", &proc]));
    one.sees("row 24");
    two.sees("row 24");
    two.resize(30, 100);
    d.eventually("the size arrives", || d.process(&proc)["pty_size"] == json!({ "rows": 30, "cols": 100 }));
    one.types("hello\r");
    one.sees("[toolctl: ");
    one.types("q\r");
    assert_eq!(one.ends(), 0);
    let screen = one.sees("exited 0");
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    assert!(lines.contains(&"row 24") && lines.iter().any(|line| line.starts_with("toolctl: proc_")), "{screen}");
}
