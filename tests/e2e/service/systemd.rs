//! `toolctl service` with a real `systemd --user`, in namespaces of its own. Only root can make them, for itself and for a
//! user who is not root.

use crate::TOOLCTL;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::{DEADLINE, Daemon, id, skip_unless};
use toold_test_support::sys::{self, Pidfd};

const MANAGER: &str = "/usr/lib/systemd/systemd";
/// Mount points of control groups version 2, alone or beside version 1.
const CGROUP_ROOTS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// Starts the manager, which needs control groups that it may write, and signs that systemd booted the machine.
const SCRIPT: &str = r#"
echo $$ > "$1/m/cgroup.procs" || exit 1
exec unshare -m -C --propagation private bash -c '
  mount -t cgroup2 cgroup2 /sys/fs/cgroup && mount -t tmpfs -o mode=755 tmpfs /run && mkdir -p /run/systemd/system &&
  exec "$@" --user --log-target=console' bash "${@:2}"
"#;

/// A user other than root that every system has: `nobody`.
const OTHER_UID: u32 = 65534;
/// Runs a command as that user.
const AS_OTHER: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// Owner of the systemd under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Root,
    Other,
}

const ALL_USERS: [Whose; 2] = [Whose::Root, Whose::Other];

/// A systemd of a user, and a home that it serves.
struct User {
    d: Daemon,
    whose: Whose,
    /// Directory of the programs that this user may run.
    bin: PathBuf,
    manager: Child,
    group: PathBuf,
}

impl User {
    /// None where it is impossible, with the reason printed.
    fn new(whose: Whose) -> Option<User> {
        let groups = CGROUP_ROOTS.iter().map(Path::new).find(|dir| dir.join("cgroup.controllers").exists());
        let possible = sys::is_root() && Path::new(MANAGER).exists() && groups.is_some();
        if skip_unless(possible, "a systemd --user of one's own takes root, systemd and control groups of version 2") {
            return None;
        }
        let mut d = Daemon::prepare("", &[]);
        d.socket_stays = true;
        let name = d.root().file_name().unwrap().to_owned();
        let group = groups?.join(name);
        if skip_unless(fs::create_dir_all(group.join("m")).is_ok(), "control groups cannot be made here") {
            return None;
        }
        let bin = match whose {
            Whose::Root => Path::new(TOOLCTL).parent()?.to_owned(),
            Whose::Other => give_to_other(&d, &group),
        };
        let prefix = whose.prefix();
        let args = [&["-c", SCRIPT, "bash", group.to_str().unwrap()], prefix, &[MANAGER]].concat();
        let mut command = d.tool("bash", &args);
        let log = fs::File::create(d.root().join("manager.log")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let manager = command.spawn().unwrap();
        let mut user = User { d, whose, bin, manager, group };
        let answers = |user: &User| user.systemctl(&["is-system-running"]).stdout == "running\n";
        let until = Instant::now() + DEADLINE;
        while user.manager.try_wait().unwrap().is_none() {
            if answers(&user) {
                return Some(user);
            }
            assert!(
                Instant::now() < until,
                "systemd --user does not come up: {}",
                user.systemctl(&["--failed"]).stdout
            );
            std::thread::park_timeout(Duration::from_millis(20));
        }
        skip_unless(false, "systemd --user does not start here");
        None
    }

    fn installed(whose: Whose) -> Option<User> {
        let user = User::new(whose)?;
        let output = user.service(&["install", "--units-only"]);
        assert_eq!(output.code, 0, "{output:?}");
        Some(user)
    }

    /// Runs a program with the same /run as the manager: without it no program detects systemd.
    fn inside(&self, program: &str, args: &[&str]) -> Output {
        let pid = self.manager.id().to_string();
        let args = [&["-t", &pid, "-m", "--"], self.whose.prefix(), &[program], args].concat();
        output_of(self.d.tool("nsenter", &args).spawn().unwrap())
    }

    fn toolctl(&self, args: &[&str]) -> Output {
        self.inside(self.bin.join("toolctl").to_str().unwrap(), args)
    }

    fn service(&self, args: &[&str]) -> Output {
        self.toolctl(&[&["service"], args].concat())
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.service(&["status", "--json"]).stdout).unwrap()
    }

