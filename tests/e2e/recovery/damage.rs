//! Damage to the files of one process: it is noticed, reported in `daemon.info` and in every answer about the process, and
//! nothing else is affected. A shortage of resources is not damage.

use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use toold_test_support::rig::{Daemon, id, skip_unless};
use toold_test_support::sys::{Gate, Pidfd};

/// Offsets of slots in a record, and their lengths: frozen.
const HEAD: (u64, usize) = (0, 96);
const CHECKPOINT: (u64, usize) = (256, 192);
const LAUNCH: (u64, usize) = (512, 96);
const EXIT: (u64, usize) = (1024, 96);
const COUNTS: (u64, usize) = (2048, 96);

fn dir(d: &Daemon, proc: &str) -> PathBuf {
    d.state().join("procs").join(proc)
}

fn flip(file: &Path, at: u64) {
    let file = File::options().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
}

fn zero(file: &Path, (at, len): (u64, usize)) {
    File::options().write(true).open(file).unwrap().write_all_at(&vec![0; len], at).unwrap();
}

/// The damage in `daemon.info`, as text.
fn damage_of(d: &Daemon) -> String {
    d.ok("daemon.info", json!({}))["damaged"].to_string()
}

fn last_event(d: &Daemon) -> u64 {
    d.ok("daemon.info", json!({}))["events"]["last"].as_u64().unwrap()
}

/// A process that printed and whose shim was killed: its record has a launch and no exit.
fn lost(d: &Daemon) -> String {
    let proc = d.sh("echo kept; exec sleep 1000");
    d.printed(&proc, "kept");
    let shim = d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32;
    Pidfd::open(shim).unwrap().signal(libc::SIGKILL);
    assert_eq!(d.exited(&proc)["status"], "lost");
    proc
}

#[test]
fn a_process_with_a_damaged_launch_slot_stays_with_its_output() {
    let mut d = Daemon::start();
    let (flipped, zeroed, running) = (lost(&d), lost(&d), d.sh("echo on; exec sleep 1000"));
    let ended = id(&d.run("echo seven; exit 7"));
    d.printed(&running, "on");
    d.kill9();
    flip(&dir(&d, &flipped).join("record"), LAUNCH.0 + 4);
    zero(&dir(&d, &zeroed).join("record"), LAUNCH);
    flip(&dir(&d, &running).join("record"), LAUNCH.0 + 4);
    flip(&dir(&d, &ended).join("record"), LAUNCH.0 + 4);
    d.spawn();
    for proc in [&flipped, &zeroed] {
        // The record counted as one that never started, and was removed with its output in silence.
        let p = d.process(proc);
        assert_eq!((&p["status"], &p["output"], &p["exit_code"]), (&json!("lost"), &json!("kept\n"), &Value::Null));
        assert!(p["damaged"].to_string().contains("launch slot"), "{p}");
        assert!(damage_of(&d).contains(proc.as_str()));
    }
    let p = d.process(&ended);
    assert_eq!((&p["status"], &p["exit_code"], &p["output"]), (&json!("exited"), &json!(7), &json!("seven\n")));
    assert!(p["damaged"].to_string().contains("launch slot"), "{p}");
    // Its shim reports that it runs, and may do so a moment after the start of the daemon.
    d.eventually("it is known to run", || d.process(&running)["status"] == "running");
    let p = d.process(&running);
    assert_eq!((&p["status"], &p["output"]), (&json!("running"), &json!("on\n")));
    assert!(p["damaged"].to_string().contains("launch slot"), "{p}");
    assert_eq!(d.ok("kill", json!({ "id": running }))["status"], "killed");
}

#[test]
fn a_process_with_a_damaged_head_is_quarantined_and_named_by_every_call() {
    let mut d = Daemon::start();
    let (zeroed, flipped, blank) = (id(&d.run("echo a; exit 7")), id(&d.run("echo b")), id(&d.run("true")));
    d.kill9();
    zero(&dir(&d, &zeroed).join("record"), HEAD);
    flip(&dir(&d, &flipped).join("record"), HEAD.0 + 20);
    File::options().write(true).open(dir(&d, &blank).join("record")).unwrap().set_len(0).unwrap();
    d.spawn();
    for _ in 0..2 {
        for proc in [&zeroed, &flipped, &blank] {
            // 96 zeros at the head counted as a record that was never written, and it was removed.
            let data = d.refused(-32001, "not_found", "poll", json!({ "id": proc }));
            assert!(data.to_string().contains("damaged-"), "{data}");
            assert!(damage_of(&d).contains(proc.as_str()), "{}", damage_of(&d));
        }
        let kept = fs::read_dir(d.state().join("procs")).unwrap();
        let kept: Vec<_> = kept.map(|e| e.unwrap().path()).filter(|p| p.join("log").exists()).collect();
        assert_eq!(kept.len(), 2, "the output is kept");
        // The next daemon reports it too.
        d.restart();
    }
}

