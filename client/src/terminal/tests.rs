//! Tests on a real pseudo-terminal: entering, leaving, messages.

use super::*;
use std::io::Read;

/// Reads the person's side up to `end`.
fn read_until(person: &mut File, end: &str) -> String {
    let mut all = Vec::new();
    let mut byte = [0];
    while !all.ends_with(end.as_bytes()) {
        person.read_exact(&mut byte).expect("the other side is open");
        all.push(byte[0]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn entered(keys: KeyMode) -> (File, File, Terminal, TerminalSettings) {
    let (person, program) = sys::open_pty();
    let before = TerminalSettings::read(program.as_fd()).expect("a terminal");
    let terminal = Terminal::enter_on(program.try_clone().expect("another handle"), keys).expect("a terminal");
    (person, program, terminal, before)
}

#[test]
fn the_terminal_is_raw_while_entered_and_as_before_after_leaving() {
    let (mut person, program, mut terminal, before) = entered(KeyMode::Forwarded);
    let now = || TerminalSettings::read(program.as_fd()).expect("a terminal").flags();
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
fn with_unread_keys_signals_still_work_and_output_is_raw() {
    let (_person, program, terminal, before) = entered(KeyMode::Unread);
    let now = TerminalSettings::read(program.as_fd()).expect("a terminal").flags();
    assert_eq!((now[1] & libc::OPOST, now[3] & (libc::ECHO | libc::ISIG)), (0, libc::ISIG));
    drop(terminal);
    assert_eq!(TerminalSettings::read(program.as_fd()).expect("a terminal").flags(), before.flags());
}

#[test]
fn a_panic_restores_the_terminal_before_its_message_is_printed() {
    let (mut person, program, mut terminal, before) = entered(KeyMode::Forwarded);
    let ended = std::thread::spawn(move || {
        terminal.track(b"\x1b[?2004hhalf a line");
        // The terminal is not dropped here, so only the hook can have restored it.
        let _held = terminal;
        panic!("as the test intends");
    });
    assert!(ended.join().is_err());
    assert_eq!(TerminalSettings::read(program.as_fd()).expect("a terminal").flags(), before.flags());
    assert_eq!(read_until(&mut person, "\r\n"), "\x1b[?2004l\r\n");
}

#[test]
fn a_message_is_never_printed_inside_a_sequence_of_the_program() {
    let (mut person, _program, mut terminal, _) = entered(KeyMode::Forwarded);
    terminal.track(b"prompt> \x1b[3");
    terminal.message("hello");
    terminal.track(b"1m");
    assert_eq!(read_until(&mut person, "]\r\n"), "\r\n[toolctl: hello]\r\n");
    terminal.message("again");
    assert_eq!(read_until(&mut person, "]\r\n"), "[toolctl: again]\r\n", "the cursor is on a fresh line already");
}

#[test]
fn a_message_on_a_screen_is_repeated_after_the_program_draws_over_it() {
    let (mut person, program, mut terminal, _) = entered(KeyMode::Forwarded);
    terminal.track(b"\x1b[H\x1b[Jone\x1b[5;1Hfive");
    let message = "\x1b[24;1H\x1b[m[toolctl: back]\x1b[K\x1b8";
    terminal.message("back");
    assert!(read_until(&mut person, message).starts_with("\x1b7"));
    terminal.track(b"\x1b[H\x1b[Jtwo");
    terminal.repeat_message();
    assert!(read_until(&mut person, message).starts_with("\x1b7"));
    terminal.redraw(None);
    terminal.track(b"\x1b[H\x1b[Jthree");
    terminal.repeat_message();
    terminal.leave();
    drop(terminal);
    drop(program);
    let mut rest = Vec::new();
    let _ = person.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("[toolctl: back]"), "its time has passed");
}
