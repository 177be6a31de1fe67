//! `write`, `submit` and `close` on a pipe: exact bytes, once each, and no call blocks for ever.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};
use toold_test_support::rig::{Daemon, id};

fn cat(d: &Daemon) -> String {
    id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })))
}

#[test]
fn write_is_raw_submit_adds_a_newline_and_close_ends_the_input() {
    let d = Daemon::start();
    let proc = cat(&d);
    assert_eq!(d.process(&proc)["stdin"], "pipe");
    let answer = d.ok("write", json!({ "id": proc, "data": "héllo" }));
    assert_eq!(answer, json!({ "id": proc, "bytes_written": 6, "complete": true, "duplicate": false }));
    assert_eq!(d.ok("submit", json!({ "id": proc, "data": " line" }))["bytes_written"], 6);
    d.printed(&proc, "héllo line");
    assert_eq!(d.ok("close", json!({ "id": proc })), json!({ "id": proc, "stdin": "closed" }));
    let p = d.closed(&proc);
    assert_eq!((&p["exit_code"], &p["stdin"]), (&json!(0), &json!("closed")));
    assert_eq!(d.text(&proc), "héllo line\n");
}

#[test]
fn an_empty_write_reports_whether_stdin_is_open() {
    let d = Daemon::start();
    let nothing = |proc: &str| d.call("write", json!({ "id": proc, "data": "" }));
    let proc = cat(&d);
    let answer = json!({ "id": proc, "bytes_written": 0, "complete": true, "duplicate": false });
    assert_eq!(nothing(&proc).unwrap(), answer);
    let proc = id(&d.sh_with("exec < /dev/null; echo ready; exec sleep 1000", json!({ "stdin": "pipe" })));
    d.printed(&proc, "ready");
    assert_eq!(nothing(&proc).unwrap_err()["data"]["kind"], "stdin_unavailable");
    assert_eq!(d.process(&proc)["stdin"], "closed");
}

#[test]
fn all_256_byte_values_are_written_as_base64() {
    let d = Daemon::start();
    let proc = cat(&d);
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(d.ok("write", json!({ "id": proc, "data_base64": STANDARD.encode(&all) }))["bytes_written"], 256);
    d.ok("close", json!({ "id": proc }));
    d.closed(&proc);
    assert_eq!(d.bytes(&proc), all);
}

#[test]
fn four_mebibytes_are_written_whole() {
    let d = Daemon::start();
    let proc = cat(&d);
    let data: String = (0..600_000).map(|n| format!("{n:06}\n")).collect();
    let answer = d.ok("write", json!({ "id": proc, "data": data, "timeout_ms": 50000 }));
    assert_eq!((&answer["bytes_written"], &answer["complete"]), (&json!(data.len()), &json!(true)));
    d.ok("close", json!({ "id": proc }));
    d.closed(&proc);
    assert!(d.text(&proc) == data, "the output differs from the input");
}

#[test]
fn the_same_write_id_is_acknowledged_and_not_written_again() {
    let d = Daemon::start();
    let proc = cat(&d);
    let first = d.ok("submit", json!({ "id": proc, "data": "once", "write_id": "w1" }));
    let again = d.ok("submit", json!({ "id": proc, "data": "once", "write_id": "w1" }));
    assert_eq!((&first["duplicate"], &again["duplicate"]), (&json!(false), &json!(true)));
    assert_eq!(again["bytes_written"], first["bytes_written"]);
    d.ok("submit", json!({ "id": proc, "data": "twice", "write_id": "w2" }));
    d.ok("close", json!({ "id": proc }));
    d.closed(&proc);
    assert_eq!(d.text(&proc), "once\ntwice\n");
}

#[test]
fn a_write_id_sent_by_many_clients_at_once_is_written_once() {
    let d = Daemon::start();
    let proc = cat(&d);
    let mut conns: Vec<_> = (0..8).map(|_| d.conn()).collect();
    let ask = json!({ "id": proc, "data": "once", "write_id": "race" });
    let sent: Vec<u64> = conns.iter_mut().map(|c| c.request("submit", ask.clone())).collect();
    let answers = conns.iter_mut().zip(sent).map(|(c, n)| c.answer(n).unwrap());
    assert_eq!(answers.filter(|a| a["duplicate"] == false).count(), 1);
    d.ok("close", json!({ "id": proc }));
    d.closed(&proc);
    assert_eq!(d.text(&proc), "once\n");
}

#[test]
fn a_write_id_belongs_to_its_process() {
    let d = Daemon::start();
    let (one, two) = (cat(&d), cat(&d));
    for proc in [&one, &two] {
        assert_eq!(d.ok("submit", json!({ "id": proc, "data": "x", "write_id": "w" }))["duplicate"], false);
    }
}

