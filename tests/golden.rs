//! State directories of earlier versions load: exits, output and lost processes are as they were recorded.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The recorded state is older than any other retention. 2^53 - 1 is the largest integer that JSON keeps exactly.
const CONFIG: &str = "[retention]\nmax_age_ms = 9007199254740991\n";

/// Copies a directory. Git stores no sockets and no modes, and this copy needs none.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a new directory");
    for entry in std::fs::read_dir(from).expect("a recorded directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("its type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// A daemon on a copy of a recorded state, until it is dropped.
struct Daemon {
    child: Child,
    socket: BufReader<UnixStream>,
    _dir: tempfile::TempDir,
}

impl Daemon {
    fn on(state: &str) -> Daemon {
        let dir = tempfile::tempdir().expect("a directory");
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(state);
        copy(&golden, &dir.path().join("state"));
        std::fs::write(dir.path().join("config.toml"), CONFIG).expect("a config");
        let path = dir.path().join("run/toold.sock");
        let mut child = Command::new(env!("CARGO_BIN_EXE_toold"))
            .args(["--log-format", "text", "--socket"])
            .arg(&path)
            .arg("--state-dir")
            .arg(dir.path().join("state"))
            .arg("--config")
            .arg(dir.path().join("config.toml"))
            .env_clear()
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("toold starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        assert!(stderr.any(|line| line.contains("ready")), "toold came up");
        // The log must be read, or the daemon blocks on a full pipe.
        std::thread::spawn(move || stderr.for_each(drop));
        let socket = BufReader::new(UnixStream::connect(&path).expect("toold answers"));
        Daemon { child, socket, _dir: dir }
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.socket.get_mut(), "{request}").expect("it reads");
        let mut answer = String::new();
        self.socket.read_line(&mut answer).expect("it answers");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["error"], Value::Null, "{method} {params}");
        answer["result"].clone()
    }

    /// Selected fields of `poll` from the start of the output.
    fn poll(&mut self, id: &str, members: &[&str]) -> Value {
        let mut page = self.call("poll", json!({ "id": id, "cursor": 0 }));
        members.iter().map(|name| (name.to_string(), page[*name].take())).collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const EXIT: [&str; 6] = ["status", "closed", "exit_code", "signal", "reason", "output"];

#[test]
fn a_state_directory_of_version_1_loads_whole() {
    let mut daemon = Daemon::on("state-v1");
    assert_eq!(
        daemon.poll("exits", &EXIT),
        json!({ "status": "exited", "closed": true, "exit_code": 3, "signal": null, "reason": "exited",
            "output": "out\nno newlineerr\n" })
    );
    assert_eq!(
        daemon.poll("killed", &EXIT),
        json!({ "status": "exited", "closed": true, "exit_code": 143, "signal": "SIGTERM", "reason": "killed",
            "output": "up\r\n" })
    );
    assert_eq!(
        daemon.poll("fails", &["status", "exit_code", "reason", "failure", "output"]),
        json!({ "status": "exited", "exit_code": null, "reason": "failed_start", "output": "",
            "failure": { "step": "exec", "errno": 2, "error": "ENOENT", "path": "/nonexistent",
                "message": "exec /nonexistent: No such file or directory (os error 2)" } })
    );
    // It ran when it was recorded. No program saw its exit, so none may be reported.
    daemon.call("wait", json!({ "id": "runs" }));
    assert_eq!(
        daemon.poll("runs", &["status", "exit_code", "signal", "reason", "output"]),
        json!({ "status": "lost", "exit_code": null, "signal": null, "reason": "lost", "output": "still\n" })
    );
    // It was recorded on another machine, and so before the last boot of this one. The broken code gave no reason.
    let failure = daemon.poll("runs", &["failure"])["failure"].take();
    assert_eq!((&failure["step"], &failure["error"]), (&json!("reboot"), &json!("ESHUTDOWN")), "{failure}");
}

#[test]
fn a_lost_process_of_a_version_that_recorded_no_reason_has_that_as_its_reason() {
    let mut daemon = Daemon::on("state-lost");
    let lost = daemon.poll("lost", &["status", "exit_code", "signal", "failure", "output"]);
    let message = "its end was not observed; an earlier version of toold did not record why";
    assert_eq!(
        lost,
        json!({ "status": "lost", "exit_code": 137, "signal": "SIGKILL", "output": "before\n",
            "failure": { "step": "unknown", "errno": 61, "error": "ENODATA", "path": "/bin/sh", "message": message } })
    );
}

/// One waited in a queue that was paused, one for the first, and one had values of its own.
#[test]
fn processes_that_waited_have_their_turn_and_one_without_its_values_has_that_reason() {
    let mut daemon = Daemon::on("state-pending");
    daemon.call("wait", json!({ "id": "second" }));
    for name in ["first", "second"] {
        assert_eq!(
            daemon.poll(name, &EXIT),
            json!({ "status": "exited", "closed": true, "exit_code": 0, "signal": null, "reason": "exited",
                "output": format!("{name}\n") })
        );
    }
    let values = daemon.poll("values", &["status", "exit_code", "reason", "failure", "output"]);
    assert_eq!(
        (&values["status"], &values["exit_code"], &values["reason"], &values["output"]),
        (&json!("exited"), &json!(null), &json!("failed_start"), &json!(""))
    );
    assert_eq!(
        (&values["failure"]["step"], &values["failure"]["error"]),
        (&json!("environment"), &json!("environment lost"))
    );
}

#[test]
fn the_requests_of_version_1_are_still_known() {
    let mut daemon = Daemon::on("state-v1");
    assert_eq!(
        daemon.poll("exits", &["id", "argv", "cwd", "task_id", "session_key", "labels", "bytes", "started_at"]),
        json!({
            "id": "proc_861e5017a5c2",
            "argv": ["/bin/sh", "-c", "echo out; echo err >&2; printf 'no newline'; exit 3"],
            "cwd": "/", "task_id": "t1", "session_key": "s1", "labels": { "kind": "golden" }, "bytes": 18,
            "started_at": "2026-11-16T04:25:53.241Z",
        })
    );
    assert_eq!(
        daemon.poll("killed", &["pty", "pty_size", "killed_by"]),
        json!({ "pty": true, "pty_size": { "rows": 30, "cols": 90 }, "killed_by": "client uid 0 pid 31438" })
    );
    let stderr = daemon.call("log", json!({ "id": "exits", "stream": "stderr" }));
    assert_eq!((&stderr["output"], &stderr["total_lines"]), (&json!("err\n"), &json!(1)));
    let again = daemon.call("exec", json!({ "argv": ["/bin/false"], "request_id": "r1" }));
    assert_eq!(again["id"], "proc_861e5017a5c2", "an old request is not run again");
}
