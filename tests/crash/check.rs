//! What must be true after a crash: of the process, of its output, of the state directory, of /proc.

use crate::case_run::{Scene, all_output, first_output};
use crate::matrix::{Case, Drive, End, Victim};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use toold_test_support::procfs;
use toold_test_support::rig::id;

/// One case from beginning to end. Panics where a promise is broken.
pub fn run(case: &Case) {
    let mut scene = Scene::new(case);
    let paused = scene.drive();
    scene.strike(paused);
    let again = scene.go_on();
    let process = id(&again);
    if let Some(first) = &scene.first_id {
        assert_eq!(&process, first, "the same request_id gave another process");
    }
    finish(&scene, &process);
    let before = settled(&scene, &process);
    told_once(&scene, &process);
    nothing_is_left(&scene);
    if case.victim == Victim::Zygote {
        starts_without_zygote(&scene);
    }
    scene.next_daemon();
    assert_eq!(settled(&scene, &process), before, "another daemon tells another story");
    let later = scene.daemon.ok("exec", scene.exec_params());
    assert_eq!(id(&later), process, "the same request_id gave another process after a restart");
    let runs = scene.runs();
    assert!(case.runs().contains(&runs), "the program ran {runs} times, not {:?}", case.runs());
    nothing_is_left(&scene);
}

/// Sees the process to its end, and checks how it ended.
fn finish(scene: &Scene<'_>, process: &str) {
    let case = scene.case;
    let (daemon, end) = (&scene.daemon, case.end());
    if end == End::Exited && matches!(case.point.drive, Drive::Start | Drive::Recover) {
        // It runs on, and its stdin or terminal still works.
        daemon.printed(process, "ready");
        daemon.ok("submit", json!({ "id": process, "data": "hello" }));
    }
    let ended = daemon.closed(process);
    let (status, reason) = match end {
        End::Exited => ("exited", "exited"),
        End::Killed => ("exited", "killed"),
        End::Signaled => ("exited", "signaled"),
        End::Lost => ("lost", "lost"),
    };
    assert_eq!((&ended["status"], &ended["reason"]), (&json!(status), &json!(reason)), "{ended}");
    let code = ended["exit_code"].as_i64();
    match end {
        End::Exited => assert_eq!(code, Some(7), "{ended}"),
        End::Signaled => assert_eq!((code, &ended["signal"]), (Some(137), &json!("SIGKILL")), "{ended}"),
        End::Killed => assert!(code.is_some() && ended["killed_by"].is_string(), "{ended}"),
        // The shim had reaped it, so the kernel knows at once; the daemon lived and must have asked.
        End::Lost if case.point.drive == Drive::Exit && case.victim == Victim::Shim => {
            assert_eq!(code, Some(7), "{ended}");
        }
        End::Lost => {}
    }
    true_code(scene, code, &ended);
    output(scene, process);
    if let (Drive::Kill, Some(answer)) = (case.point.drive, &scene.drive_answer) {
        let result = &answer.as_ref().unwrap()["results"][0];
        assert_eq!((&result["exit_code"], &result["reason"]), (&ended["exit_code"], &ended["reason"]), "{result}");
        assert_eq!(result["survivors"], json!([]), "{result}");
    }
}

/// A code that is told is what the kernel says. None is no lie.
fn true_code(scene: &Scene<'_>, code: Option<i64>, ended: &Value) {
    if let (Some(code), Some(program)) = (code, &scene.program) {
        scene.daemon.eventually("the program is reaped", || program.exit_code().is_some());
        assert_eq!(Some(code), program.exit_code(), "an invented exit: {ended}");
    }
}

/// Every byte that the program wrote and the shim took is there, in order, once.
fn output(scene: &Scene<'_>, process: &str) {
    let (case, got) = (scene.case, scene.daemon.text(process));
    let all = all_output();
    let counted = scene.daemon.process(process)["bytes"].as_u64();
    assert_eq!(counted, Some(got.len() as u64), "the count is not that of the bytes");
    assert!(all.starts_with(&got), "what the program never wrote, or not in this order: {got:?}");
    let least = match (case.end(), case.point.drive) {
        (End::Exited, _) => all.len(),
        // The shim was killed between reading the exit and recording it, after it had emptied the pipes.
        (_, Drive::Exit) if case.point.name == "exit.before_record" => all.len(),
        (_, Drive::Exit | Drive::Kill | Drive::Recover) => first_output().len(),
        // In the log already when the shim died.
        (_, Drive::Start) if matches!(case.point.name, "output.appended" | "output.counted") => 1,
        (_, Drive::Start) => 0,
    };
    assert!(got.len() >= least, "{} bytes are left of at least {least}", got.len());
}