#[test]
fn a_program_that_never_reads_bounds_the_call_and_the_count_is_exact() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = id(&d.sh_with(&format!("{}; exec cat > got", gate.wait()), json!({ "stdin": "pipe" })));
    let data: String = (0..300_000).map(|n| format!("{n:06}\n")).collect();
    let asked = Instant::now();
    let answer = d.ok("write", json!({ "id": proc, "data": data, "timeout_ms": 400 }));
    assert!((400..30_000).contains(&(asked.elapsed().as_millis() as u64)), "{:?}", asked.elapsed());
    let written = answer["bytes_written"].as_u64().unwrap() as usize;
    assert_eq!(answer["complete"], false);
    assert!(0 < written && written < data.len(), "{written}");
    assert_eq!(d.process(&proc)["status"], "running");
    gate.open();
    assert_eq!(d.ok("write", json!({ "id": proc, "data": "END" }))["complete"], true);
    d.ok("close", json!({ "id": proc }));
    d.exited(&proc);
    let got = fs::read_to_string(d.home().join("got")).unwrap();
    assert!(got == data[..written].to_string() + "END", "{} bytes arrived, {written} and 3 were reported", got.len());
}

#[test]
fn a_blocked_write_delays_no_other_call() {
    let d = Daemon::start();
    let proc = id(&d.sh_with("echo ready; exec sleep 1000", json!({ "stdin": "pipe" })));
    let mut conn = d.conn();
    let asked = Instant::now();
    let stuck = conn.request("write", json!({ "id": proc, "data": "x".repeat(4 << 20), "timeout_ms": 50000 }));
    d.printed(&proc, "ready");
    assert_eq!(conn.call("kill", json!({ "id": proc })).unwrap()["status"], "killed");
    assert!(asked.elapsed() < Duration::from_secs(30));
    // A partial count or an error: the call is answered now that its reader is dead.
    let _ = conn.answer(stuck);
    assert!(asked.elapsed() < Duration::from_secs(40), "the write waited for a dead reader");
}

#[test]
fn stdin_that_is_missing_or_closed_is_unavailable_and_after_the_exit_already_exited() {
    let d = Daemon::start();
    let without = d.sh("exec sleep 1000");
    let shut = id(&d.sh_with("exec sleep 1000", json!({ "stdin": "pipe" })));
    d.ok("close", json!({ "id": shut }));
    let ended = id(&d.sh_with("exit 8", json!({ "stdin": "pipe" })));
    d.exited(&ended);
    for verb in ["write", "submit"] {
        for (proc, reason) in [(&without, "not_piped"), (&shut, "closed")] {
            let error = d.refused(-32003, "stdin_unavailable", verb, json!({ "id": proc, "data": "x" }));
            assert_eq!((&error["data"]["reason"], &error["data"]["id"]), (&json!(reason), &json!(proc)));
        }
        let error = d.refused(-32002, "already_exited", verb, json!({ "id": ended, "data": "x" }));
        assert_eq!(error["data"]["process"]["exit_code"], 8);
    }
    d.refused(-32003, "stdin_unavailable", "close", json!({ "id": without }));
}

#[test]
fn a_program_that_closed_its_own_stdin_is_unavailable_and_affects_no_other() {
    let d = Daemon::start();
    let proc = id(&d.sh_with("exec 0<&-; echo ready; exec sleep 1000", json!({ "stdin": "pipe" })));
    d.printed(&proc, "ready");
    d.refused(-32003, "stdin_unavailable", "write", json!({ "id": proc, "data": "x" }));
    assert_eq!(d.process(&proc)["status"], "running");
}

#[test]
fn write_takes_either_data_or_data_base64() {
    let d = Daemon::start();
    let proc = cat(&d);
    d.refused_param("data", "write", json!({ "id": proc }));
    d.refused_param("data", "write", json!({ "id": proc, "data": "x", "data_base64": "eA==" }));
    d.refused_param("data_base64", "write", json!({ "id": proc, "data_base64": "not base64!" }));
    assert_eq!(d.ok("write", json!({ "id": proc, "data": "" }))["bytes_written"], 0);
    d.ok("close", json!({ "id": proc }));
    d.closed(&proc);
    assert_eq!(d.bytes(&proc), b"");
}

