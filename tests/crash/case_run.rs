//! Runs one case: a daemon with one process is brought to its point, the victim is killed there, and everything continues.

use crate::matrix::{Case, Drive, Mode, Release, Side, Stdio, Victim};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use toold_test_support::conn::{Answer, Conn};
use toold_test_support::procfs;
use toold_test_support::rig::{DEADLINE, Daemon, id};
use toold_test_support::sys::Pidfd;

/// The output of the program before it waits for a line.
pub fn first_output() -> String {
    (1..=2000).map(|n| format!("{n}\n")).chain(["ready\n".to_string()]).collect()
}

/// The whole output of the program when it is not killed.
pub fn all_output() -> String {
    first_output() + "got hello\n"
}

pub struct CaseRun<'a> {
    pub case: &'a Case,
    pub daemon: Daemon,
    /// A daemon that was not waited for, because it pauses before it answers.
    unmanaged: Option<Child>,
    conn: Option<Conn>,
    /// The call that drives the process to the point.
    driving: Option<u64>,
    pub first_id: Option<String>,
    shim: Option<i32>,
    pub program: Option<Pidfd>,
    pub drive_answer: Option<Answer>,
}

impl<'a> CaseRun<'a> {
    pub fn new(case: &'a Case) -> CaseRun<'a> {
        let config = if case.mode == Mode::Exec { "shim = \"exec\"\n" } else { "" };
        // The rig creates its directory itself, so the directory of the hooks is known only after `prepare`.
        let hooks = tempfile_name();
        let mut daemon = Daemon::prepare(config, &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
        fs::create_dir(&hooks).unwrap();
        std::os::unix::fs::symlink(&hooks, daemon.root().join("hooks")).unwrap();
        daemon.spawn();
        CaseRun {
            case,
            daemon,
            unmanaged: None,
            conn: None,
            driving: None,
            first_id: None,
            shim: None,
            program: None,
            drive_answer: None,
        }
    }

    fn hook(&self, suffix: &str) -> PathBuf {
        self.daemon.root().join("hooks").join(format!("{}{suffix}", self.case.point.name))
    }

    pub fn marker(&self) -> PathBuf {
        self.daemon.root().join("ran")
    }

    /// The number of times that the program ran.
    pub fn runs(&self) -> usize {
        fs::read_to_string(self.marker()).unwrap_or_default().lines().count()
    }

    pub fn exec_params(&self) -> Value {
        let deaf = if self.case.point.name == "kill.forced" { "trap '' TERM;" } else { "" };
        let stty = if self.case.stdio == Stdio::Pty { "stty -echo -opost;" } else { "" };
        let script = format!(
            "{deaf} echo ran >> {}; {stty} seq 1 2000; echo ready; read -r x; echo \"got $x\"; exit 7",
            self.marker().display()
        );
        let mut params = json!({ "argv": ["/bin/sh", "-c", script], "request_id": "the-one" });
        match self.case.stdio {
            Stdio::Pipe => params["stdin"] = json!("pipe"),
            Stdio::Pty => params["pty"] = json!(true),
        }
        params
    }

    fn arm(&self) {
        fs::write(self.hook(""), "").unwrap();
    }

    pub fn release(&self) {
        fs::remove_file(self.hook("")).unwrap();
    }

    fn hit(&self) -> i32 {
        let file = self.hook(".hit");
        self.daemon.eventually("the point is reached", || file.exists());
        fs::read_to_string(file).unwrap().parse().unwrap()
    }

    /// Brings the process to the point. Returns the pid of the process that pauses there.
    pub fn drive(&mut self) -> i32 {
        let mut conn = self.daemon.conn();
        if self.case.point.drive == Drive::Start {
            self.arm();
            let exec = conn.request("exec", self.exec_params());
            let paused = self.hit();
            if self.case.point.answered() {
                self.first_id = Some(id(&conn.answer(exec).unwrap()));
            } else {
                self.driving = Some(exec);
            }
            if self.case.point.name == "spawn.requested" && self.case.victim == Victim::Shim {
                // So that the shim is running when it is killed, and not about to run.
                self.daemon.eventually("the program runs", || self.runs() == 1);
            }
            self.conn = Some(conn);
            return paused;
        }
        let process = id(&conn.call("exec", self.exec_params()).unwrap());
        self.daemon.printed(&process, "ready");
        self.shim = self.daemon.ok("inspect", json!({ "id": process }))["shim_pid"].as_i64().map(|pid| pid as i32);
        self.program = Pidfd::open(self.daemon.process(&process)["pid"].as_i64().unwrap() as i32);
        self.arm();
        match self.case.point.drive {
            Drive::Start => {}
            // Not driven by an answer: the process may have ended before it comes.
            Drive::Exit => _ = conn.request("submit", json!({ "id": process, "data": "hello" })),
            Drive::Kill => {
                let grace_ms = if self.case.point.name == "kill.forced" { 20 } else { 30_000 };
                self.driving = Some(conn.request("kill", json!({ "id": process, "grace_ms": grace_ms })));
            }
            Drive::Recover => {
                self.daemon.kill9();
                self.unmanaged = Some(self.daemon.command().spawn().unwrap());
            }
        }
        self.first_id = Some(process);
        self.conn = Some(conn);
        self.hit()
    }

    pub fn daemon_pid(&self) -> i32 {
        self.unmanaged.as_ref().map_or_else(|| self.daemon.pid(), |child| child.id() as i32)
    }

    fn zygote(&self) -> i32 {
        let found = || procfs::children(self.daemon_pid()).into_iter().find(|pid| procfs::name(*pid) == "toold-zygote");
        self.daemon.eventually("the daemon has a zygote", || found().is_some());
        found().unwrap()
    }

    fn shims(&self, paused: i32) -> Vec<i32> {
        match (self.case.point.side, self.shim) {
            (Side::Shim, _) => vec![paused],
            (Side::Daemon, Some(shim)) => vec![shim],
            (Side::Daemon, None) if self.case.point.has_shim() => {
                let of_this = |p: &Pidfd| procfs::name(p.pid) == "toold-shim";
                self.daemon.marked().iter().filter(|p| of_this(p)).map(|p| p.pid).collect()
            }
            (Side::Daemon, None) => procfs::children(self.zygote()),
        }
    }

    fn watch_program(&mut self, shim: i32) -> i32 {
        let program = procfs::children(shim).into_iter().min().expect("the shim has a program");
        self.program = Pidfd::open(program);
        program
    }

    /// kill -9 of the victim.
    pub fn strike(&mut self, paused: i32) {
        if self.program.is_none() && self.case.point.side == Side::Shim && !procfs::children(paused).is_empty() {
            self.watch_program(paused);
        }
        match self.case.victim {
            Victim::Daemon => self.kill_daemon(),
            Victim::Zygote => {
                // The zygote of an earlier daemon too: it is the parent of an adopted shim.
                self.zygote();
                let zygotes = self.daemon.marked().into_iter().filter(|p| procfs::name(p.pid) == "toold-zygote");
                zygotes.for_each(|p| end(p.pid));
            }
            Victim::Shim => self.shims(paused).into_iter().for_each(end),
            Victim::Program => {
                let shim = if self.case.point.side == Side::Shim { paused } else { self.shim.unwrap() };
                let program = self.watch_program(shim);
                end(program);
            }
            Victim::DaemonAndShim => {
                self.kill_daemon();
                self.shims(paused).into_iter().for_each(end);
            }
        }
    }

    fn kill_daemon(&mut self) {
        match self.unmanaged.take() {
            None => self.daemon.kill9(),
            Some(mut child) => {
                child.kill().unwrap();
                child.wait().unwrap();
            }
        }
    }

    /// Lets everything continue, with a daemon, and sends the same start again. Returns its answer.
    pub fn go_on(&mut self) -> Value {
        if self.case.release == Release::AtOnce {
            self.release();
        }
        if self.case.daemon_dies() {
            let answered = self.conn.take().and_then(|mut conn| conn.try_recv());
            if let (Some(answer), Drive::Start, true) = (answered, self.case.point.drive, self.driving.is_some()) {
                panic!("exec was answered before the crash: {answer}");
            }
            self.daemon.spawn();
        } else if let Some(call) = self.driving {
            let answer = self.conn.as_mut().unwrap().answer(call);
            if self.case.point.drive == Drive::Start {
                self.first_id = Some(id(answer.as_ref().unwrap()));
            }
            self.drive_answer = Some(answer);
        } else if self.unmanaged.is_some() {
            let socket = self.daemon.socket();
            self.daemon.eventually("the daemon answers", || {
                Conn::open(&socket).is_ok_and(|mut conn| conn.call("daemon.info", json!({})).is_ok())
            });
        }
        let mut conn = self.daemon.conn();
        let again = conn.request("exec", self.exec_params());
        // Served meanwhile, in any state of the shim.
        assert_eq!(self.daemon.ok("daemon.info", json!({}))["pid"], self.daemon_pid());
        if self.case.release == Release::WhenServed {
            self.release();
        }
        conn.answer(again).unwrap()
    }

    /// Replaces the current daemon by a new one of the rig.
    pub fn next_daemon(&mut self) {
        self.kill_daemon();
        self.daemon.spawn();
    }
}

impl Drop for CaseRun<'_> {
    fn drop(&mut self) {
        if let Ok(hooks) = fs::read_link(self.daemon.root().join("hooks")) {
            // Without gates no process pauses any more, so the rig can end the rest.
            fs::remove_dir_all(hooks).ok();
        }
        if let Some(mut child) = self.unmanaged.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// A unique path beside those of the rigs.
pub fn tempfile_name() -> PathBuf {
    let dir = tempfile::Builder::new().prefix("toold-hooks-").tempdir_in("/tmp").unwrap();
    Path::new("/tmp").join(dir.path().file_name().unwrap())
}

/// kill -9, and waits for the death.
pub fn end(pid: i32) {
    let Some(process) = Pidfd::open(pid) else { return };
    process.signal(libc::SIGKILL);
    assert!(process.dies_within(DEADLINE), "{pid} does not die");
}
