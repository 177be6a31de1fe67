//! `restart`: the same spec again under the same name, after the old tree is gone, or nothing changed.

use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};
use toold_test_support::rig::{Daemon, id, skip_unless};
use toold_test_support::sys::{copy_program, is_root};

const SECRET: &str = "s3cret-of-this-test";

/// The environment of a process, as it printed it.
fn printed_env(d: &Daemon, proc: &str) -> Vec<String> {
    d.printed(proc, "END");
    d.text(proc).lines().take_while(|line| *line != "END").map(String::from).collect()
}

fn restart(d: &Daemon, id: &str) -> Value {
    d.ok("restart", json!({ "id": id }))
}

#[test]
fn a_restart_runs_the_same_spec_under_the_same_name_with_a_new_id() {
    let d = Daemon::start();
    let dir = d.root().join("dir");
    fs::create_dir(&dir).unwrap();
    let spec = json!({ "argv": ["/bin/sh", "-c", "pwd; echo $MARK; exec sleep 1000"], "name": "web", "cwd": dir, "env": { "MARK": "one" },
        "labels": { "team": "x" }, "session_key": "s", "task_id": "t", "notify": true, "watch": ["never"], "stdin": "pipe",
        "limits": { "output_bytes": 100_000, "idle_ms": 900_000 }, "timeout_ms": 800_000, "request_id": "first" });
    let old = d.ok("exec", spec.clone());
    let new = restart(&d, "web");
    let same = [
        "name",
        "command",
        "argv",
        "cwd",
        "labels",
        "session_key",
        "task_id",
        "notify",
        "limits",
        "stdin",
        "pty",
        "backend",
    ];
    for field in same {
        assert_eq!(new[field], old[field], "{field}");
    }
    assert_eq!(new["watch"]["patterns"], old["watch"]["patterns"]);
    assert_ne!(new["id"], old["id"]);
    assert_eq!((&new["restart_of"], &old["restart_of"]), (&old["id"], &json!(null)));
    assert_eq!((&new["status"], &new["request_id"]), (&json!("running"), &json!(null)));
    d.printed(&id(&new), "one");
    assert!(d.text(&id(&new)).starts_with(dir.to_str().unwrap()));
    let ended = d.process(&id(&old));
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("exited"), &json!("killed")));
    // The request of the first run still names the first run.
    assert_eq!(d.ok("exec", spec)["id"], old["id"]);
    // A chain: each run names the one before it.
    let third = restart(&d, "web");
    assert_eq!(third["restart_of"], new["id"]);
    assert_eq!(d.ids(json!({ "status": "running" })), [id(&third)]);
}

#[test]
fn the_old_tree_is_gone_before_the_new_program_starts() {
    let d = Daemon::start();
    let lock = d.root().join("lock");
    // The lock is held by a descendant in another session, which ignores SIGTERM.
    let script = format!(
        "exec 9> {0}; flock -n 9 || exit 9; setsid sh -c 'trap \"\" TERM; echo up; while :; do sleep 0.05; done' & wait",
        lock.display()
    );
    let old = d.sh_with(&script, json!({ "name": "locked" }));
    d.printed(&id(&old), "up");
    let new = d.ok("restart", json!({ "id": "locked", "grace_ms": 100 }));
    d.printed(&id(&new), "up");
    assert_eq!(d.process(&id(&new))["status"], "running");
}