#[test]
fn a_damaged_exit_is_not_made_up_and_not_published_again() {
    let mut d = Daemon::start();
    let (flipped, zeroed) = (id(&d.run("echo a; exit 7")), id(&d.run("echo b; exit 7")));
    let last = last_event(&d);
    d.kill9();
    flip(&dir(&d, &flipped).join("record"), EXIT.0 + 4);
    zero(&dir(&d, &zeroed).join("record"), EXIT);
    d.spawn();
    for (proc, text) in [(&flipped, "a\n"), (&zeroed, "b\n")] {
        let p = d.process(proc);
        assert_eq!((&p["exit_code"], &p["reason"], &p["output"]), (&Value::Null, &json!("lost"), &json!(text)));
        // It became a lost process like any other, and no answer showed that the exit was known once.
        assert!(p["damaged"].to_string().contains("exit slot"), "{p}");
        assert_eq!((&p["failure"]["step"], &p["failure"]["error"]), (&json!("record"), &json!("EUCLEAN")), "{p}");
        assert!(damage_of(&d).contains(proc.as_str()));
    }
    assert_eq!(last_event(&d), last, "an event was published again");
}

#[test]
fn damaged_counts_are_counted_again_from_the_log() {
    let mut d = Daemon::start();
    let procs = [id(&d.run("printf 'one\\ntwo'; exit 7")), id(&d.run("printf 'one\\ntwo'; exit 7"))];
    d.kill9();
    flip(&dir(&d, &procs[0]).join("record"), COUNTS.0 + 9);
    zero(&dir(&d, &procs[1]).join("record"), COUNTS);
    d.spawn();
    for proc in &procs {
        // The process had no output any more, and no answer showed it.
        let p = d.process(proc);
        assert_eq!((&p["output"], &p["lines"], &p["exit_code"]), (&json!("one\ntwo"), &json!(2), &json!(7)));
        assert!(p["damaged"].to_string().contains("counts"), "{p}");
        assert!(damage_of(&d).contains(proc.as_str()));
    }
}

/// The output of a running process was empty until its shim had answered.
#[test]
fn damaged_counts_of_a_running_process_are_counted_from_the_log_while_its_shim_does_not_answer() {
    let mut d = Daemon::start();
    let gate = d.gate("end");
    let proc = d.sh(&format!("echo up; {}; echo late; exit 7", gate.wait()));
    d.printed(&proc, "up");
    let shim = Pidfd::open(d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32).unwrap();
    shim.signal(libc::SIGSTOP);
    d.kill9();
    zero(&dir(&d, &proc).join("record"), COUNTS);
    d.spawn();
    let p = d.process(&proc);
    assert_eq!((&p["bytes"], &p["output"]), (&json!(3), &json!("up\n")), "{p}");
    shim.signal(libc::SIGCONT);
    gate.open();
    assert_eq!(d.closed(&proc)["exit_code"], 7);
    assert_eq!(d.text(&proc), "up\nlate\n");
}

#[test]
fn a_damaged_checkpoint_repeats_no_event() {
    let mut d = Daemon::start();
    let watched = json!({ "watch": ["hit"], "notify": true });
    let ended = [(); 2].map(|()| id(&d.sh_with("echo hit; exit 3", watched.clone())));
    ended.iter().for_each(|proc| drop(d.closed(proc)));
    let runs = [(); 2].map(|()| id(&d.sh_with("echo hit; exec sleep 1000", watched.clone())));
    runs.iter().for_each(|proc| drop(d.printed(proc, "hit")));
    d.eventually("all matches are published", || {
        runs.iter().all(|proc| d.process(proc)["watch"]["hits"].as_u64() == Some(1))
    });
    d.eventually("all completions are published", || last_event(&d) >= 2 * 5 + 2 * 2);
    let last = last_event(&d);
    d.kill9();
    for procs in [&ended, &runs] {
        flip(&dir(&d, &procs[0]).join("record"), CHECKPOINT.0 + 8);
        zero(&dir(&d, &procs[1]).join("record"), CHECKPOINT);
    }
    d.spawn();
    let hits = |proc: &String| d.process(proc)["watch"]["hits"].clone();
    for proc in ended.iter().chain(&runs) {
        assert!(d.process(proc)["damaged"].to_string().contains("checkpoint"), "{proc}");
        assert!(damage_of(&d).contains(proc.as_str()));
        assert_eq!(hits(proc), 1, "restored from the journal");
    }
    // Every event was published a second time, under a new number.
    assert_eq!(last_event(&d), last);
    d.restart();
    assert_eq!(last_event(&d), last, "the checkpoint was restored on disk");
}

