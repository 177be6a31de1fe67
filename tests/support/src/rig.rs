//! A daemon with its own home, state directory and socket, and the check that it leaves nothing behind.

use crate::conn::{Answer, Conn};
use crate::output::{Output, exit_code, output_of};
use crate::programs;
use crate::sys::{Gate, Pidfd};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time limit of everything that waits in these tests.
pub const DEADLINE: Duration = Duration::from_secs(60);
/// The time in which killed processes must be gone. A shim exits when its tree is gone.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time in which a daemon stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// The interval of checks for a condition that has no event.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A user other than root that every system has.
pub const OTHER_UID: u32 = 65534;

pub struct Daemon {
    root: TempDir,
    pub env: Vec<(String, String)>,
    child: Option<Child>,
    /// The program to run: another copy of it after an upgrade.
    pub binary: PathBuf,
    /// Shell text that runs before the daemon, in the process that becomes it.
    pub before: Option<String>,
    /// Systemd owns the socket, and the daemon leaves it in place.
    pub socket_stays: bool,
}

impl Daemon {
    pub fn start() -> Daemon {
        Daemon::start_with("", &[])
    }

    /// Starts a daemon with this config file and these additional variables.
    pub fn start_with(config: &str, env: &[(&str, &str)]) -> Daemon {
        let mut daemon = Daemon::prepare(config, env);
        daemon.spawn();
        daemon
    }

