//! A program that is held back for its reader, while daemon or shim die: the reader gets every byte once, or the process is lost
//! with what was stored. Nothing waits for ever.

use crate::case_run::{end, tempfile_name};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::sys::Pidfd;

pub const POINTS: [&str; 4] = ["hold.claimed", "hold.full", "hold.resumed", "hold.released"];

/// Bytes that differ, and more of them than log, shim and pipe take together: the program cannot end before it is read.
const LINES: usize = 400_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dies {
    Daemon,
    Shim,
    DaemonAndShim,
}

/// The moment at which the paused shim continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    WithoutDaemon,
    WithTheNext,
}

#[test]
fn a_reader_gets_every_byte_once_whatever_dies_while_its_program_is_held_back() {
    std::thread::scope(|scope| {
        for point in POINTS {
            for dies in [Dies::Daemon, Dies::Shim, Dies::DaemonAndShim] {
                for goes in [Goes::WithoutDaemon, Goes::WithTheNext] {
                    scope.spawn(move || hold(point, dies, goes));
                }
            }
        }
    });
}

struct Run {
    case: String,
    hooks: PathBuf,
    daemon: Daemon,
    process: String,
    text: String,
}

impl Run {
    fn exec(&self, conn: &mut Conn) -> Value {
        let script = format!("echo ran >> {}; exec seq 1 {LINES}", self.daemon.root().join("ran").display());
        conn.call("exec", json!({ "argv": ["/bin/sh", "-c", script], "hold": true, "request_id": "the-one" })).unwrap()
    }

    /// Reads the next page, if it comes in this time. Returns false at the end.
    fn read(&mut self, conn: &mut Conn, wait_ms: u64) -> bool {
        let ask = json!({ "id": self.process, "cursor": self.text.len(), "wait_ms": wait_ms, "hold": true });
        let page = conn.call("poll", ask).unwrap();
        assert_eq!(page["gap"], json!(null), "{}: something was dropped", self.case);
        self.text += page["output"].as_str().unwrap();
        page["closed"] != true || page["cursor"] != self.text.len()
    }

    fn hit(&self, point: &str) -> i32 {
        let file = self.hooks.join(format!("{point}.hit"));
        self.daemon.eventually(&format!("{}: the point is reached", self.case), || file.exists());
        fs::read_to_string(file).unwrap().parse().unwrap()
    }
}

fn hold(point: &'static str, dies: Dies, goes: Goes) {
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let config = "log_max_bytes = 65536\n";
    let daemon = Daemon::start_with(config, &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let case = format!("{point} {dies:?} {goes:?}");
    let mut run = Run { case, hooks, daemon, process: String::new(), text: String::new() };
    let case = run.case.clone();
    let expected: String = (1..=LINES).map(|n| format!("{n}\n")).collect();
    let gate = run.hooks.join(point);
    let mut conn = run.daemon.conn();

    if matches!(point, "hold.claimed" | "hold.full") {
        fs::write(&gate, "").unwrap();
    }
    run.process = id(&run.exec(&mut conn));
    let process = run.process.clone();
    let mut reader = Some(conn);
    if matches!(point, "hold.resumed" | "hold.released") {
        run.daemon.eventually("it is held back", || run.daemon.process(&process)["held_back"] == true);
        fs::write(&gate, "").unwrap();
        match reader.take() {
            // What it reads makes room, in the end for all that waits.
            Some(mut conn) if point == "hold.resumed" => {
                let hit = run.hooks.join("hold.resumed.hit");
                while !hit.exists() {
                    run.read(&mut conn, 100);
                }
                reader = Some(conn);
            }
            gone => drop(gone),
        }
    }
    let shim = Pidfd::open(run.hit(point)).unwrap();
    if matches!(dies, Dies::Daemon | Dies::DaemonAndShim) {
        run.daemon.kill9();
    }
    if matches!(dies, Dies::Shim | Dies::DaemonAndShim) {
        end(shim.pid);
    }
    if goes == Goes::WithoutDaemon {
        fs::remove_file(&gate).unwrap();
    }
    if matches!(dies, Dies::Daemon | Dies::DaemonAndShim) {
        run.daemon.spawn();
    }
    if goes == Goes::WithTheNext {
        fs::remove_file(&gate).unwrap();
    }

    let mut conn = run.daemon.conn();
    if dies != Dies::Daemon {
        run.daemon.eventually("it is lost", || run.daemon.process(&process)["status"] == "lost");
        // All that was stored and not read is there. A shim that was to release had dropped nothing yet.
        while run.read(&mut conn, 0) {}
        assert!(expected.starts_with(&run.text), "{case}: bytes that the program did not write, or not in this order");
        assert!(run.text.len() >= 30_000 || point == "hold.claimed", "{case}: {} bytes are left", run.text.len());
    } else if point == "hold.released" {
        // The reader had gone: at the latest the time without one ends the hold.
        let ended = run.daemon.closed(&process);
        let (bytes, dropped) = (ended["bytes"].as_u64().unwrap(), ended["dropped_bytes"].as_u64().unwrap());
        assert_eq!((bytes, &ended["exit_code"]), (expected.len() as u64, &json!(0)), "{case}: {ended}");
        assert!(dropped > 0 && run.daemon.bytes(&process).len() as u64 + dropped == bytes, "{case}: {ended}");
    } else {
        assert_eq!(id(&run.exec(&mut conn)), process, "{case}: the same request gave another process");
        while run.read(&mut conn, 30_000) {}
        assert!(run.text == expected, "{case}: {} bytes came", run.text.len());
        assert_eq!(run.daemon.closed(&process)["exit_code"], 0);
    }
    let runs = fs::read_to_string(run.daemon.root().join("ran")).unwrap_or_default().lines().count();
    assert_eq!(runs, 1, "{case}: the program ran {runs} times");
    drop((reader, conn));
    fs::remove_dir_all(&run.hooks).unwrap();
}