#[test]
fn changed_output_and_a_changed_index_are_reported_and_no_output_moves_between_streams() {
    let mut d = Daemon::start();
    let script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done; exit 7";
    let [log, idx, large] =
        [script, script, "head -c 600000 /dev/zero | tr '\\0' x; exit 7"].map(|text| id(&d.run(text)));
    let only = id(&d.run("echo just one stream"));
    let stream = |d: &Daemon, proc: &str, stream: &str| {
        d.ok("poll", json!({ "id": proc, "cursor": 0, "stream": stream }))["output"].as_str().unwrap().to_owned()
    };
    let (out, err) = (stream(&d, &idx, "stdout"), stream(&d, &idx, "stderr"));
    assert!(out.contains("out 1") && err.contains("err 1"));
    d.kill9();
    flip(&dir(&d, &log).join("log"), 3);
    flip(&dir(&d, &large).join("log"), 300_000);
    // The stream of the first record: 1 became 5, and all output was read as stdout.
    flip(&dir(&d, &idx).join("idx"), 32 + 30);
    flip(&dir(&d, &only).join("idx"), 32 + 24);
    d.spawn();
    for _ in 0..2 {
        // Nothing noticed the changes.
        for (proc, what) in [(&log, "log is damaged"), (&idx, "idx was damaged"), (&only, "idx was damaged")] {
            let p = d.process(proc);
            assert!(p["damaged"].to_string().contains(what), "{p}");
            assert!(damage_of(&d).contains(proc.as_str()));
        }
        assert!(!stream(&d, &idx, "stdout").contains("err") && !stream(&d, &idx, "stderr").contains("out"));
        assert_eq!(d.text(&idx).len(), out.len() + err.len(), "the merged output needs no index");
        assert_eq!(stream(&d, &only, "stdout"), "just one stream\n", "there is only one stream");
        d.eventually("a large log is compared in the background", || !d.process(&large)["damaged"].is_null());
        d.restart();
    }
}

/// Checksums were compared only for processes that had ended: the change of a running one was noticed after its end.
#[test]
fn changed_output_of_a_running_process_is_reported_at_once_and_it_runs_on() {
    let mut d = Daemon::start();
    let gates: Vec<Gate> = (0..6).map(|n| d.gate(&format!("end-{n}"))).collect();
    let start = |gate: &Gate, first: &str| {
        d.sh(&format!("{first}; echo up; {}; echo late; echo late >&2; exit 7", gate.wait()))
    };
    let both = "echo out; echo err >&2";
    let large = "head -c 600000 /dev/zero | tr '\\0' x";
    let all = [both, both, both, both, large, both];
    let all: Vec<String> = gates.iter().zip(all).map(|(gate, first)| start(gate, first)).collect();
    all.iter().for_each(|proc| drop(d.printed(proc, "up")));
    let [flipped, removed, pipe, idx, big, whole] = &all[..] else { unreachable!("six") };
    d.kill9();
    let file = |proc: &str, name: &str| dir(&d, proc).join(name);
    flip(&file(flipped, "log"), 3);
    fs::remove_file(file(removed, "log")).unwrap();
    fs::remove_file(file(pipe, "log")).unwrap();
    assert!(Command::new("mkfifo").arg(file(pipe, "log")).status().unwrap().success());
    flip(&file(idx, "idx"), 32 + 30);
    flip(&file(big, "log"), 300_000);
    d.spawn();
    let expected = [
        (flipped, "log is damaged"),
        (removed, "log is missing"),
        (pipe, "log is not a regular file"),
        (idx, "idx was damaged"),
    ];
    for _ in 0..2 {
        for (proc, what) in expected {
            let p = d.process(proc);
            assert!(p["damaged"].to_string().contains(what), "{what}: {p}");
            assert!(damage_of(&d).contains(proc.as_str()));
        }
        d.eventually("a large log is compared in the background", || !d.process(big)["damaged"].is_null());
        assert!(d.process(whole)["damaged"].is_null());
        d.restart();
    }
    gates.iter().for_each(Gate::open);
    for proc in &all {
        assert_eq!(d.closed(proc)["exit_code"], 7);
    }
    assert!(d.text(whole).ends_with("late\nlate\n") && d.text(idx).contains("late"));
    d.restart();
    assert!(d.process(whole)["damaged"].is_null(), "what was written after the checks has its checksums too");
}