    /// Makes one call by a `toolctl` that starts no daemon: only systemd does.
    fn ctl(&self, args: &[&str]) -> Output {
        self.d.ctl(&[&["--no-autostart"], args].concat())
    }

    fn daemon(&self) -> Pidfd {
        let pid = self.d.ok("daemon.info", json!({}))["pid"].as_i64().unwrap();
        Pidfd::open(pid as i32).unwrap()
    }

    fn systemctl(&self, args: &[&str]) -> Output {
        self.inside("systemctl", &[&["--user"], args].concat())
    }
}

impl Whose {
    /// Command prefix that runs a program as this user.
    fn prefix(self) -> &'static [&'static str] {
        match self {
            Whose::Root => &[],
            Whose::Other => &AS_OTHER,
        }
    }
}

/// Gives the home and the control group away, and copies the programs to where any user may run them: a checkout may be
/// readable by root alone.
fn give_to_other(d: &Daemon, group: &Path) -> PathBuf {
    let bin = d.root().join("bin");
    fs::create_dir(&bin).unwrap();
    for program in [TOOLCTL, env!("CARGO_BIN_EXE_toold")] {
        fs::copy(program, bin.join(Path::new(program).file_name().unwrap())).unwrap();
    }
    for dir in [d.root(), group.join("m").as_path()] {
        let owner = format!("{OTHER_UID}:{OTHER_UID}");
        let output = output_of(d.tool("chown", &["-R", &owner, dir.to_str().unwrap()]).spawn().unwrap());
        assert_eq!(output.code, 0, "{output:?}");
    }
    bin
}

impl Drop for User {
    fn drop(&mut self) {
        // The daemon ends the jobs, systemd the daemon, and this code systemd.
        let _ = self.d.ctl(&["--no-autostart", "shutdown", "--kill"]);
        let manager = Pidfd::open(self.manager.id() as i32);
        if let Some(manager) = manager {
            manager.signal(libc::SIGTERM);
            if !manager.dies_within(DEADLINE) {
                manager.signal(libc::SIGKILL);
            }
        }
        let _ = self.manager.wait();
        let mut dirs = vec![self.group.clone()];
        let mut at = 0;
        while at < dirs.len() {
            let inside = fs::read_dir(&dirs[at]).into_iter().flatten().filter_map(|e| Some(e.ok()?.path()));
            let inside: Vec<PathBuf> = inside.filter(|path| path.is_dir()).collect();
            dirs.extend(inside);
            at += 1;
        }
        dirs.iter().rev().for_each(|dir| drop(fs::remove_dir(dir)));
    }
}

#[test]
fn the_first_call_starts_the_daemon_and_status_shows_it() {
    for user in ALL_USERS.into_iter().filter_map(User::installed) {
        let before = user.status();
        assert_eq!((&before["daemon"], &before["service"]["installed"]), (&Value::Null, &json!(true)), "{before}");
        let output = user.toolctl(&["doctor"]);
        assert!(output.code == 0 && output.stdout.contains("systemd starts it at the first call"), "{output:?}");
        assert_eq!(user.status()["daemon"], Value::Null, "neither status nor doctor started it");
        let output = user.ctl(&["run", "--", "echo", "hello"]);
        assert_eq!((output.code, output.stdout.as_str()), (0, "hello\n"), "{output:?}");
        let after = user.status();
        assert_eq!((&after["daemon"]["by_systemd"], &after["versions_agree"]), (&json!(true), &json!(true)), "{after}");
        let found = |path: &Path| fs::metadata(path).map(|meta| (meta.uid(), meta.mode() & 0o7777)).unwrap();
        let socket = user.d.socket();
        let uid = if user.whose == Whose::Other { OTHER_UID } else { 0 };
        assert_eq!((found(socket.parent().unwrap()), found(&socket)), ((uid, 0o700), (uid, 0o600)));
    }
}