    /// Creates everything but the running daemon.
    pub fn prepare(config: &str, env: &[(&str, &str)]) -> Daemon {
        crate::sys::reset_signals();
        let root = tempfile::Builder::new().prefix("toold-e2e-").tempdir_in("/tmp").unwrap();
        for dir in ["home", "tmp", "run", "state", "config/toold"] {
            fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        fs::set_permissions(root.path().join("run"), fs::Permissions::from_mode(0o700)).unwrap();
        if !config.is_empty() {
            fs::write(root.path().join("config/toold/config.toml"), config).unwrap();
        }
        let at = |name: &str| root.path().join(name).display().to_string();
        let mut all = vec![
            ("PATH".into(), std::env::var("PATH").unwrap()),
            ("HOME".into(), at("home")),
            ("TMPDIR".into(), at("tmp")),
            ("XDG_RUNTIME_DIR".into(), at("run")),
            ("XDG_STATE_HOME".into(), at("state")),
            ("XDG_CONFIG_HOME".into(), at("config")),
        ];
        all.extend(env.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        let binary = programs::toold();
        Daemon { root, env: all, child: None, binary, before: None, socket_stays: false }
    }

    /// Makes the daemon, which must not run yet, one of another user. Only root can do that.
    pub fn give_to_other_user(&mut self) {
        let bin = self.root().join("bin");
        fs::create_dir(&bin).unwrap();
        for program in [programs::toold(), programs::toolctl()] {
            crate::sys::copy_program(&program, &bin.join(program.file_name().unwrap()));
        }
        let owner = format!("{OTHER_UID}:{OTHER_UID}");
        let output = output_of(self.tool("chown", &["-R", &owner, self.root().to_str().unwrap()]).spawn().unwrap());
        assert_eq!(output.code, 0, "{output:?}");
        self.binary = bin.join("toold");
        let set_user = format!("exec setpriv --reuid={OTHER_UID} --regid={OTHER_UID} --clear-groups \"$0\" \"$@\"");
        self.before = Some(set_user);
    }

    /// The directory of this rig, removed with it. Its path marks the processes that belong to it.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub fn socket(&self) -> PathBuf {
        self.root().join("run/toold/toold.sock")
    }

    pub fn state(&self) -> PathBuf {
        self.root().join("state/toold")
    }

    pub fn gate(&self, name: &str) -> Gate {
        Gate::new(&self.root().join(name))
    }

    /// The log of all daemons of this rig.
    pub fn log(&self) -> String {
        fs::read_to_string(self.root().join("toold.log")).unwrap_or_default()
    }

    /// `toold` with the rig's environment and log, not started yet.
    pub fn command(&self) -> Command {
        let mut command = match &self.before {
            None => Command::new(&self.binary),
            Some(text) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", &format!("{text}\nexec \"$0\" \"$@\"")]).arg(&self.binary);
                shell
            }
        };
        let log = OpenOptions::new().create(true).append(true).open(self.root().join("toold.log")).unwrap();
        command.env_clear().envs(self.env.iter().map(|(k, v)| (k, v))).current_dir(self.root());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    /// Starts the daemon and returns when it answers.
    pub fn spawn(&mut self) {
        let command = self.command();
        self.spawn_as(command);
    }

    pub fn spawn_as(&mut self, mut command: Command) {
        assert!(self.child.is_none(), "the rig has a daemon already");
        let mut child = command.spawn().unwrap();
        let until = Instant::now() + DEADLINE;
        while Conn::open(&self.socket()).ok().and_then(|mut c| c.call("daemon.info", json!({})).ok()).is_none() {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "the daemon ended at its start, {ended:?}:\n{}", self.log());
            assert!(Instant::now() < until, "the daemon does not answer:\n{}", self.log());
            std::thread::park_timeout(POLL_INTERVAL);
        }
        self.child = Some(child);
    }

    pub fn pid(&self) -> i32 {
        self.child.as_ref().expect("the daemon runs").id() as i32
    }

    pub fn kill9(&mut self) {
        let mut child = self.child.take().expect("the daemon runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// kill -9, and a new daemon on the same state.
    pub fn restart(&mut self) {
        self.kill9();
        self.spawn();
    }

    /// Sends the daemon a signal and returns its exit code; 128+n when the signal killed it.
    pub fn stop(&mut self, signal: i32) -> i32 {
        Pidfd::open(self.pid()).unwrap().signal(signal);
        self.ended()
    }

    /// Waits until the daemon has stopped and returns its exit code.
    pub fn ended(&mut self) -> i32 {
        let mut child = self.child.take().expect("the daemon runs");
        let fd = Pidfd::open(child.id() as i32).unwrap();
        assert!(fd.dies_within(DEADLINE), "the daemon does not stop:\n{}", self.log());
        exit_code(child.wait().unwrap())
    }

    pub fn conn(&self) -> Conn {
        Conn::open(&self.socket()).unwrap()
    }

    /// Returns true if a daemon answers this call without parameters.
    pub fn call_if_there(&self, method: &str) -> bool {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\"}}\n");
        Conn::open(&self.socket()).is_ok_and(|mut conn| conn.offer(line.as_bytes()) && conn.line().is_some())
    }

    /// Makes one call on a connection of its own.
    pub fn call(&self, method: &str, params: Value) -> Answer {
        self.conn().call(method, params)
    }

    /// Returns the result of a call that must succeed.
    #[track_caller]
    pub fn ok(&self, method: &str, params: Value) -> Value {
        self.call(method, params.clone()).unwrap_or_else(|e| panic!("{method} {params}: {e}"))
    }

    /// Returns the error of a call that must fail with this code and kind.
    #[track_caller]
    pub fn refused(&self, code: i32, kind: &str, method: &str, params: Value) -> Value {
        let error = self.call(method, params.clone()).expect_err(&format!("{method} {params}"));
        assert_eq!(
            (&error["code"], &error["data"]["kind"]),
            (&json!(code), &json!(kind)),
            "{method} {params}: {error}"
        );
        error
    }

    /// Checks that a call is rejected because of this parameter.
    #[track_caller]
    pub fn refused_param(&self, name: &str, method: &str, params: Value) {
        let error = self.refused(-32602, "invalid_params", method, params.clone());
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(name), "{method} {params}: the message must name {name}: {message}");
        let (param, problem) = (error["data"]["param"].as_str().unwrap(), error["data"]["problem"].as_str().unwrap());
        assert_eq!(message, format!("{param}: {problem}"), "{method} {params}: data names the parameter");
    }

    /// Starts shell text, without the files of a login shell, and returns its id at once.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        id(&self.sh_with(script, json!({})))
    }

    /// Like `sh`, with more parameters. Returns the whole answer.
    #[track_caller]
    pub fn sh_with(&self, script: &str, more: Value) -> Value {
        let mut params = json!({ "argv": ["/bin/sh", "-c", script] });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ok("exec", params)
    }

    /// Runs shell text to the end of its output and returns the process.
    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        let started = self.sh(script);
        self.closed(&started)
    }

    /// Waits until the process has exited.
    #[track_caller]
    pub fn exited(&self, id: &str) -> Value {
        self.waited(id, json!("exit"), "exited")
    }

    /// Waits until the output of the process is closed.
    #[track_caller]
    pub fn closed(&self, id: &str) -> Value {
        self.waited(id, json!("closed"), "exited")
    }

    /// Waits until the process has printed `text`.
    #[track_caller]
    pub fn printed(&self, id: &str, text: &str) -> Value {
        self.waited(id, json!({ "match": text }), "matched")
    }

    #[track_caller]
    fn waited(&self, id: &str, until: Value, status: &str) -> Value {
        let wait = self.ok("wait", json!({ "id": id, "until": until, "timeout_ms": DEADLINE.as_millis() as u64 / 2 }));
        assert_eq!(wait["status"], status, "{wait}");
        wait["processes"][0].clone()
    }

    /// Reads every byte that is kept, page by page.
    #[track_caller]
    pub fn bytes(&self, id: &str) -> Vec<u8> {
        let (mut conn, mut cursor, mut all) = (self.conn(), 0, Vec::new());
        loop {
            let page = conn.call("poll", json!({ "id": id, "cursor": cursor, "encoding": "base64" })).unwrap();
            let bytes = STANDARD.decode(page["output"].as_str().unwrap()).unwrap();
            cursor = page["next_cursor"].as_u64().unwrap();
            if bytes.is_empty() {
                return all;
            }
            all.extend(bytes);
        }
    }

    /// Reads the whole output as text.
    #[track_caller]
    pub fn text(&self, id: &str) -> String {
        String::from_utf8(self.bytes(id)).unwrap()
    }

    #[track_caller]
    pub fn process(&self, id: &str) -> Value {
        self.ok("poll", json!({ "id": id }))
    }

    /// Opens the program's own process.
    #[track_caller]
    pub fn program(&self, id: &str) -> Pidfd {
        Pidfd::open(self.process(id)["pid"].as_i64().unwrap() as i32).expect("the program runs")
    }

    /// The ids in `list`, newest first.
    #[track_caller]
    pub fn ids(&self, filter: Value) -> Vec<String> {
        self.ok("list", filter)["processes"].as_array().unwrap().iter().map(id).collect()
    }

    /// `toolctl` with the rig's environment, not started yet.
    pub fn ctl_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(programs::toolctl());
        command.args(args).env_clear().envs(self.env.iter().map(|(k, v)| (k, v))).current_dir(self.root());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Another program with the rig's environment and `toolctl` in its PATH, not started yet.
    pub fn tool(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        let ours = programs::toolctl().parent().unwrap().display().to_string();
        command.args(args).env_clear().envs(self.env.iter().map(|(k, v)| (k, v))).current_dir(self.root());
        command.env("PATH", format!("{ours}:{}", std::env::var("PATH").unwrap()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn ctl(&self, args: &[&str]) -> Output {
        output_of(self.ctl_command(args).spawn().unwrap())
    }

    /// Waits until `fact` holds, for conditions without an event. Panics after the deadline.
    #[track_caller]
    pub fn eventually(&self, what: &str, mut fact: impl FnMut() -> bool) {
        let until = Instant::now() + DEADLINE;
        while !fact() {
            assert!(Instant::now() < until, "it never came true that {what}");
            std::thread::park_timeout(POLL_INTERVAL);
        }
    }

    /// The living processes that carry the mark of the rig, except the daemon: everything that it ever started.
    pub fn marked(&self) -> Vec<Pidfd> {
        let daemon = self.child.as_ref().map(|c| c.id() as i32);
        let pids = fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let holder = lock_holder(self.root());
        let is_ours = |pid: &i32| holder == Some(*pid) || carries(*pid, self.root());
        pids.filter(|pid| Some(*pid) != daemon && is_ours(pid)).filter_map(Pidfd::open).collect()
    }

    fn finish(&mut self) {
        if !answers(&self.socket()) && !all_die(&self.marked(), STOP_TIMEOUT).is_empty() {
            // The test ended without a daemon. A new one ends the processes of its state.
            self.child = None;
            self.spawn();
        }
        // A daemon that stops already takes the connection and closes it.
        if let Some(mut conn) = Conn::open(&self.socket()).ok().filter(|_| self.call_if_there("daemon.info")) {
            let pid = conn.call("daemon.info", json!({})).unwrap()["pid"].as_i64().unwrap() as i32;
            let daemon = Pidfd::open(pid).unwrap();
            conn.call("daemon.shutdown", json!({ "kill": true })).unwrap();
            assert!(daemon.dies_within(DEADLINE), "the daemon does not stop");
            if let Some(mut child) = self.child.take() {
                child.wait().unwrap();
            }
            assert!(self.socket_stays || !self.socket().exists(), "the socket is left behind");
        }
        let left = all_die(&self.marked(), EXIT_TIMEOUT);
        assert!(left.is_empty(), "left behind: {left:#?}");
    }

    fn kill_all(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
        self.marked().iter().for_each(|p| p.signal(libc::SIGKILL));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let failed = std::thread::panicking()
            || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.finish())).is_err();
        if failed {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("--- the daemon's log, last lines ---\n{}", lines[lines.len().saturating_sub(60)..].join("\n"));
            self.kill_all();
        }
        assert!(!failed || std::thread::panicking(), "the rig did not end clean, see above");
    }
}

