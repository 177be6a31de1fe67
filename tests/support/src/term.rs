//! A person at a terminal: types, reads the screen, resizes and closes the window.

use crate::programs;
use crate::rig::{DEADLINE, Daemon};
use crate::sys::{Pidfd, own_terminal, set_window, terminal, terminal_settings};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

/// The size of a new terminal.
pub const SIZE: (u16, u16) = (24, 80);
/// The key that detaches.
pub const DETACH: &str = "\x1c";

/// The screen, and every byte that made it.
struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    ended: bool,
}

pub struct Term {
    person: Option<File>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    shell: Child,
    /// The settings of the terminal before anything ran on it.
    before: (Vec<u32>, Vec<u8>),
}

impl Term {
    /// Runs `toolctl` with these arguments in a shell, which prints its code and stays.
    pub fn ctl(d: &Daemon, args: &[&str]) -> Term {
        Term::shell(d, "\"$0\" \"$@\"; echo \"[code $?]\"; read -r _", args)
    }

    /// Runs shell text in which `"$0" "$@"` is `toolctl` with these arguments.
    pub fn shell(d: &Daemon, text: &str, args: &[&str]) -> Term {
        let (person, program) = terminal(SIZE.0, SIZE.1);
        let before = terminal_settings(&person);
        let rig = d.ctl_command(&[]);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", text]).arg(programs::toolctl()).args(args).env_clear().current_dir(d.root());
        shell.envs(rig.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
        let handle = || program.try_clone().unwrap();
        shell.stdin(handle()).stdout(handle()).stderr(handle());
        own_terminal(&mut shell);
        let shell = shell.spawn().unwrap();
        let side = |n| NonZeroU16::new(n).unwrap();
        let screen = vt100::Parser::new(side(SIZE.0), side(SIZE.1), 0);
        let seen = Arc::new((Mutex::new(Seen { screen, bytes: Vec::new(), ended: false }), Condvar::new()));
        let (reader, news) = (person.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || watch(reader, &news));
        Term { person: Some(person), seen, shell, before }
    }

    fn person(&self) -> &File {
        self.person.as_ref().expect("the terminal is open")
    }

    pub fn types(&self, keys: &str) {
        self.person().write_all(keys.as_bytes()).unwrap();
    }

    /// Types each text and waits until its answer is on the screen.
    #[track_caller]
    pub fn dialog(&self, steps: &[(&str, &str)]) {
        for (keys, answer) in steps {
            self.types(keys);
            self.sees(answer);
        }
    }

    /// Types in a thread while the test continues, and counts the bytes that the terminal has taken.
    pub fn types_on(&self, keys: String) -> Arc<AtomicUsize> {
        let (mut person, taken) = (self.person().try_clone().unwrap(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&taken);
        std::thread::spawn(move || {
            for piece in keys.as_bytes().chunks(1024) {
                // The window may be closed before all is typed.
                if person.write_all(piece).is_err() {
                    return;
                }
                count.fetch_add(piece.len(), Ordering::Relaxed);
            }
        });
        taken
    }

    pub fn resize(&self, rows: u16, cols: u16) {
        self.seen.0.lock().unwrap().screen.set_size(NonZeroU16::new(rows).unwrap(), NonZeroU16::new(cols).unwrap());
        set_window(self.person(), rows, cols);
    }

    /// Closes the window.
    pub fn close(&mut self) {
        // The reader thread has a handle too, and only the last close hangs up: this sends the same signal.
        let leader = Pidfd::open(self.shell.id() as i32).unwrap();
        self.person = None;
        leader.signal(libc::SIGKILL);
        self.shell.wait().unwrap();
    }

    /// Waits until `look` finds something on the screen or in the bytes.
    #[track_caller]
    fn until<T>(&self, what: &str, look: impl Fn(&Seen) -> Option<T>) -> T {
        let until = Instant::now() + DEADLINE;
        let mut seen = self.seen.0.lock().unwrap();
        loop {
            if let Some(found) = look(&seen) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            let bytes = String::from_utf8_lossy(&seen.bytes);
            assert!(
                !left.is_zero() && !seen.ended,
                "{what} was never seen, but\n{}\n{bytes:?}",
                seen.screen.screen().contents()
            );
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Waits until the text is on the screen, and returns the whole screen.
    #[track_caller]
    pub fn sees(&self, text: &str) -> String {
        self.until(text, |seen| Some(seen.screen.screen().contents()).filter(|screen| screen.contains(text)))
    }

    /// Waits until the text is not on the screen any more, and returns the whole screen.
    #[track_caller]
    pub fn loses(&self, text: &str) -> String {
        let what = format!("a screen without {text}");
        self.until(&what, |seen| Some(seen.screen.screen().contents()).filter(|screen| !screen.contains(text)))
    }

    /// Waits until the text was printed, and returns everything that was.
    #[track_caller]
    pub fn printed(&self, text: &str) -> String {
        self.printed_times(text, 1)
    }

    /// The same for text that is printed at least this number of times.
    pub fn printed_times(&self, text: &str, times: usize) -> String {
        let all = |seen: &Seen| String::from_utf8_lossy(&seen.bytes).into_owned();
        self.until(text, |seen| Some(all(seen)).filter(|all| all.matches(text).count() >= times))
    }

    /// Modes of the screen: alternate screen, hidden cursor, mouse reports, bracketed paste.
    pub fn modes(&self) -> (bool, bool, bool, bool) {
        let seen = self.seen.0.lock().unwrap();
        let screen = seen.screen.screen();
        let mouse = screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None;
        (screen.alternate_screen(), screen.hide_cursor(), mouse, screen.bracketed_paste())
    }

    /// The `toolctl` that the shell runs now.
    #[track_caller]
    pub fn toolctl(&self) -> Pidfd {
        let pid = self.shell.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let child = children.split_whitespace().next().unwrap_or_else(|| panic!("the shell {pid} has no child"));
        Pidfd::open(child.parse().unwrap()).unwrap()
    }

    pub fn settings(&self) -> (Vec<u32>, Vec<u8>) {
        terminal_settings(self.person())
    }

    /// Waits for the exit code of `toolctl`, and checks that it restored the terminal.
    #[track_caller]
    pub fn ends(&self) -> i32 {
        let all = self.printed("[code ");
        let all = if all.ends_with("]\r\n") { all } else { self.printed("]\r\n") };
        let code = all.rsplit_once("[code ").unwrap().1.split_once(']').map(|(code, _)| code.parse().unwrap());
        assert_eq!(self.settings(), self.before, "the settings are as before");
        assert_eq!(
            self.modes(),
            (false, false, false, false),
            "the screen, the cursor, the mouse and the paste: {all:?}"
        );
        code.unwrap_or_else(|| panic!("a code in {all:?}"))
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        if self.person.is_some() {
            self.shell.kill().ok();
            self.shell.wait().ok();
        }
    }
}

/// Reads the output of the terminal until it is closed.
fn watch(mut reader: File, seen: &(Mutex<Seen>, Condvar)) {
    let mut chunk = vec![0; 65536];
    loop {
        let read = reader.read(&mut chunk).unwrap_or(0);
        let mut now = seen.0.lock().unwrap();
        now.screen.process(&chunk[..read]);
        now.bytes.extend_from_slice(&chunk[..read]);
        now.ended = read == 0;
        seen.1.notify_all();
        if read == 0 {
            return;
        }
    }
}
