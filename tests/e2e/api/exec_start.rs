//! Starts in unusual surroundings: a stopped zygote, a shell of another kind, no terminal device, no home.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::procfs;
use toold_test_support::rig::{Daemon, id, skip_unless};
use toold_test_support::sys::{self, Pidfd};

/// Opens the zygote and its spares.
fn zygote_and_spares(d: &Daemon) -> Vec<Pidfd> {
    let zygote = d.ok("daemon.info", json!({}))["features"]["zygote_pid"].as_i64().unwrap() as i32;
    d.eventually("two spares wait", || {
        procfs::children(zygote).iter().filter(|pid| procfs::name(**pid) == "toold-spare").count() >= 2
    });
    [zygote].into_iter().chain(procfs::children(zygote)).filter_map(Pidfd::open).collect()
}

fn signal_all(processes: &[Pidfd], signal: i32) {
    processes.iter().for_each(|process| process.signal(signal));
}

/// Runs a command line to its end and returns its output and exit code.
fn run_command(d: &Daemon, params: Value) -> (String, Value) {
    let process = id(&d.ok("exec", params));
    let end = d.closed(&process);
    (d.text(&process), end["exit_code"].clone())
}

#[test]
fn while_the_zygote_is_stopped_starts_go_on_by_exec_and_run_once() {
    let d = Daemon::start();
    let stopped = zygote_and_spares(&d);
    signal_all(&stopped, libc::SIGSTOP);
    let ran = d.root().join("ran");
    let script = format!("echo ran >> {}", ran.display());
    // The broken code answered `starting` after 10 s, and the program ran when the zygote did.
    for _ in 0..2 {
        let end = d.exited(&d.sh(&script));
        assert_eq!((&end["exit_code"], &end["reason"]), (&json!(0), &json!("exited")), "{end}");
    }
    signal_all(&stopped, libc::SIGCONT);
    for _ in 0..4 {
        d.run(&script);
    }
    assert_eq!(fs::read_to_string(&ran).unwrap().lines().count(), 6, "each ran once");
}

#[test]
fn a_kill_before_the_start_is_proven_and_the_program_never_runs() {
    let d = Daemon::start();
    let stopped = zygote_and_spares(&d);
    signal_all(&stopped, libc::SIGSTOP);
    let ran = d.root().join("ran");
    let mut conn = d.conn();
    let script = format!("echo ran >> {}; exec sleep 1000", ran.display());
    let exec = conn.request("exec", json!({ "argv": ["/bin/sh", "-c", script], "name": "early" }));
    d.eventually("it is listed", || !d.ids(json!({})).is_empty());
    let process = d.ids(json!({})).remove(0);
    // The broken code answered `killed` with SIGKILL: nothing was signalled, and the process was still `starting`.
    let killed = d.ok("kill", json!({ "id": process }));
    assert_eq!(killed["status"], "killed", "{killed}");
    let after = d.process(&process);
    assert_eq!(after["status"], "exited", "{after}");
    let _ = conn.answer(exec);
    signal_all(&stopped, libc::SIGCONT);
    for _ in 0..4 {
        d.run("true");
    }
    // On a machine that is slow enough an executed shim has started it, and then it was killed by a signal.
    let signals = killed["results"][0]["signals_sent"].as_array().unwrap().len();
    match after["reason"].as_str() {
        Some("failed_start") => {
            assert_eq!((signals, after["failure"]["error"].as_str()), (0, Some("ECANCELED")), "{after}");
            assert!(!ran.exists(), "it ran after its kill was answered");
        }
        reason => assert_eq!((reason, signals > 0), (Some("killed"), true), "{after}"),
    }
}

#[test]
fn a_user_of_csh_runs_commands_and_an_unknown_shell_is_not_used() {
    let tcsh = PathBuf::from("/bin/tcsh");
    if skip_unless(tcsh.exists(), "tcsh is not installed") {
        return;
    }
    for shell in ["/bin/tcsh", "/bin/csh"] {
        let d = Daemon::start_with("", &[("SHELL", shell)]);
        // The broken code passed -lc, which no csh takes: `Unknown option`.
        let command = json!({ "command": "echo login $?loginsh; exit 3" });
        assert_eq!(run_command(&d, command), ("login 1\n".into(), json!(3)), "{shell}");
        let plain = json!({ "command": "echo login $?loginsh; exit 3", "login": false });
        assert_eq!(run_command(&d, plain), ("login 0\n".into(), json!(3)), "{shell}");
    }
    let mut d = Daemon::prepare("", &[]);
    sys::copy_program(&PathBuf::from("/bin/false"), &d.home().join("odd"));
    d.env.push(("SHELL".into(), d.home().join("odd").display().to_string()));
    d.spawn();
    assert_eq!(run_command(&d, json!({ "command": "echo works" })), ("works\n".into(), json!(0)));
}