#[test]
fn a_pipe_a_link_or_a_directory_in_the_place_of_a_file_blocks_nothing_and_is_not_followed() {
    let mut d = Daemon::start();
    let elsewhere = d.root().join("elsewhere");
    fs::write(&elsewhere, "not the program's").unwrap();
    let other = id(&d.run("echo other; exit 8"));
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let replace: [&dyn Fn(&Path); 3] =
        [&pipe, &|path| symlink(&elsewhere, path).unwrap(), &|path| fs::create_dir(path).unwrap()];
    let mut procs = Vec::new();
    for replacement in replace {
        for file in ["record", "log", "idx"] {
            let proc = id(&d.run("echo out; echo err >&2; exit 7"));
            procs.push((proc, file, replacement));
        }
    }
    d.kill9();
    for (proc, file, replacement) in &procs {
        let path = dir(&d, proc).join(file);
        fs::remove_file(&path).unwrap();
        replacement(&path);
    }
    d.spawn();
    for (proc, file, _) in &procs {
        assert!(damage_of(&d).contains(proc.as_str()), "{file}");
        match d.call("poll", json!({ "id": proc })) {
            Ok(p) => {
                assert_eq!((p["exit_code"].as_i64(), *file == "record"), (Some(7), false), "{p}");
                assert!(!p["damaged"].is_null() && !p["output"].to_string().contains("not the"), "{p}");
            }
            Err(e) => assert!(*file == "record" && format!("{e:?}").contains("damaged-"), "{file}: {e:?}"),
        }
    }
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "not the program's");
    assert_eq!((d.process(&other)["exit_code"].as_i64(), d.text(&other).as_str()), (Some(8), "other\n"));
}

#[test]
fn a_shortage_of_descriptors_at_the_start_is_not_damage() {
    let mut d = Daemon::start();
    let ended: Vec<String> = (0..29).map(|n| id(&d.run(&format!("echo {n}; exit 7")))).collect();
    let runs = [(); 3].map(|()| id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" }))));
    d.kill9();
    // Records were quarantined because no descriptor was free to open them.
    for limit in [14, 16, 18, 20, 24, 28] {
        d.before = Some(format!("ulimit -n {limit}"));
        let mut command = d.command();
        let mut child = command.spawn().unwrap();
        // It may end with an error or never accept a connection: it only must not touch anything.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(3);
        while std::time::Instant::now() < until && child.try_wait().unwrap().is_none() && !d.log().contains("ready") {
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
        let _ = child.kill();
        child.wait().unwrap();
        fs::write(d.root().join("toold.log"), "").unwrap();
        let names = fs::read_dir(d.state().join("procs")).unwrap().map(|e| e.unwrap().file_name());
        let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        assert_eq!(names.len(), 32, "limit {limit}: {names:?}");
        assert!(names.iter().all(|name| !name.contains("damaged")), "limit {limit}: {names:?}");
    }
    d.before = None;
    d.spawn();
    assert_eq!((d.ok("list", json!({}))["total"].as_u64(), damage_of(&d).as_str()), (Some(32), "[]"));
    for (n, proc) in ended.iter().enumerate() {
        assert_eq!((d.process(proc)["exit_code"].as_i64(), d.text(proc)), (Some(7), format!("{n}\n")));
    }
    for proc in &runs {
        d.ok("submit", json!({ "id": proc, "data": "still" }));
        d.printed(proc, "still");
    }
}

#[test]
fn a_record_that_cannot_be_read_stays_in_place_is_named_and_is_loaded_later() {
    let mut d = Daemon::prepare("", &[]);
    let ours = nix_uid() == 0;
    if skip_unless(ours, "only root can start a daemon as another user") {
        return;
    }
    as_user(&mut d);
    let (proc, other) = (id(&d.run("echo mine; exit 7")), id(&d.run("echo other; exit 8")));
    d.stop(libc::SIGTERM);
    let record = dir(&d, &proc).join("record");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o000)).unwrap();
    respawn_as_user(&mut d);
    assert!(damage_of(&d).contains("Permission denied"), "{}", damage_of(&d));
    let data = d.refused(-32008, "unavailable", "poll", json!({ "id": proc }));
    assert!(data.to_string().contains("Permission denied"), "{data}");
    assert!(record.exists(), "it is not quarantined");
    assert_eq!(d.process(&other)["exit_code"], 8);
    fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
    d.eventually("it is loaded", || d.call("poll", json!({ "id": proc })).is_ok());
    assert_eq!((d.process(&proc)["exit_code"].as_i64(), damage_of(&d).as_str()), (Some(7), "[]"));
}

