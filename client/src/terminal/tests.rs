//! A real terminal, lent out and given back.

use super::*;
use std::io::Read;

/// What stands on the person's side now, up to `end`.
fn read_until(person: &mut File, end: &str) -> String {
    let mut all = Vec::new();
    let mut byte = [0];
    while !all.ends_with(end.as_bytes()) {
        person.read_exact(&mut byte).expect("the other side is open");
        all.push(byte[0]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn lent(keys: KeyMode) -> (File, File, Terminal, Settings) {
    let (person, program) = sys::pair();
    let before = Settings::read(program.as_fd()).expect("a terminal");
    let terminal = Terminal::enter_on(program.try_clone().expect("another handle"), keys).expect("a terminal");
    (person, program, terminal, before)
}

#[test]
fn it_is_raw_while_it_is_lent_and_as_before_when_it_is_given_back() {
    let (mut person, program, mut terminal, before) = lent(KeyMode::Forwarded);
    let now = || Settings::read(program.as_fd()).expect("a terminal").flags();
    assert_eq!(now(), before.raw().flags());
    terminal.track(b"\x1b[?1049h\x1b[?25ltext");
    terminal.leave();
    assert_eq!(now(), before.flags());
    terminal.reenter().expect("a terminal");
    assert_eq!(now(), before.raw().flags());
    drop(terminal);
    assert_eq!(now(), before.flags());
    let off = "\x1b[?25h\x1b[?1049l";
    assert_eq!(read_until(&mut person, off), off);
    assert_eq!(read_until(&mut person, off), format!("\x1b[?1049h\x1b[?25l{off}"));
}

#[test]
fn without_our_keys_signals_still_come_and_output_is_as_it_is() {
    let (_person, program, terminal, before) = lent(KeyMode::Unread);
    let now = Settings::read(program.as_fd()).expect("a terminal").flags();
    assert_eq!((now[1] & libc::OPOST, now[3] & (libc::ECHO | libc::ISIG)), (0, libc::ISIG));
    drop(terminal);
    assert_eq!(Settings::read(program.as_fd()).expect("a terminal").flags(), before.flags());
}

#[test]
fn a_panic_gives_it_back_before_it_is_told() {
    let (mut person, program, mut terminal, before) = lent(KeyMode::Forwarded);
    let ended = std::thread::spawn(move || {
        terminal.track(b"\x1b[?2004hhalf a line");
        // The terminal is still held here, so only the hook can have given it back.
        let _held = terminal;
        panic!("as a test wants it");
    });
    assert!(ended.join().is_err());
    assert_eq!(Settings::read(program.as_fd()).expect("a terminal").flags(), before.flags());
    assert_eq!(read_until(&mut person, "\r\n"), "\x1b[?2004l\r\n");
}

#[test]
fn a_line_of_ours_is_never_inside_a_sequence_of_the_program_s() {
    let (mut person, _program, mut terminal, _) = lent(KeyMode::Forwarded);
    terminal.track(b"prompt> \x1b[3");
    terminal.message("hello");
    terminal.track(b"1m");
    assert_eq!(read_until(&mut person, "]\r\n"), "\r\n[toolctl: hello]\r\n");
    terminal.message("again");
    assert_eq!(read_until(&mut person, "]\r\n"), "[toolctl: again]\r\n", "it stands on a fresh line already");
}

#[test]
fn what_we_say_on_a_screen_is_said_again_over_what_is_drawn_there_meanwhile() {
    let (mut person, program, mut terminal, _) = lent(KeyMode::Forwarded);
    terminal.track(b"\x1b[H\x1b[Jone\x1b[5;1Hfive");
    let said = "\x1b[24;1H\x1b[m[toolctl: back]\x1b[K\x1b8";
    terminal.message("back");
    assert!(read_until(&mut person, said).starts_with("\x1b7"));
    terminal.track(b"\x1b[H\x1b[Jtwo");
    terminal.repeat_message();
    assert!(read_until(&mut person, said).starts_with("\x1b7"));
    terminal.redraw(None);
    terminal.track(b"\x1b[H\x1b[Jthree");
    terminal.repeat_message();
    terminal.leave();
    drop(terminal);
    drop(program);
    let mut rest = Vec::new();
    let _ = person.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("[toolctl: back]"), "its time is over");
}