/// A restart of something whose program or directory is gone changes nothing: the old one keeps running.
#[test]
fn a_restart_that_cannot_start_leaves_the_old_process_running() {
    let d = Daemon::start();
    let (program, dir) = (d.root().join("program"), d.root().join("dir"));
    copy_program(std::path::Path::new("/bin/sleep"), &program);
    fs::create_dir(&dir).unwrap();
    let old = d.ok("exec", json!({ "argv": [program, "1000"], "cwd": dir, "name": "web" }));
    let unchanged = || {
        let p = d.process(&id(&old));
        assert_eq!((&p["status"], &p["pid"]), (&json!("running"), &old["pid"]));
        assert_eq!(d.ids(json!({})), [id(&old)]);
    };
    fs::remove_dir(&dir).unwrap();
    let error = d.refused(-32006, "spawn_failed", "restart", json!({ "id": "web" }));
    assert_eq!((&error["data"]["step"], &error["data"]["error"]), (&json!("chdir"), &json!("ENOENT")), "{error}");
    unchanged();
    fs::create_dir(&dir).unwrap();
    fs::remove_file(&program).unwrap();
    let error = d.refused(-32006, "spawn_failed", "restart", json!({ "id": "web" }));
    assert_eq!((&error["data"]["step"], &error["data"]["error"]), (&json!("exec"), &json!("ENOENT")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("was left alone"), "{error}");
    unchanged();
    fs::write(&program, "not a program").unwrap();
    d.refused(-32006, "spawn_failed", "restart", json!({ "id": "web" }));
    unchanged();
    d.refused(-32001, "not_found", "restart", json!({ "id": "no-such" }));
    d.refused_param("env.A=B", "restart", json!({ "id": "web", "env": { "A=B": "" } }));
    d.refused_param("env_base64.A", "restart", json!({ "id": "web", "env_base64": { "A": "?" } }));
    unchanged();
}

#[test]
fn values_come_from_the_shim_while_it_lives_also_after_kill_9_of_the_daemon() {
    let mut d = Daemon::start();
    let large = "x".repeat(70_000);
    let env = json!({ "SECRET": SECRET, "LARGE": large, "EMPTY": "" });
    let script =
        "env | grep -E '^(SECRET|EMPTY|LARGE)=' | cut -c 1-40; printf %s \"$LARGE\" | wc -c; echo END; exec sleep 1000";
    let first = id(&d.sh_with(script, json!({ "name": "web", "env": env })));
    let expected = printed_env(&d, &first);
    assert!(expected.contains(&format!("SECRET={SECRET}")) && expected.contains(&"70000".to_string()), "{expected:?}");
    let second = id(&restart(&d, "web"));
    assert_eq!(printed_env(&d, &second), expected);
    d.kill9();
    d.spawn();
    let third = id(&restart(&d, "web"));
    assert_eq!(printed_env(&d, &third), expected);
    for file in toold_test_support::rig::files(&d.state()) {
        let is_log = file.file_name().unwrap().to_str().unwrap().starts_with("log");
        let bytes = fs::read(&file).unwrap_or_default();
        assert!(is_log || !bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()), "{}", file.display());
    }
    // Nothing of it is left that could know the values.
    d.ok("kill", json!({ "id": third }));
    d.eventually("its shim is gone", || d.process(&third)["closed"] == true);
    d.eventually("the values are gone", || d.call("restart", json!({ "id": third })).is_err());
    d.refused_param("env", "restart", json!({ "id": third }));
    let with = d.ok("restart", json!({ "id": third, "env": { "SECRET": "new", "PATH": "/usr/bin:/bin" } }));
    assert_eq!(printed_env(&d, &id(&with)), ["SECRET=new", "0"]);
}

#[test]
fn the_environment_of_the_call_replaces_the_old_one() {
    let d = Daemon::start();
    let script = "env | grep -vE '^(_|PWD|SHLVL|OLDPWD)=' | sort; echo END; exec sleep 1000";
    let old = id(&d.sh_with(script, json!({ "env": { "A": "1", "B": "2" } })));
    assert!(printed_env(&d, &old).contains(&"A=1".to_string()));
    let env = json!({ "B": "3", "PATH": "/usr/bin:/bin" });
    let new = d.ok("restart", json!({ "id": old, "env": env, "env_base64": { "C": "NA==" } }));
    assert_eq!(printed_env(&d, &id(&new)), ["B=3", "C=4", "PATH=/usr/bin:/bin"]);
    assert_eq!(d.ok("inspect", json!({ "id": new["id"] }))["env_names"], json!(["B", "C", "PATH"]));
}

#[test]
fn an_ended_process_without_values_of_its_own_starts_again() {
    let mut d = Daemon::start();
    let old = id(&d.run("echo ran; exit 3"));
    d.restart();
    let new = restart(&d, &old);
    assert_eq!(new["restart_of"], json!(old));
    assert_eq!(d.closed(&id(&new))["exit_code"], 3);
}