#[test]
fn a_killed_daemon_is_restarted_on_the_same_socket_and_jobs_keep_their_output() {
    for user in ALL_USERS.into_iter().filter_map(User::installed) {
        let gate = user.d.gate("go");
        fs::set_permissions(user.d.root().join("go"), fs::Permissions::from_mode(0o666)).unwrap();
        let job = user.d.sh(&format!("echo before; {}; echo after; exec sleep 1000", gate.wait()));
        user.d.printed(&job, "before");
        let (program, daemon) = (user.d.program(&job), user.daemon());
        daemon.signal(libc::SIGKILL);
        assert!(daemon.dies_within(DEADLINE));
        gate.open();
        user.d.printed(&job, "after");
        assert!(!program.is_dead() && user.daemon().pid != daemon.pid);
        assert_eq!(user.d.text(&job), "before\nafter\n");
        assert_eq!(user.status()["service"]["restarts"], 1);
    }
}

#[test]
fn stop_and_restart_leave_jobs_running() {
    for user in ALL_USERS.into_iter().filter_map(User::installed) {
        let job = user.d.sh("exec sleep 1000");
        let (program, first) = (user.d.program(&job), user.daemon());
        assert_eq!(user.service(&["restart"]).code, 0);
        let second = user.daemon();
        assert!(first.is_dead() && second.pid != first.pid && !program.is_dead());
        assert_eq!(user.service(&["stop"]).code, 0);
        assert!(second.is_dead() && !program.is_dead());
        assert_eq!(user.ctl(&["list"]).code, 4, "systemd does not listen any more");
        assert_eq!(user.service(&["start"]).code, 0);
        assert_eq!(user.d.process(&job)["status"], "running");
        assert_eq!(user.status()["daemon"]["by_systemd"], true);
    }
}

#[test]
fn a_daemon_that_stops_answering_is_restarted() {
    for user in ALL_USERS.into_iter().filter_map(User::installed) {
        let dropin = user.d.root().join("config/systemd/user/toold.service.d");
        fs::create_dir_all(&dropin).unwrap();
        fs::write(dropin.join("soon.conf"), "[Service]\nWatchdogSec=1s\nTimeoutAbortSec=1s\nLimitCORE=0\n").unwrap();
        assert_eq!(user.systemctl(&["daemon-reload"]).code, 0);
        let job = user.d.sh("exec sleep 1000");
        let (program, daemon) = (user.d.program(&job), user.daemon());
        daemon.signal(libc::SIGSTOP);
        assert!(daemon.dies_within(DEADLINE), "systemd ends it");
        assert!(user.daemon().pid != daemon.pid && !program.is_dead());
        assert_eq!(user.d.process(&job)["status"], "running");
    }
}

#[test]
fn a_daemon_that_toolctl_started_is_replaced_and_uninstall_leaves_only_the_jobs() {
    for user in ALL_USERS.into_iter().filter_map(User::new) {
        let output = user.toolctl(&["exec", "--", "/bin/sleep", "1000"]);
        assert_eq!(output.code, 0, "{output:?}");
        let job = output.stdout.trim().to_owned();
        let (program, own) = (user.d.program(&job), user.daemon());
        let output = user.service(&["install", "--units-only"]);
        assert!(output.code == 0 && own.is_dead(), "{output:?}");
        assert_eq!(id(&user.d.process(&job)), job, "systemd's daemon has it now");
        assert_eq!(user.status()["daemon"]["by_systemd"], true);
        assert_eq!(user.service(&["uninstall"]).code, 0);
        assert!(!program.is_dead());
        assert_eq!(user.systemctl(&["cat", "toold.service"]).code, 1);
        let output = user.toolctl(&["poll", &job, "--json"]);
        assert!(
            output.code == 0 && output.stdout.contains("\"running\""),
            "toolctl starts one of its own again: {output:?}"
        );
    }
}