#[test]
fn a_log_without_read_permission_costs_only_the_output_of_its_process() {
    let mut d = Daemon::prepare("", &[]);
    if skip_unless(nix_uid() == 0, "only root can start a daemon as another user") {
        return;
    }
    as_user(&mut d);
    let (proc, other) = (id(&d.run("echo mine; exit 7")), id(&d.run("echo other; exit 8")));
    for _ in 0..2 {
        for file in ["log", "idx"] {
            fs::set_permissions(dir(&d, &proc).join(file), fs::Permissions::from_mode(0o000)).unwrap();
        }
        // `list` failed as a whole, `poll` and `wait` did not return the exit.
        let list = d.ok("list", json!({}));
        let of = |id: &str| list["processes"].as_array().unwrap().iter().find(|p| p["id"] == id).unwrap().clone();
        assert_eq!((&of(&other)["preview"], &of(&other)["damaged"]), (&json!("other\n"), &Value::Null));
        assert!(of(&proc)["damaged"].to_string().contains("cannot be read"), "{list}");
        let p = d.ok("poll", json!({ "id": proc, "cursor": 0 }));
        assert_eq!((&p["exit_code"], &p["output"], &p["gap"]), (&json!(7), &json!(""), &json!({ "from": 0, "to": 5 })));
        assert!(p["damaged"].to_string().contains("Permission denied"), "{p}");
        let waited = d.ok("wait", json!({ "ids": [proc, other], "mode": "all" }));
        let codes: Vec<_> = waited["processes"].as_array().unwrap().iter().map(|p| p["exit_code"].clone()).collect();
        assert_eq!(codes, [7, 8]);
        let until = json!({ "match": "mine" });
        assert_eq!(d.ok("wait", json!({ "id": proc, "until": until }))["processes"][0]["exit_code"], 7);
        assert!(damage_of(&d).contains(&proc) && !damage_of(&d).contains(&other), "{}", damage_of(&d));
        for file in ["log", "idx"] {
            fs::set_permissions(dir(&d, &proc).join(file), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let p = d.process(&proc);
        assert_eq!((&p["output"], &p["damaged"]), (&json!("mine\n"), &Value::Null), "it can be read again");
        for file in ["log", "idx"] {
            fs::set_permissions(dir(&d, &proc).join(file), fs::Permissions::from_mode(0o000)).unwrap();
        }
        d.stop(libc::SIGTERM);
        respawn_as_user(&mut d);
    }
}

fn nix_uid() -> u32 {
    fs::metadata("/proc/self").map(|m| std::os::unix::fs::MetadataExt::uid(&m)).unwrap()
}

/// Gives the rig's files to an ordinary user and starts the daemon as that user.
fn as_user(d: &mut Daemon) {
    let chown = Command::new("chown").args(["-R", "65534:65534"]).arg(d.root()).status().unwrap();
    assert!(chown.success());
    fs::set_permissions(d.root(), fs::Permissions::from_mode(0o755)).unwrap();
    respawn_as_user(d);
}

fn respawn_as_user(d: &mut Daemon) {
    let plain = d.command();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(plain.get_program());
    command.args(plain.get_args()).env_clear().current_dir(d.root());
    command.envs(plain.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))));
    let log = File::options().create(true).append(true).open(d.root().join("toold.log")).unwrap();
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(log);
    d.spawn_as(command);
}