#[test]
fn another_process_of_the_same_name_is_not_ended() {
    let d = Daemon::start();
    let old = id(&d.sh_with("exit 0", json!({ "name": "web" })));
    d.exited(&old);
    let other = id(&d.sh_with("exec sleep 1000", json!({ "name": "web" })));
    let error = d.refused(-32007, "already_exists", "restart", json!({ "id": old }));
    assert_eq!(error["data"]["process"]["id"], json!(other));
    assert_eq!(d.process(&other)["status"], "running");
}

#[test]
fn a_restart_needs_no_free_place_and_two_at_once_leave_one_process() {
    let d = Daemon::start_with("max_running = 1\n", &[]);
    let old = id(&d.sh_with("exec sleep 1000", json!({ "name": "web" })));
    let mut conns: Vec<_> = (0..4).map(|_| d.conn()).collect();
    let sent: Vec<u64> = conns.iter_mut().map(|conn| conn.request("restart", json!({ "id": "web" }))).collect();
    let answers: Vec<_> = conns.iter_mut().zip(sent).map(|(conn, n)| conn.answer(n)).collect();
    assert!(answers.iter().any(Result::is_ok), "{answers:?}");
    assert_eq!(d.ids(json!({ "status": "running" })).len(), 1);
    assert_eq!(d.process(&old)["status"], "exited");
    assert_eq!(d.ok("daemon.info", json!({}))["counts"]["running"], 1);
}

#[test]
fn a_login_shell_gets_the_new_values_over_those_of_its_files() {
    let d = Daemon::start();
    fs::write(d.home().join(".profile"), "export MARK=from-file\n").unwrap();
    let exec = json!({ "command": "echo mark $MARK; exec sleep 1000", "shell": "/bin/sh", "env": { "MARK": "one" } });
    let old = id(&d.ok("exec", exec));
    d.printed(&old, "mark one");
    let env = json!({ "MARK": "two", "HOME": d.home(), "PATH": "/usr/bin:/bin" });
    let new = id(&d.ok("restart", json!({ "id": old, "env": env })));
    d.printed(&new, "mark two");
    let kept = id(&restart(&d, &new));
    d.printed(&kept, "mark two");
}

#[test]
fn the_new_run_is_not_held_for_a_reader_that_followed_the_old_one() {
    let d = Daemon::start_with("log_max_bytes = 65536\nhold_timeout_ms = 86400000\n", &[]);
    let mut conn = d.conn();
    let call = json!({ "argv": ["seq", "1", "100000"], "hold": true });
    let old = id(&conn.call("exec", call).unwrap());
    d.eventually("it is held back", || d.process(&old)["held_back"] == true);
    let new = id(&restart(&d, &old));
    let ended = d.closed(&new);
    assert_eq!((&ended["exit_code"], &ended["held_back"]), (&json!(0), &json!(null)));
    assert!(ended["dropped_bytes"].as_u64() > Some(0), "{ended}");
}

/// The broken code restarted without the limits.
#[test]
fn limits_that_are_required_are_required_of_a_restart_too() {
    let mut d = Daemon::start();
    let exec = json!({ "argv": ["sleep", "1000"], "name": "small", "limits": { "pids": 50 }, "require_limits": true });
    if skip_unless(is_root() && d.call("exec", exec).is_ok(), "control groups cannot be made here") {
        return;
    }
    d.kill9();
    // The next daemon has no control groups.
    let plain = d.command();
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", "mount -t tmpfs none /sys/fs/cgroup && exec \"$0\" \"$@\""]);
    command.arg(plain.get_program()).args(plain.get_args()).env_clear().current_dir(d.root());
    command.envs(plain.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    d.spawn_as(command);
    let refused = d.call("restart", json!({ "id": "small" })).unwrap_err();
    assert!(refused.to_string().contains("pids"), "{refused}");
    assert_eq!(d.process("small")["status"], "running", "the old one keeps running");
    assert_eq!(d.ids(json!({})).len(), 1);
}
