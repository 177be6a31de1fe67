//! Floors: the same work without toold, measured in the same repetitions: spawn, socket, exit, file.

use crate::bench_sys;
use crate::children::ChildProcess;
use crate::client::Client;
use crate::sample::us;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use toold_test_support::sys::Gate;

/// Idle time of all processes before an exit is measured, of toold and of the floor.
const IDLE_DURATION: Duration = Duration::from_millis(2);

/// The small static program, which is built for this run.
pub struct Small {
    dir: TempDir,
}

impl Small {
    pub fn build() -> Small {
        let dir = tempfile::Builder::new().prefix("toold-bench-").tempdir_in("/tmp").unwrap();
        let small = Small { dir };
        let fixed: &[&str] = &["-C", "target-feature=+crt-static", "-C", "relocation-model=static"];
        if !small.compiled(fixed) {
            eprintln!("no static libc here: the small program is a dynamic one, and its floors are higher");
            assert!(small.compiled(&[]), "the small program cannot be built");
        }
        small
    }

    fn compiled(&self, more: &[&str]) -> bool {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/small/main.rs");
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args(["--edition", "2024", "-C", "opt-level=s", "-C", "panic=abort", "-C", "strip=symbols"]).args(more);
        rustc.arg(source).arg("-o").arg(self.path()).status().unwrap().success()
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("small")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.path());
        command.args(args).env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Returns the arguments of a process for toold.
    pub fn argv(&self, args: &[&str]) -> Vec<String> {
        [&self.path().display().to_string() as &str].iter().chain(args).map(|arg| arg.to_string()).collect()
    }
}

/// Measures microseconds of posix_spawn, which returns when the program was exec'd, and of that with the wait.
pub fn spawn_and_wait(command: &mut Command) -> (f64, f64) {
    let mut child = None;
    let spawn = us(|| child = Some(command.spawn().unwrap()));
    let wait = us(|| assert!(child.as_mut().unwrap().wait().unwrap().success()));
    (spawn, spawn + wait)
}

/// Returns `/bin/true` with an empty environment and inherited streams.
pub fn bare_true() -> Command {
    let mut command = Command::new("/bin/true");
    command.env_clear();
    command
}

/// A process that blocks in read and writes back, for round trips.
pub struct Echo {
    _child: ChildProcess,
    pub client: Client,
}

impl Echo {
    pub fn start() -> Echo {
        let process = ChildProcess::start("echo");
        let client = Client::open(&process.socket());
        Echo { _child: process, client }
    }

    /// Measures microseconds of a request with a response of this size.
    pub fn ask_for(&mut self, bytes: usize) -> f64 {
        self.client.ask(format!("#{bytes}\n").as_bytes())
    }
}

/// A program that stamps the time of its exit and waits at a gate, so that everything else is idle when it exits.
pub struct StampedExit {
    pub gate: Gate,
    file: PathBuf,
    argv: Vec<String>,
}

impl StampedExit {
    pub fn new(small: &Small, dir: &Path) -> StampedExit {
        let (file, gate) = (dir.join("stamp"), Gate::new(&dir.join("gate")));
        File::create(&file).unwrap().set_len(4096).unwrap();
        let argv = small.argv(&["stamp", &file.display().to_string(), &gate.path.display().to_string()]);
        StampedExit { gate, file, argv }
    }

    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// Lets the program exit, and returns the microseconds from its last action to the return of `notified`.
    pub fn timed(&self, notified: impl FnOnce()) -> f64 {
        std::thread::sleep(IDLE_DURATION); // measured: from an idle state, as in practice
        self.gate.open();
        notified();
        let now = bench_sys::now_ns();
        let stamp = std::fs::read(&self.file).unwrap();
        let stamp = u64::from_ne_bytes(stamp[..8].try_into().unwrap());
        now.checked_sub(stamp).expect("the notification follows the exit") as f64 / 1e3
    }
}

/// A process that reads the exit from a pidfd and writes it to a socket.
pub struct Supervisor {
    _child: ChildProcess,
    client: Client,
    exit: StampedExit,
}

impl Supervisor {
    pub fn start(small: &Small) -> Supervisor {
        let process = ChildProcess::start("supervisor");
        let (client, exit) = (Client::open(&process.socket()), StampedExit::new(small, process.dir()));
        Supervisor { _child: process, client, exit }
    }

    /// Measures microseconds from an exit to its notification.
    pub fn exit(&mut self) -> f64 {
        self.client.send((self.exit.argv().join(" ") + "\n").as_bytes());
        assert_eq!(self.client.line(), b"started\n");
        self.exit.timed(|| assert_eq!(self.client.line(), b"exited\n"))
    }
}
