//! A home directory to type in: our programs first in PATH, and fakes of programs that a test cannot use.

use crate::TOOLCTL;
use crate::service::install::{JOURNALCTL, LOGINCTL, SYSTEMCTL};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use toold_test_support::rig::Daemon;

/// Programs that replace real ones, and the reason. Each does what the real one does as far as a page needs it.
const STAND_INS: &[(&str, &str, &str)] = &[
    ("systemctl", "tests/e2e/service/systemd.rs asks the real one, where there is one", SYSTEMCTL),
    ("journalctl", "the same", JOURNALCTL),
    ("loginctl", "the same", LOGINCTL),
    ("notify-send", "there is no desktop", "#!/bin/sh\necho \"$@\" >> \"$0.log\"\n"),
    ("mail", "there is no recipient", "#!/bin/sh\ncat >> \"$0.log\"\n"),
    ("make", "nothing to make", "#!/bin/sh\necho \"make: ${1:-all} is up to date\"\n"),
    ("vim", "its screen differs by version", "#!/bin/sh\nprintf '\\033[?1049h\\033[H%s: new file' \"$1\"\nexec cat\n"),
    ("cargo", "builds are CI's business", "#!/bin/sh\necho \"$@\" >> \"$0.log\"\n"),
];
/// Does what `nc -NU` does, where nc is not installed: sends stdin, shuts down that direction, prints the answer.
const NC: &str = r#"#!/usr/bin/env python3
import socket, sys, threading
assert sys.argv[1] == "-NU", "only nc -NU is supported"
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[2])
def send():
    while piece := sys.stdin.buffer.read1(65536):
        s.sendall(piece)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while piece := s.recv(65536):
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
"#;

pub struct Home {
    pub d: Daemon,
    /// A free port of four digits, so that columns and byte counts are as in the pages.
    pub port: u16,
}

impl Home {
    pub fn new() -> Home {
        let home = Home { d: Daemon::prepare("", &[]), port: free_port() };
        let (at, bin) = (home.d.home(), home.d.root().join("bin"));
        for dir in [&bin, &at.join("project"), &at.join(".local")] {
            fs::create_dir_all(dir).unwrap();
        }
        symlink(home.d.root().join("state"), at.join(".local/state")).unwrap();
        symlink(home.d.root().join("config"), at.join(".config")).unwrap();
        for (name, _, text) in STAND_INS {
            home.program(name, text);
        }
        if !installed("nc") {
            home.program("nc", NC);
        }
        fs::write(at.join(".bashrc"), "PS1='me@here:~/project$ '\n").unwrap();
        home
    }

    /// Writes a program of this name, first in PATH.
    pub fn program(&self, name: &str, text: &str) {
        let (path, draft) = (self.d.root().join("bin").join(name), self.d.root().join("tmp").join(name));
        // Written elsewhere: a fork of another test must not hold a program open for writing.
        fs::write(&draft, text).unwrap();
        toold_test_support::sys::copy_program(&draft, &path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn path(&self) -> String {
        let ours = Path::new(TOOLCTL).parent().unwrap().display();
        format!("{}/bin:{ours}:{}", self.d.root().display(), std::env::var("PATH").unwrap())
    }

    /// The environment of an interactive shell.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let rig = self.d.ctl_command(&[]);
        let text = |value: &std::ffi::OsStr| value.to_str().unwrap().to_owned();
        let mut all: BTreeMap<String, String> =
            rig.get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))).collect();
        let more = [("SHELL", "/bin/bash"), ("LANG", "C.UTF-8"), ("TZ", "UTC"), ("TERM", "xterm-256color")];
        all.extend(more.map(|(name, value)| (name.into(), value.into())));
        all.insert("PATH".into(), self.path());
        all
    }

    /// The working directory of a session.
    pub fn project(&self) -> PathBuf {
        self.d.home().join("project")
    }

    /// The commands of a page with the paths and ports of this home.
    pub fn localized(&self, page: &str) -> String {
        let port = self.port.to_string();
        page.replace("8765", &port).replace("8080", &port).replace("proc_0b3b", "${ID:0:9}")
    }

    /// Text of this home with the paths and ports of the page.
    pub fn seen(&self, here: &str) -> String {
        let root = self.d.root().display().to_string();
        let ours = Path::new(TOOLCTL).parent().unwrap().display().to_string();
        let places = [
            (format!("{root}/home"), "/home/me"),
            (format!("{root}/state"), "/home/me/.local/state"),
            (format!("{root}/config"), "/home/me/.config"),
            (format!("{root}/run"), "/run/user/1000"),
            (format!("{root}/tmp"), "/tmp"),
            (ours, "/usr/bin"),
            (self.port.to_string(), "8765"),
        ];
        places.iter().fold(here.to_owned(), |text, (from, to)| text.replace(from.as_str(), to))
    }
}

fn installed(program: &str) -> bool {
    Command::new(program).arg("-h").output().is_ok()
}

fn free_port() -> u16 {
    // Homes of one run start their search at different ports: until its server listens, a port looks free to all of them.
    static HOMES: AtomicU16 = AtomicU16::new(0);
    let first = 8000 + (std::process::id() % 1000) as u16 + HOMES.fetch_add(10, Ordering::Relaxed);
    let free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..=9999).find(free).expect("a free port")
}
