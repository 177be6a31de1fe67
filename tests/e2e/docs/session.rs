//! Types a session at a terminal, one command after the other, and reads the screen of each.

use super::compare::same;
use super::home::Home;
use super::page::Typed;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;
use toold_test_support::rig::DEADLINE;
use toold_test_support::sys::{Pidfd, own_terminal, terminal};

/// More rows than any page shows of one command.
const ROWS: u16 = 60;
const COLS: u16 = 100;
/// Marks around the output of each command: no program prints them.
const BEGIN: char = '\u{1e}';
const END: char = '\u{1f}';

/// The result of one command.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub code: i32,
    /// The screen when it has ended, with the paths of the page.
    pub screen: Vec<String>,
}

/// The key that a page shows on a line of its own, as terminals do: pressed when the text above it is on the screen.
pub fn key(line: &str) -> Option<&'static str> {
    match line {
        "^C" => Some("\x03"),
        "^D" => Some("\x04"),
        "^\\" => Some("\x1c"),
        "^P^Q" => Some("\x10\x11"),
        _ => None,
    }
}

pub struct Session<'a> {
    home: &'a Home,
    person: File,
    shell: Child,
    news: Receiver<Vec<u8>>,
    /// All output so far.
    all: Vec<u8>,
}

impl Session<'_> {
    /// Starts a shell that runs these commands on a new terminal.
    pub fn start<'a>(home: &'a Home, name: &str, session: &[Typed]) -> Session<'a> {
        let path = home.d.root().join(name);
        fs::write(&path, script(home, session)).unwrap();
        let (person, program) = terminal(ROWS, COLS);
        let handle = || program.try_clone().unwrap();
        let mut shell = Command::new("/bin/bash");
        shell.arg(&path).env_clear().envs(home.environment()).current_dir(home.project());
        shell.stdin(handle()).stdout(handle()).stderr(handle());
        own_terminal(&mut shell);
        let shell = shell.spawn().unwrap();
        let (sender, news) = channel();
        let mut reader = person.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut chunk = vec![0; 65536];
            while let Ok(read @ 1..) = reader.read(&mut chunk) {
                if sender.send(chunk[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Session { home, person, shell, news, all: Vec::new() }
    }

    /// Waits for the command with this number, presses its keys in time and returns its outcome.
    pub fn watch(&mut self, number: usize, typed: &Typed) -> Outcome {
        let keys: Vec<usize> = (0..typed.shown.len()).filter(|i| key(&typed.shown[*i]).is_some()).collect();
        let mut pressed = 0;
        let until = Instant::now() + DEADLINE;
        loop {
            let (bytes, code) = self.output(number);
            let screen = self.screen(&bytes);
            if let Some(code) = code {
                return Outcome { code, screen };
            }
            if let Some(at) = keys.get(pressed) {
                let above: Vec<String> = typed.shown[..*at].iter().filter(|l| key(l).is_none()).cloned().collect();
                if !above.is_empty() && same(&above, &screen.iter().map(String::as_str).collect::<Vec<_>>()) {
                    self.person.write_all(key(&typed.shown[*at]).unwrap().as_bytes()).unwrap();
                    pressed += 1;
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left) {
                Ok(bytes) => self.all.extend(bytes),
                Err(_) => panic!("`{}` does not end:\n{}", typed.command, screen.join("\n")),
            }
        }
    }

    /// The output of the command so far, and its code if it has ended.
    fn output(&self, number: usize) -> (String, Option<i32>) {
        let all = String::from_utf8_lossy(&self.all);
        let Some((_, after)) = all.split_once(&format!("{BEGIN}{number}{BEGIN}")) else {
            return (String::new(), None);
        };
        match after.split_once(END) {
            None => (after.into(), None),
            Some((output, code)) => (output.into(), code.split_once(END).map(|(code, _)| code.parse().unwrap())),
        }
    }

    /// The screen after these bytes, without the keys that the terminal echoes.
    fn screen(&self, bytes: &str) -> Vec<String> {
        let side = |n| NonZeroU16::new(n).unwrap();
        let mut screen = vt100::Parser::new(side(ROWS), side(COLS), 0);
        screen.process(bytes.as_bytes());
        let text = self.home.seen(&screen.screen().contents());
        let lines = text.lines().map(|line| line.trim_end().trim_start_matches("^C").trim_start_matches("^\\"));
        let mut lines: Vec<String> = lines.map(String::from).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let Some(shell) = Pidfd::open(self.shell.id() as i32).filter(|shell| !shell.is_dead()) {
            shell.signal(libc::SIGHUP);
            shell.signal(libc::SIGKILL);
        }
        let _ = self.shell.wait();
    }
}

/// One script for the whole session, so that variables, jobs and `$?` are as at a prompt.
fn script(home: &Home, session: &[Typed]) -> String {
    // A key interrupts the command and not the shell, as at a prompt.
    let mut script = String::from("trap : INT QUIT\n");
    for (number, typed) in session.iter().enumerate() {
        script += &format!("__was=$?; printf '\\036{number}\\036'; (exit $__was)\n");
        script += &format!("{}\n", home.localized(&typed.command));
        script += "__was=$?; printf '\\037%d\\037' $__was; (exit $__was)\n";
    }
    script
}
