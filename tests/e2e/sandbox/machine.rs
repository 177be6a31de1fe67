//! Machines that give less, and ones that change: what is enforced there is listed, and nothing is silently weaker.

use super::sys::listen_above;
use super::world::{User, World};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use toold_test_support::rig::{Daemon, id, skip_unless};
use toold_test_support::sys::{copy_program, is_root, refuse_call};

/// A daemon whose home is not in `/tmp`, which a sandbox has for itself.
struct Machine {
    daemon: Daemon,
    home: tempfile::TempDir,
}

impl Machine {
    fn prepare(config: &str) -> Machine {
        let home = tempfile::Builder::new().prefix("toold-machine-").tempdir_in("/var/tmp").unwrap();
        fs::create_dir_all(home.path().join("work/.git/hooks")).unwrap();
        let daemon = Daemon::prepare(config, &[("HOME", home.path().to_str().unwrap())]);
        Machine { daemon, home }
    }

    fn start(config: &str) -> Machine {
        let mut machine = Machine::prepare(config);
        machine.daemon.spawn();
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn run(&self, script: &str, sandbox: &Value) -> (Value, String) {
        let call = json!({ "argv": ["/bin/sh", "-c", script], "cwd": self.at("work"), "sandbox": sandbox });
        let process = id(&self.daemon.ok("exec", call));
        (self.daemon.closed(&process), self.daemon.text(&process))
    }
}

fn events(d: &Daemon, kind: &str) -> Vec<Value> {
    let call = json!({ "consumer": kind, "types": [kind], "limit": 100 });
    d.ok("events.next", call)["events"].as_array().unwrap().clone()
}

/// The limit is one of a user namespace: in one of its own a daemon has its own.
#[test]
fn where_user_namespaces_are_limited_to_none_landlock_confines_and_the_rest_is_listed() {
    let limit = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let unshare = ["--user", "--map-root-user"];
    let works = Command::new("unshare").args(unshare).args(["sh", "-c", limit, "true"]).status();
    if skip_unless(works.is_ok_and(|status| status.success()), "no user namespace of its own") {
        return;
    }
    let mut machine = Machine::prepare("");
    machine.daemon.before = Some(format!("exec unshare {} sh -c '{limit}' \"$0\" \"$@\"", unshare.join(" ")));
    machine.daemon.spawn();
    let d = &machine.daemon;
    let script = "echo x > in && echo inside; echo x > ../out || echo refused";
    let (process, output) = machine.run(script, &json!("workspace-write"));
    assert!(output.contains("inside") && output.contains("refused"), "{process}: {output}");
    let sandbox = &process["sandbox"];
    assert_eq!((&sandbox["kind"], &sandbox["by"]["namespaces"]), (&json!("landlock"), &json!([])), "{sandbox}");
    let missing = sandbox["not_enforced"].as_array().unwrap();
    for what in ["fs_metadata", "protect", "hide", "tmp", "unix_sockets"] {
        let listed = missing.iter().find(|not| not["what"] == what).unwrap_or_else(|| panic!("{what}: {sandbox}"));
        assert!(listed["why"].as_str().unwrap().contains("no namespaces"), "{listed}");
    }
    let required = json!({ "argv": ["/bin/touch", "ran"], "cwd": machine.at("work"),
        "sandbox": { "profile": "workspace-write", "require": ["protect"] } });
    d.refused(-32008, "unavailable", "exec", required);
    assert!(!machine.at("work/ran").exists() && !machine.at("out").exists());
    // The check has the same result: no gap, and no mechanism of namespaces.
    let probe = d.ok("sandbox.probe", json!({}));
    assert_eq!(probe["gaps"], json!([]), "{probe}");
    let tried = probe["mechanisms"].as_array().unwrap();
    let namespaces = tried.iter().find(|one| one["mechanism"] == "namespaces").unwrap();
    assert_eq!(namespaces["available"], false, "{probe}");
}

#[test]
fn an_executed_shim_confines_its_program_by_the_same_walls() {
    let machine = Machine::start("shim = \"exec\"\n");
    let d = &machine.daemon;
    assert!(d.ok("daemon.info", json!({}))["features"]["zygote_pid"].is_null());
    let script = "echo x > in && echo inside; echo x > ../out || echo refused; echo x > .git/hooks/h || echo protected; \
        echo x > .git/commondir || echo guarded; kill -0 $PPID || echo walled; grep ^CapEff /proc/self/status";
    let (process, output) = machine.run(script, &json!({ "profile": "workspace-write", "network": "loopback" }));
    for line in ["inside", "refused", "protected", "guarded", "walled", "CapEff:\t0000000000000000"] {
        assert!(output.lines().any(|found| found == line), "{line}: {process} {output}");
    }
    assert_eq!(process["sandbox"]["by"]["namespaces"], json!(["user", "mnt", "net", "ipc"]), "{process}");
    assert_eq!(process["sandbox"]["denials"]["count"], 3, "{process}");
    assert!(machine.at("work/in").exists() && !machine.at("out").exists());
    let call = json!({ "argv": ["tty"], "cwd": machine.at("work"), "pty": true, "sandbox": "workspace-write" });
    let terminal = id(&d.ok("exec", call));
    assert_eq!(d.closed(&terminal)["exit_code"], 0);
    assert!(d.text(&terminal).contains("/dev/pts/"));
}

#[test]
fn caches_are_roots_if_they_exist_and_only_if_asked_for() {
    let machine = Machine::start("");
    for cache in [".cargo/registry", ".cache/pip"] {
        fs::create_dir_all(machine.at(cache)).unwrap();
    }
    let script = "cd ..; for f in .cargo/registry/a .cache/pip/a .cargo/a .cache/a .npm/a; do mkdir -p $(dirname $f); \
         echo x > $f && echo wrote $f; done 2> /dev/null";
    let caches = json!({ "profile": "workspace-write", "caches": true });
    let (process, output) = machine.run(script, &caches);
    assert_eq!(output, "wrote .cargo/registry/a\nwrote .cache/pip/a\n", "{process}");
    let roots = ["work", ".cargo/registry", ".cache/pip"].map(|root| machine.at(root));
    assert_eq!(process["sandbox"]["roots"], json!(roots), "{process}");
    assert!(!machine.at(".npm").exists(), "a cache that is not there is not made");
    fs::remove_file(machine.at(".cache/pip/a")).unwrap();
    assert_eq!(machine.run(script, &json!("workspace-write")).1, "");
    assert!(!machine.at(".cache/pip/a").exists());
}

/// Sockets of the host in a directory that is masked, and one that is masked alone.
#[test]
fn a_socket_of_the_host_is_reached_only_if_it_is_listed() {
    let world = World::new(User::Own, "auto");
    let dir = world.at("runtime");
    fs::create_dir(&dir).unwrap();
    let listeners = ["listed", "other"].map(|name| UnixListener::bind(dir.join(name)).unwrap());
    let sockets = [dir.join("listed"), dir.join("other"), world.at("outside/socket"), world.daemon.socket()];
    let names: Vec<String> = sockets.iter().map(|path| path.display().to_string()).collect();
    let argv =
        json!([world.at("bin/act"), "--exact", "sandbox::sys::connects_inside_a_job", "--ignored", "--nocapture"]);
    let connect = |listed: &[&String]| {
        let sandbox = json!({ "profile": "workspace-write", "unix_sockets": listed });
        let mut call = world.job(&argv, &sandbox);
        call["env"]["SOCKETS"] = json!(names.join(":"));
        let process = id(&world.daemon.ok("exec", call));
        let ended = world.daemon.closed(&process);
        let text = world.daemon.text(&process);
        let errno = |name: &String| {
            let found = text.lines().find_map(|line| line.split_once("CONNECT ")?.1.strip_prefix(&format!("{name}=")));
            found.unwrap_or_else(|| panic!("{name}: {text}")).parse::<i32>().unwrap()
        };
        (ended, names.iter().map(errno).collect::<Vec<_>>())
    };
    let (process, errors) = connect(&[]);
    if skip_unless(process["sandbox"]["enforced"].to_string().contains("unix_sockets"), "no mounts here") {
        return;
    }
    assert!(errors.iter().all(|errno| *errno != 0), "{errors:?}");
    // The refusals are facts: the address, and the error that the program saw.
    let list = process["sandbox"]["denials"]["list"].as_array().unwrap();
    for (name, errno) in names.iter().zip(&errors) {
        let listed =
            list.iter().find(|call| call["address"] == json!(name)).unwrap_or_else(|| panic!("{name}: {process}"));
        assert_eq!((&listed["op"], &listed["errno"]), (&json!("connect"), &json!(errno)), "{name}");
    }
    let (process, errors) = connect(&[&names[0], &names[2]]);
    assert_eq!((errors[0], errors[2]), (0, 0), "{process}");
    assert!(errors[1] != 0 && errors[3] != 0, "{errors:?}");
    drop(listeners);
}

/// A connection that worked was listed as refused, because of the directory around the socket; and no job started if that was below `/tmp`.
#[test]
fn a_listed_socket_in_a_hidden_directory_is_reached_and_nothing_is_reported_as_refused() {
    let mut machine = Machine::prepare("");
    let dirs = [machine.at("hidden"), machine.daemon.root().join("hidden")];
    let config = format!("[sandbox]\nhide = {:?}\n", dirs);
    fs::write(machine.daemon.root().join("config/toold/config.toml"), config).unwrap();
    machine.daemon.spawn();
    copy_program(&std::env::current_exe().unwrap(), &machine.at("act"));
    let argv = json!([machine.at("act"), "--exact", "sandbox::sys::connects_inside_a_job", "--ignored", "--nocapture"]);
    for dir in dirs {
        fs::create_dir(&dir).unwrap();
        let names = ["listed", "other"].map(|name| dir.join(name).display().to_string());
        let _listeners = names.each_ref().map(|name| UnixListener::bind(name).unwrap());
        let sandbox = json!({ "profile": "workspace-write", "unix_sockets": [names[0]] });
        let call = json!({ "argv": argv, "cwd": machine.at("work"), "sandbox": sandbox, "env": { "SOCKETS": names.join(":") } });
        let process = id(&machine.daemon.ok("exec", call));
        let (ended, text) = (machine.daemon.closed(&process), machine.daemon.text(&process));
        if skip_unless(ended["sandbox"]["enforced"].to_string().contains("unix_sockets"), "no mounts here") {
            return;
        }
        assert!(text.contains(&format!("CONNECT {}=0\n", names[0])), "{text}");
        let refused = ended["sandbox"]["denials"]["list"].as_array().unwrap().iter().map(|call| &call["address"]);
        assert_eq!(refused.collect::<Vec<_>>(), [&json!(names[1])], "{ended}");
    }
}

/// A kernel that only pretends to restrict: the check finds it, by what a process could do.
#[test]
fn a_wall_that_does_not_hold_is_a_gap_an_event_and_a_line_of_the_doctor() {
    let mut d = Daemon::prepare("", &[]);
    let mut command = d.command();
    refuse_call(&mut command, libc::SYS_landlock_restrict_self, 0);
    d.spawn_as(command);
    let probe = d.ok("sandbox.probe", json!({}));
    let gaps = probe["gaps"].as_array().unwrap();
    let is_gap = |act: &str| gaps.iter().any(|gap| gap["act"] == act && gap["mechanism"] == "landlock");
    assert!(is_gap("write") && is_gap("kill"), "{probe}");
    let listed = events(&d, "sandbox_gap");
    assert!(listed.len() >= gaps.len(), "{listed:?}");
    let write = listed.iter().find(|event| event["act"] == "write").unwrap();
    assert_eq!((&write["mechanism"], &write["measure"]), (&json!("landlock"), &json!("fs_write")), "{write}");
    let doctor = d.ctl(&["doctor"]);
    assert!(doctor.stdout.contains("sandbox") && doctor.stdout.contains("write (landlock)"), "{doctor:?}");
}

#[test]
fn the_doctor_reports_that_every_forbidden_act_was_refused() {
    let d = Daemon::start();
    let probe = d.ok("sandbox.probe", json!({}));
    let doctor = d.ctl(&["doctor"]);
    let line = doctor.stdout.lines().find(|line| line.contains("sandbox")).unwrap_or_default();
    let is_whole =
        probe["acts"].as_array().unwrap().iter().all(|act| act["mechanism"] != "auto" || act["expected"] == "refused");
    let expected = if is_whole { "all forbidden acts were refused" } else { "not enforced here" };
    assert!(line.contains(expected), "{doctor:?}");
}

/// Mounts of the host that come later are seen by later jobs, read-only.
#[test]
fn later_jobs_see_what_the_host_mounted_meanwhile() {
    if skip_unless(is_root(), "mounts need root") {
        return;
    }
    let mut machine = Machine::prepare("");
    machine.daemon.before = Some("exec unshare --mount --propagation private \"$0\" \"$@\"".into());
    machine.daemon.spawn();
    let place = machine.at("work/mounted");
    let outside = tempfile::Builder::new().prefix("toold-mount-").tempdir_in("/var/tmp").unwrap();
    fs::create_dir(&place).unwrap();
    let script = format!("ls {0} {1} | grep -c fresh; echo x > {1}/new", place.display(), outside.path().display());
    assert_eq!(machine.run(&script, &json!("workspace-write")).1.lines().next(), Some("0"));
    let pid = machine.daemon.pid().to_string();
    for at in [place.as_path(), outside.path()] {
        let mount = format!("mount -t tmpfs none {0} && touch {0}/fresh", at.display());
        let done = Command::new("nsenter").args(["-t", &pid, "-m", "sh", "-c", &mount]).status().unwrap();
        assert!(done.success());
    }
    let (process, output) = machine.run(&script, &json!("workspace-write"));
    assert_eq!(output.lines().next(), Some("2"), "{process} {output}");
    assert_ne!(process["exit_code"], 0, "what was mounted outside is read-only");
}

/// A program that wants a listener of its own gets the kernel's answer; filters without one work.
#[test]
fn a_second_listener_inside_is_busy_and_other_filters_work() {
    let world = World::new(User::Own, "auto");
    let argv =
        json!([world.at("bin/act"), "--exact", "sandbox::sys::listens_inside_a_job", "--ignored", "--nocapture"]);
    let (process, output) = world.run(&argv, &json!("workspace-write"));
    assert!(output.contains(&format!("LISTENER Some(Some({})) FILTER true", libc::EBUSY)), "{process} {output}");
    if Command::new("bwrap").arg("--version").output().is_ok() {
        let (process, output) = world.sh("bwrap --ro-bind / / true 2>&1", &json!("workspace-write"));
        assert_ne!(process["exit_code"], 0, "{output}");
        assert!(output.contains("bwrap: "), "it gives the reason: {output}");
    }
}

/// A daemon below a listener of another sandbox confines its jobs as ever, and reports that it sees no refusals.
#[test]
fn below_another_listener_nothing_is_seen_and_the_walls_hold() {
    let mut machine = Machine::prepare("");
    let mut command = machine.daemon.command();
    listen_above(&mut command);
    machine.daemon.spawn_as(command);
    let script = "echo x > ../out || echo refused; echo x > in && echo inside";
    let (process, output) = machine.run(script, &json!("workspace-write"));
    assert!(output.contains("refused") && output.contains("inside"), "{process} {output}");
    let denials = &process["sandbox"]["denials"];
    assert_eq!((&denials["observed"], &denials["count"]), (&json!([]), &json!(0)), "{denials}");
    assert!(denials["unknown"].to_string().contains("fs_write"), "{denials}");
}

/// Shared memory of the host is out of reach, and that of a session is shared by its jobs.
#[test]
fn shared_memory_of_the_host_is_out_of_reach_and_a_session_shares_its_own() {
    let users = if is_root() { vec![User::Own, User::Other] } else { vec![User::Own] };
    for user in users {
        let world = World::new(user, "auto");
        let (made, output) = world.sh("ipcmk -M 4096", &json!(null));
        let segment = output.trim().rsplit(' ').next().unwrap().to_owned();
        assert_eq!(made["exit_code"], 0, "{output}");
        let (process, inside) =
            world.sh(&format!("ipcs -m | grep -c ' {segment} '; ipcrm -m {segment}"), &json!("workspace-write"));
        let (removed, output) = world.sh(&format!("ipcrm -m {segment}"), &json!(null));
        assert_eq!(removed["exit_code"], 0, "{user:?}: it was there until now: {output}");
        assert!(process["exit_code"] != 0 && inside.starts_with('0'), "{user:?}: {inside} {process}");
        let start = |session: &str, script: &str| {
            let mut call = world.job(&json!(["/bin/sh", "-c", script]), &json!("workspace-write"));
            call["session_key"] = json!(session);
            id(&world.daemon.ok("exec", call))
        };
        let holds = start("one", "ipcmk -M 4096; echo made; exec sleep 1000");
        world.daemon.printed(&holds, "made");
        for (session, seen) in [("one", "1"), ("two", "0")] {
            let looks = start(session, "ipcs -m | grep -c ' 4096 '");
            world.daemon.closed(&looks);
            assert_eq!(world.daemon.text(&looks).trim(), seen, "{user:?}, {session}");
        }
    }
}

/// The kernel sends signals for a program too: when a descriptor is ready, to the owner that the program named.
#[test]
fn a_signal_by_a_descriptor_does_not_leave_the_job() {
    let python = "/usr/bin/python3";
    if skip_unless(std::path::Path::new(python).exists(), "no python3") {
        return;
    }
    let machine = Machine::start("");
    let catches = machine.at("work/catches.py");
    fs::write(
        &catches,
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2])\nprint('ready', flush=True)\n\
         print('got', signal.sigwait([signal.SIGUSR1, signal.SIGUSR2]), flush=True)\n",
    )
    .unwrap();
    let sends = "import fcntl, os, sys\nr, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETOWN, int(sys.argv[1]))\n\
         fcntl.fcntl(r, 10, int(sys.argv[2]))\nfcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)\nos.write(w, b'x')\n";
    fs::write(machine.at("work/sends.py"), sends).unwrap();
    let d = &machine.daemon;
    let victim = d.ok("exec", json!({ "argv": [python, catches], "cwd": machine.at("work") }));
    d.printed(&id(&victim), "ready");
    let send = |signal: i32| format!("{python} sends.py {} {signal}", victim["pid"]);
    let (process, output) = machine.run(&send(libc::SIGUSR1), &json!("workspace-write"));
    assert!(process["sandbox"]["enforced"].to_string().contains("signals"), "{process} {output}");
    // The same without a sandbox: this one is the first that arrives.
    machine.run(&send(libc::SIGUSR2), &json!("full"));
    d.closed(&id(&victim));
    assert!(
        d.text(&id(&victim)).contains("SIGUSR2") || d.text(&id(&victim)).contains("got 12"),
        "{}",
        d.text(&id(&victim))
    );
}

/// A call that could put a child into another control group is not there, and programs start others without it.
#[test]
fn a_job_cannot_start_a_process_in_another_control_group() {
    let python = "/usr/bin/python3";
    if skip_unless(std::path::Path::new(python).exists(), "no python3") {
        return;
    }
    let machine = Machine::start("");
    let call = format!("ctypes.CDLL(None, use_errno=True).syscall({}, None, 0)", libc::SYS_clone3);
    let script = format!(
        "{python} -c 'import ctypes, subprocess, threading; {call}; print(\"errno\", ctypes.get_errno()); \
         t = threading.Thread(target=print, args=(\"thread\",)); t.start(); t.join(); subprocess.run([\"echo\", \"child\"])'"
    );
    for (sandbox, errno) in [("full", libc::EINVAL), ("workspace-write", libc::ENOSYS)] {
        let (process, output) = machine.run(&script, &json!(sandbox));
        assert!(output.contains(&format!("errno {errno}\n")), "{sandbox}: {process} {output}");
        assert!(output.contains("thread") && output.contains("child"), "{sandbox}: {output}");
    }
}