#[test]
fn without_a_terminal_device_the_error_names_it() {
    if skip_unless(sys::is_root(), "only root can hide /dev/ptmx from a process") {
        return;
    }
    let mut d = Daemon::prepare("", &[]);
    let hide = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && exec \"$0\" \"$@\"";
    d.before = Some(format!("exec unshare -m --propagation private sh -c '{hide}' \"$0\" \"$@\""));
    d.spawn();
    let error = d.call("exec", json!({ "argv": ["/bin/sh"], "pty": true })).unwrap_err();
    // The broken code named the program: `pty /bin/sh: No such file or directory`.
    assert!(error["message"].as_str().unwrap().contains("/dev/ptmx"), "{error}");
}

#[test]
fn a_daemon_without_home_gives_programs_what_a_login_sets() {
    let mut d = Daemon::prepare("", &[]);
    d.env.retain(|(name, _)| !["HOME", "USER", "LOGNAME", "SHELL"].contains(&name.as_str()));
    d.spawn();
    let script = "echo \"$HOME $USER $LOGNAME $SHELL\"; pwd; getent passwd $(id -u)";
    let (output, _) = run_command(&d, json!({ "argv": ["/bin/sh", "-c", script] }));
    let lines: Vec<&str> = output.lines().collect();
    let fields: Vec<&str> = lines[2].split(':').collect();
    // The broken code took the home for its own state only: programs had none of the four.
    assert_eq!(lines[0], format!("{} {} {} {}", fields[5], fields[0], fields[0], fields[6]));
    assert_eq!(lines[1], fields[5]);
    let kept = d.ok("exec", json!({ "argv": ["/usr/bin/env"], "env": { "HOME": "/mine" } }));
    d.closed(&id(&kept));
    assert!(d.text(&id(&kept)).contains("HOME=/mine\n"), "the call wins");
}

/// The control groups of a daemon, in every hierarchy.
fn groups(d: &Daemon) -> Vec<PathBuf> {
    let procs = d.state().join("procs");
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let owner = procs.to_str().unwrap().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
    let mut dirs = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(dir) = dirs.pop() {
        let below = fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in below.filter(|path| path.is_dir() && !path.is_symlink()) {
            if path.to_str().is_some_and(|path| path.ends_with(&format!(".{owner:016x}"))) {
                found.push(path.clone());
            }
            dirs.push(path);
        }
    }
    found
}

#[test]
fn control_groups_of_a_start_that_never_was_are_swept_at_the_next_start() {
    let mut d = Daemon::prepare("", &[]);
    let hooks = d.root().join("hooks");
    fs::create_dir(&hooks).unwrap();
    d.env.push(("TOOLD_HOOKS".into(), hooks.display().to_string()));
    d.spawn();
    let running = d.sh_with("exec sleep 1000", json!({ "limits": { "pids": 50 } }));
    if skip_unless(running["limits"]["pids"]["enforced_by"].is_string(), "control groups cannot be made here") {
        return;
    }
    let kept = groups(&d);
    assert_eq!(kept.len(), 1, "{kept:?}");
    fs::write(hooks.join("spawn.grouped"), "").unwrap();
    let mut conn = d.conn();
    conn.request("exec", json!({ "argv": ["true"], "limits": { "pids": 50, "memory_bytes": 100_000_000 } }));
    d.eventually("the groups are made", || hooks.join("spawn.grouped.hit").exists());
    assert!(groups(&d).len() > 1);
    d.kill9();
    fs::remove_file(hooks.join("spawn.grouped")).unwrap();
    d.spawn();
    // The broken code left them for good: no record names them.
    assert_eq!(groups(&d), kept);
    assert!(Pidfd::open(d.process(&id(&running))["pid"].as_i64().unwrap() as i32).is_some_and(|p| !p.is_dead()));
    d.ok("kill", json!({ "id": id(&running) }));
    d.eventually("its own group is removed with it", || groups(&d).is_empty());
}
