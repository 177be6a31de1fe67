//! `toolctl attach` to a program that sets the scroll region once, as `vim` does, and relies on the terminal to reset it when
//! it is resized.

use crate::cli::attach::kill9;
use serde_json::json;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::term::{DETACH, SIZE, Term};

/// Draws a line in each row, and again whenever the size changes.
const LIKE_VIM: &str = "rows() { set -- $(stty size); printf '\\033[H\\033[2J'; n=1; \
    while [ $n -lt $1 ]; do printf 'line %s\\r\\n' $n; n=$((n + 1)); done; printf 'last of %s' $1; }; \
    stty -echo; printf '\\033[?1049h\\033[1;10r'; trap rows WINCH; rows; while :; do sleep 0.02; done";

fn like_vim(d: &Daemon) -> String {
    let proc = id(&d.sh_with(LIKE_VIM, json!({ "pty": { "rows": 10, "cols": 40 } })));
    d.printed(&proc, "last of 10");
    proc
}

/// Its screen with this number of rows.
fn screen(rows: u16) -> String {
    let lines: Vec<String> = (1..rows).map(|n| format!("line {n}\n")).collect();
    lines.concat() + &format!("last of {rows}")
}

#[test]
fn a_taller_window_shows_all_of_it_and_so_does_the_next_one() {
    // The broken code kept the margins: everything that the program redrew scrolled in the upper part.
    let d = Daemon::start();
    let proc = like_vim(&d);
    for _ in 0..2 {
        let term = Term::ctl(&d, &["attach", &proc]);
        term.sees(&screen(SIZE.0));
        term.types(DETACH);
        assert_eq!(term.ends(), 0);
    }
}

#[test]
fn an_unchanged_window_shows_all_of_it_when_others_resize_and_after_a_killed_daemon() {
    let d = Daemon::start();
    let proc = like_vim(&d);
    let (one, two) = (Term::ctl(&d, &["attach", &proc]), Term::ctl(&d, &["attach", &proc]));
    one.sees(&screen(SIZE.0));
    two.sees(&screen(SIZE.0));
    two.resize(12, 80);
    two.sees(&screen(12));
    one.sees(&screen(12));
    kill9(&d);
    two.resize(20, 60);
    two.sees(&screen(20));
    one.sees(&screen(20));
    one.resize(30, 80);
    one.sees(&screen(30));
}