/// Every event of the process's life is in the journal once, in order, without a gap.
fn told_once(scene: &Scene<'_>, process: &str) {
    let next = scene.daemon.ok("events.next", json!({ "consumer": "check" }));
    let events = next["events"].as_array().unwrap();
    let seqs: Vec<u64> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "the numbers have a gap");
    let of_this = events.iter().filter(|e| e["id"] == process).map(|e| e["type"].as_str().unwrap());
    let mut kinds: Vec<&str> = of_this.filter(|kind| *kind != "needs_input").collect();
    // A daemon may come when the record tells of the close and not yet of the exit.
    if let Some([closed, exited]) = kinds.last_chunk_mut()
        && (*closed, *exited) == ("closed", "exited")
    {
        std::mem::swap(closed, exited);
    }
    let never_ran = scene.daemon.process(process)["pid"].is_null();
    let expected: &[&str] = if never_ran { &["exited", "closed"] } else { &["started", "exited", "closed"] };
    assert_eq!(kinds, expected, "{events:#?}");
}

/// The facts that may never change again.
fn settled(scene: &Scene<'_>, process: &str) -> Value {
    let now = scene.daemon.process(process);
    let keys = ["id", "status", "closed", "exit_code", "signal", "reason", "killed_by", "exited_at", "bytes", "lines"];
    keys.iter().map(|key| (key.to_string(), now[*key].clone())).collect::<serde_json::Map<_, _>>().into()
}

/// No program, no shim of a finished process, no stray file, no socket.
fn nothing_is_left(scene: &Scene<'_>) {
    let daemon = &scene.daemon;
    let left = || {
        // The daemon, its zygote and the spares of that. An earlier zygote goes with its last shim.
        let mut ours = vec![scene.daemon_pid()];
        ours.extend(procfs::children(ours[0]));
        let spares: Vec<i32> = ours[1..].iter().flat_map(|zygote| procfs::children(*zygote)).collect();
        ours.extend(spares.into_iter().filter(|pid| procfs::name(*pid) == "toold-spare"));
        let others = daemon.marked().into_iter().filter(|p| !ours.contains(&p.pid));
        others.map(|p| format!("{} {}", p.pid, procfs::name(p.pid))).collect::<Vec<_>>()
    };
    daemon.eventually(&format!("nothing is left but zygote and spares, now {:?}", left()), || left().is_empty());
    let known: BTreeSet<String> = daemon.ids(json!({})).into_iter().collect();
    let mut found = BTreeSet::new();
    for dir in fs::read_dir(daemon.state().join("procs")).unwrap() {
        let dir = dir.unwrap().path();
        for file in fs::read_dir(&dir).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            assert!(["record", "log", "idx"].contains(&name.as_str()), "a stray {}/{name}", dir.display());
        }
        found.insert(dir.file_name().unwrap().to_str().unwrap().to_string());
    }
    assert_eq!(found, known, "left: directories; right: what is listed");
    let mut top: BTreeSet<_> = fs::read_dir(daemon.state()).unwrap().map(|e| e.unwrap().file_name()).collect();
    // Made ahead, and not used yet: or on its way to be, while the daemon makes more.
    if top.remove(std::ffi::OsStr::new("ready")) {
        let unused = |record: Vec<u8>| record.starts_with(b"tooldnew") && record[8..].iter().all(|byte| *byte == 0);
        let empty = |made: fs::DirEntry| fs::read(made.path().join("record")).is_ok_and(unused);
        let made = || fs::read_dir(daemon.state().join("ready")).unwrap();
        daemon.eventually("nothing that was made ahead is half used", || made().all(|one| empty(one.unwrap())));
    }
    assert_eq!(top, ["events", "lock", "procs"].map(Into::into).into(), "strays in the state directory");
    assert_eq!(daemon.ok("daemon.info", json!({}))["damaged"], json!([]));
}

/// The zygote is gone: that is told, and the next start works all the same.
fn starts_without_zygote(scene: &Scene<'_>) {
    let daemon = &scene.daemon;
    daemon.eventually("the missing zygote is noticed", || {
        daemon.ok("daemon.info", json!({}))["features"]["zygote"] == json!(false)
    });
    assert_eq!(daemon.run("echo $0; exit 3")["exit_code"], 3);
}
