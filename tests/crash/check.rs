//! Invariants after a crash: of the process, its output, the state directory and /proc.

use crate::case_run::{CaseRun, all_output, first_output};
use crate::matrix::{Case, Drive, End, Victim};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use toold_test_support::procfs;
use toold_test_support::rig::id;

/// Runs one case from start to end. Panics where an invariant is broken.
pub fn run(case: &Case) {
    let mut run = CaseRun::new(case);
    let paused = run.drive();
    run.strike(paused);
    let again = run.go_on();
    let process = id(&again);
    if let Some(first) = &run.first_id {
        assert_eq!(&process, first, "the same request_id gave another process");
    }
    finish(&run, &process);
    let before = settled(&run, &process);
    each_event_once(&run, &process);
    nothing_is_left(&run);
    if case.victim == Victim::Zygote {
        starts_without_zygote(&run);
    }
    run.next_daemon();
    assert_eq!(settled(&run, &process), before, "another daemon reports something else");
    let later = run.daemon.ok("exec", run.exec_params());
    assert_eq!(id(&later), process, "the same request_id gave another process after a restart");
    let runs = run.runs();
    assert!(case.runs().contains(&runs), "the program ran {runs} times, not {:?}", case.runs());
    nothing_is_left(&run);
}

/// Waits for the end of the process and checks it.
fn finish(run: &CaseRun<'_>, process: &str) {
    let case = run.case;
    let (daemon, end) = (&run.daemon, case.end());
    if end == End::Exited && matches!(case.point.drive, Drive::Start | Drive::Recover) {
        // It keeps running, and its stdin or terminal still works.
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
        // The shim had reaped it, so the kernel knows at once; the daemon was alive and must have asked.
        End::Lost if case.point.drive == Drive::Exit && case.victim == Victim::Shim => {
            assert_eq!(code, Some(7), "{ended}");
        }
        End::Lost => {}
    }
    true_code(run, code, &ended);
    output(run, process);
    if let (Drive::Kill, Some(answer)) = (case.point.drive, &run.drive_answer) {
        let result = &answer.as_ref().unwrap()["results"][0];
        assert_eq!((&result["exit_code"], &result["reason"]), (&ended["exit_code"], &ended["reason"]), "{result}");
        assert_eq!(result["survivors"], json!([]), "{result}");
    }
}

/// Checks that a reported code is the one that the kernel reports. No code is allowed too.
fn true_code(run: &CaseRun<'_>, code: Option<i64>, ended: &Value) {
    if let (Some(code), Some(program)) = (code, &run.program) {
        run.daemon.eventually("the program is reaped", || program.exit_code().is_some());
        assert_eq!(Some(code), program.exit_code(), "an invented exit: {ended}");
    }
}

/// Checks that every byte that the program wrote and the shim read is in the log, in order, once.
fn output(run: &CaseRun<'_>, process: &str) {
    let (case, got) = (run.case, run.daemon.text(process));
    let all = all_output();
    let counted = run.daemon.process(process)["bytes"].as_u64();
    assert_eq!(counted, Some(got.len() as u64), "the count is not that of the bytes");
    assert!(all.starts_with(&got), "bytes that the program did not write, or not in this order: {got:?}");
    let least = match (case.end(), case.point.drive) {
        (End::Exited, _) => all.len(),
        // The shim was killed between reading the exit and recording it, after it had drained the pipes.
        (_, Drive::Exit) if case.point.name == "exit.before_record" => all.len(),
        (_, Drive::Exit | Drive::Kill | Drive::Recover) => first_output().len(),
        // In the log already when the shim died.
        (_, Drive::Start) if matches!(case.point.name, "output.appended" | "output.counted") => 1,
        (_, Drive::Start) => 0,
    };
    assert!(got.len() >= least, "{} bytes are left of at least {least}", got.len());
}

/// Checks that every lifecycle event is in the journal once, in order, without a gap.
fn each_event_once(run: &CaseRun<'_>, process: &str) {
    let next = run.daemon.ok("events.next", json!({ "consumer": "check" }));
    let events = next["events"].as_array().unwrap();
    let seqs: Vec<u64> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "the numbers have a gap");
    let of_this = events.iter().filter(|e| e["id"] == process).map(|e| e["type"].as_str().unwrap());
    let mut kinds: Vec<&str> = of_this.filter(|kind| *kind != "needs_input").collect();
    // A daemon may start when the record has the close and not yet the exit.
    if let Some([closed, exited]) = kinds.last_chunk_mut()
        && (*closed, *exited) == ("closed", "exited")
    {
        std::mem::swap(closed, exited);
    }
    let never_ran = run.daemon.process(process)["pid"].is_null();
    let expected: &[&str] = if never_ran { &["exited", "closed"] } else { &["started", "exited", "closed"] };
    assert_eq!(kinds, expected, "{events:#?}");
}

/// The fields that may never change again.
fn settled(run: &CaseRun<'_>, process: &str) -> Value {
    let now = run.daemon.process(process);
    let keys = ["id", "status", "closed", "exit_code", "signal", "reason", "killed_by", "exited_at", "bytes", "lines"];
    keys.iter().map(|key| (key.to_string(), now[*key].clone())).collect::<serde_json::Map<_, _>>().into()
}

/// Checks that no program, no shim of a finished process, no stray file and no socket is left.
fn nothing_is_left(run: &CaseRun<'_>) {
    let daemon = &run.daemon;
    let left = || {
        // The daemon, its zygote and its spares. An earlier zygote exits with its last shim.
        let mut ours = vec![run.daemon_pid()];
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
    // Prepared directories, used or being prepared while the daemon refills the pool.
    if top.remove(std::ffi::OsStr::new("ready")) {
        let unused = |record: Vec<u8>| record.starts_with(b"tooldnew") && record[8..].iter().all(|byte| *byte == 0);
        let empty = |made: fs::DirEntry| fs::read(made.path().join("record")).is_ok_and(unused);
        let made = || fs::read_dir(daemon.state().join("ready")).unwrap();
        daemon.eventually("nothing that was made ahead is half used", || made().all(|one| empty(one.unwrap())));
    }
    assert_eq!(
        top,
        ["events", "lock", "procs", "retention_clock", "socket"].map(Into::into).into(),
        "strays in the state directory"
    );
    assert_eq!(daemon.ok("daemon.info", json!({}))["damaged"], json!([]));
}

/// Checks that the loss of the zygote is reported and that the next start works.
fn starts_without_zygote(run: &CaseRun<'_>) {
    let daemon = &run.daemon;
    daemon.eventually("the missing zygote is noticed", || {
        daemon.ok("daemon.info", json!({}))["features"]["zygote"] == json!(false)
    });
    assert_eq!(daemon.run("echo $0; exit 3")["exit_code"], 3);
}