/// Returns the `id` of a JSON object.
#[track_caller]
pub fn id(value: &Value) -> String {
    value["id"].as_str().unwrap_or_else(|| panic!("no id in {value}")).to_string()
}

/// Every regular file below `dir`, in order. Sockets and fifos are left out: reading one could block.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| !p.is_symlink()).collect();
    paths.sort();
    paths.into_iter().flat_map(|p| if p.is_dir() { files(&p) } else { vec![p] }).filter(|p| p.is_file()).collect()
}

/// Prints the reason if a test cannot run here. Returns true then.
pub fn skip_unless(possible: bool, why: &str) -> bool {
    if !possible {
        eprintln!("skipped: {why}");
    }
    !possible
}

/// Describes the processes that are still alive after this time.
fn all_die(processes: &[Pidfd], within: Duration) -> Vec<String> {
    let until = Instant::now() + within;
    let lives = |p: &&Pidfd| !p.dies_within(until.saturating_duration_since(Instant::now()));
    processes.iter().filter(lives).map(|p| format!("{} {}", p.pid, cmdline(p.pid))).collect()
}

fn answers(socket: &Path) -> bool {
    Conn::open(socket).is_ok()
}

fn cmdline(pid: i32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).replace('\0', " ")
}

/// The pid of the daemon that holds a state directory of the rig. Its environment cannot be seen, and it may have no
/// argument.
fn lock_holder(root: &Path) -> Option<i32> {
    let pid = fs::read_to_string(root.join("state/toold/lock")).ok()?.trim().parse().ok()?;
    crate::procfs::name(pid).starts_with("toold").then_some(pid)
}

/// Returns true if a process belongs to the rig: by a variable, an argument, a title or its directory. A zombie has none.
fn carries(pid: i32, root: &Path) -> bool {
    let mark = root.to_str().unwrap();
    let has = |name: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        bytes.windows(mark.len()).any(|w| w == mark.as_bytes())
    };
    has("environ") || has("cmdline") || fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|dir| dir.starts_with(root))
}