#[test]
fn a_repeated_write_gets_the_first_answer_also_after_the_exit_and_a_crash() {
    let mut d = Daemon::start();
    let gate = d.gate("go");
    let proc = id(&d.sh_with(&format!("{}; exit 4", gate.wait()), json!({ "stdin": "pipe" })));
    let ask = json!({ "id": proc, "data": "y".repeat(300_000), "timeout_ms": 200, "write_id": "A" });
    let first = d.ok("write", ask.clone());
    assert_eq!((&first["complete"], &first["duplicate"]), (&json!(false), &json!(false)));
    let check = |d: &Daemon| {
        let again = d.ok("write", ask.clone());
        let facts = (&again["bytes_written"], &again["complete"], &again["duplicate"]);
        assert_eq!(facts, (&first["bytes_written"], &json!(false), &json!(true)));
    };
    check(&d);
    gate.open();
    d.closed(&proc);
    check(&d);
    d.kill9();
    d.spawn();
    check(&d);
    d.refused(-32002, "already_exited", "write", json!({ "id": proc, "data": "z", "write_id": "B" }));
}

/// The broken code let each write wait for its own timeout after those before it, one after the other: the last of 40 was
/// answered after 27 s, and 14 got the error that the shim does not answer.
#[test]
fn forty_writers_to_a_program_that_never_reads_are_each_answered_by_their_own_timeout() {
    let mut d = Daemon::start();
    let gate = d.gate("go");
    let proc = id(&d.sh_with(&format!("{}; exec cat > got", gate.wait()), json!({ "stdin": "pipe" })));
    let mut conns: Vec<_> = (0..40).map(|_| d.conn()).collect();
    let ask = |n: usize| {
        let mut ask = json!({ "id": proc, "data": format!("{n:06}\n").repeat(20_000), "timeout_ms": 1000 });
        if n.is_multiple_of(2) {
            ask["write_id"] = json!(format!("w{n}"));
        }
        ask
    };
    let sent: Vec<u64> = conns.iter_mut().enumerate().map(|(n, conn)| conn.request("write", ask(n))).collect();
    let answers: Vec<_> = conns.iter_mut().zip(sent).map(|(conn, request)| conn.answer(request).unwrap()).collect();
    let bytes: Vec<u64> = answers.iter().map(|answer| answer["bytes_written"].as_u64().unwrap()).collect();
    assert!(answers.iter().all(|answer| answer["complete"] == false && answer["duplicate"] == false), "{answers:?}");
    assert_eq!(d.process(&proc)["detached"], json!(null), "its shim answers");
    // A named one that began is finished with its count; one that never began may be tried again.
    let began: Vec<usize> = (0..40).filter(|n| bytes[*n] > 0).collect();
    for n in began.iter().filter(|n| n.is_multiple_of(2)) {
        let again = d.ok("write", ask(*n));
        assert_eq!((&again["duplicate"], &again["bytes_written"]), (&json!(true), &json!(bytes[*n])));
    }
    d.restart();
    gate.open();
    assert_eq!(d.ok("write", json!({ "id": proc, "data": "END" }))["complete"], true);
    d.ok("close", json!({ "id": proc }));
    d.exited(&proc);
    let got = fs::read_to_string(d.home().join("got")).unwrap();
    let total = bytes.iter().sum::<u64>() as usize;
    assert_eq!((got.len(), &got[total..]), (total + 3, "END"), "the counts are exact: {bytes:?}");
}

/// Without the shim's count, a duplicate behind a stuck write would be answered with 0 bytes, and typed again.
#[test]
fn a_repeated_write_behind_a_stuck_one_gets_its_own_count() {
    let d = Daemon::start();
    let proc = id(&d.sh_with("exec sleep 1000", json!({ "stdin": "pipe" })));
    d.ok("write", json!({ "id": proc, "data": "twelve bytes", "write_id": "A" }));
    let mut conn = d.conn();
    let stuck = conn.request("write", json!({ "id": proc, "data": "x".repeat(1 << 20), "timeout_ms": 50_000 }));
    d.eventually("the pipe is full", || {
        let empty = json!({ "id": proc, "data": "", "timeout_ms": 20 });
        d.ok("write", empty)["complete"] == false
    });
    let again = d.ok("write", json!({ "id": proc, "data": "twelve bytes", "write_id": "A", "timeout_ms": 100 }));
    assert_eq!(
        (&again["bytes_written"], &again["duplicate"], &again["complete"]),
        (&json!(12), &json!(true), &json!(true))
    );
    // The close ends the write that waits, with its count.
    d.ok("close", json!({ "id": proc }));
    let error = conn.answer(stuck).unwrap_err();
    assert_eq!(error["data"]["reason"], "closed", "{error}");
    assert!(error["data"]["bytes_written"].as_u64().unwrap() > 0, "{error}");
}
