//! References to a process in a call: its id, its name or a prefix; wrong and ambiguous ones are errors.

use serde_json::json;
use std::fs;
use std::path::Path;
use toold_test_support::rig::{Daemon, id};

/// The broken code refused names that a consumer may have.
#[test]
fn a_name_is_any_visible_text() {
    let d = Daemon::start();
    for name in ["日本", "my server", "हिन्दी", "bad name!", "a.b_c-d:e@f+g"] {
        let proc = id(&d.sh_with("exec sleep 1000", json!({ "name": name })));
        assert_eq!(d.process(name)["id"], json!(proc));
        d.ok("events.next", json!({ "consumer": name }));
    }
}

#[test]
fn a_process_is_found_by_id_name_and_prefix_of_four_or_more_digits() {
    let d = Daemon::start();
    let proc = id(&d.sh_with("exec sleep 1000", json!({ "name": "web" })));
    let hex = proc.strip_prefix("proc_").unwrap();
    for text in [&proc, "web", &hex[..4], &hex[..11], hex, &proc[..9], &proc[..12]] {
        assert_eq!(d.process(text)["id"], proc.as_str(), "{text}");
        assert_eq!(d.ok("wait", json!({ "id": text, "timeout_ms": 1 }))["processes"][0]["id"], proc.as_str());
    }
    assert_eq!(d.ok("kill", json!({ "ids": ["web"] }))["results"][0]["id"], proc.as_str());
}

#[test]
fn an_unknown_reference_is_not_found() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let short = &proc["proc_".len()..][..3];
    let upper = proc.to_uppercase();
    for text in
        ["proc_000000000000", "missing", "proc_", short, &upper, "../../etc", "proc_0000/../x", "0000000000000000"]
    {
        for verb in ["poll", "log", "inspect", "close"] {
            let error = d.refused(-32001, "not_found", verb, json!({ "id": text }));
            assert!(error["message"].as_str().unwrap().len() > 5);
        }
        d.refused(-32001, "not_found", "kill", json!({ "id": text }));
    }
    assert_eq!(d.process(&proc)["status"], "running");
}

#[test]
fn the_error_for_a_name_in_use_has_the_process_and_nothing_starts() {
    let d = Daemon::start();
    let first = d.sh_with("exec sleep 1000", json!({ "name": "web" }));
    let error = d.refused(-32007, "already_exists", "exec", json!({ "argv": ["/bin/true"], "name": "web" }));
    let p = &error["data"]["process"];
    assert_eq!((&p["id"], &p["pid"], &p["status"]), (&first["id"], &first["pid"], &json!("running")));
    assert_eq!(d.ids(json!({})), vec![id(&first)]);
}

#[test]
fn two_calls_for_one_name_at_once_get_one_process_and_one_error() {
    let d = Daemon::start();
    let mut conns: Vec<_> = (0..8).map(|_| d.conn()).collect();
    let ask = json!({ "argv": ["/bin/sleep", "1000"], "name": "only" });
    let sent: Vec<u64> = conns.iter_mut().map(|c| c.request("exec", ask.clone())).collect();
    let answers: Vec<_> = conns.iter_mut().zip(sent).map(|(c, n)| c.answer(n)).collect();
    assert_eq!(answers.iter().filter(|a| a.is_ok()).count(), 1, "{answers:#?}");
    let refused = answers.iter().filter_map(|a| a.as_ref().err());
    assert!(refused.into_iter().all(|e| e["data"]["kind"] == "already_exists"));
    assert_eq!(d.ids(json!({ "status": "running" })).len(), 1);
}

#[test]
fn a_name_is_free_after_the_exit_and_refers_to_the_running_process() {
    let mut d = Daemon::start();
    let old = id(&d.sh_with("exit 1", json!({ "name": "web" })));
    d.closed(&old);
    assert_eq!(d.process("web")["id"], old.as_str(), "the finished one still has its name");
    let new = id(&d.sh_with("exec sleep 1000", json!({ "name": "web" })));
    assert_eq!(d.process("web")["id"], new.as_str());
    d.restart();
    assert_eq!(d.process("web")["id"], new.as_str());
    d.refused(-32007, "already_exists", "exec", json!({ "argv": ["/bin/true"], "name": "web" }));
}

/// Copies a finished record under another id, inside its files too, as if there had been a second process.
fn forge(state: &Path, from: &str, to: &str) {
    let (source, target) = (find(state, from), find(state, from).with_file_name(to));
    fs::create_dir(&target).unwrap();
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            let bytes = String::from_utf8(bytes).map_or_else(|e| e.into_bytes(), |s| s.replace(from, to).into_bytes());
            fs::write(target.join(path.file_name().unwrap()), bytes).unwrap();
        }
    }
}

/// The directory of a process, at whatever depth of the state directory.
fn find(state: &Path, proc: &str) -> std::path::PathBuf {
    let dir = state.join("procs").join(proc);
    assert!(dir.is_dir(), "the state of {proc} is not in {}", dir.display());
    dir
}

#[test]
fn a_prefix_of_two_processes_is_ambiguous_and_affects_neither() {
    let mut d = Daemon::start();
    let proc = id(&d.run("exit 7"));
    d.kill9();
    // Differs in the last digit only: the first eleven are equal.
    let last = if proc.ends_with('0') { '1' } else { '0' };
    let twin = format!("{}{last}", &proc[..proc.len() - 1]);
    forge(&d.state(), &proc, &twin);
    d.spawn();
    if !d.ids(json!({})).contains(&twin) {
        eprintln!("skipped: this state cannot be forged by copying a directory");
        return;
    }
    for (verb, text) in [("poll", &proc[..9]), ("inspect", &proc[5..9]), ("log", &proc[..16])] {
        let error = d.refused(-32001, "ambiguous_id", verb, json!({ "id": text }));
        let mut matches: Vec<String> = serde_json::from_value(error["data"]["matches"].clone()).unwrap();
        matches.sort();
        let mut both = vec![proc.clone(), twin.clone()];
        both.sort();
        assert_eq!(matches, both);
    }
    d.refused(-32001, "ambiguous_id", "kill", json!({ "id": &proc[..9] }));
    d.refused(-32001, "ambiguous_id", "forget", json!({ "ids": [&proc[..9]] }));
    assert_eq!(d.process(&proc)["exit_code"], 7, "the whole id is never ambiguous");
    assert_eq!(d.process(&twin)["exit_code"], 7);
}

/// The broken code took the name first: `kill 4869d4`, meant for proc_4869d4..., killed the process of that name.
#[test]
fn a_name_that_is_the_start_of_another_id_is_ambiguous_and_affects_neither() {
    let mut d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let hex = proc.strip_prefix("proc_").unwrap();
    for digits in [4, 6, 12] {
        let name = &hex[..digits];
        let named = id(&d.sh_with("exec sleep 1000", json!({ "name": name })));
        let check = |d: &Daemon| {
            for verb in ["poll", "log", "inspect", "kill"] {
                let error = d.refused(-32001, "ambiguous_id", verb, json!({ "id": name }));
                assert_eq!(error["data"]["matches"], json!([named, proc]), "{error}");
                assert!(error["message"].as_str().unwrap().contains("is the name of"), "{error}");
            }
            d.refused(-32001, "ambiguous_id", "forget", json!({ "ids": [name] }));
            assert_eq!(d.ids(json!({ "name": name })), [named.as_str()], "a list by name is not a reference");
        };
        check(&d);
        d.restart();
        check(&d);
        // Each is found by its whole id, and by the name again once the other is gone.
        assert_eq!(d.ok("kill", json!({ "id": named }))["status"], "killed");
        d.refused(-32001, "ambiguous_id", "poll", json!({ "id": name }));
        d.ok("forget", json!({ "ids": [named] }));
        assert_eq!(d.process(name)["id"], proc.as_str());
    }
    assert_eq!(d.process(&proc)["status"], "running");
}

#[test]
fn a_name_of_hex_digits_works_while_no_other_id_begins_with_it() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let taken = &proc["proc_".len()..][..4];
    let name = if taken == "cafe" { "beef" } else { "cafe" };
    let named = id(&d.sh_with("exec sleep 1000", json!({ "name": name })));
    if named["proc_".len()..].starts_with(name) {
        return;
    }
    assert_eq!(d.process(name)["id"], named.as_str());
    assert_eq!(d.ok("kill", json!({ "id": name }))["results"][0]["id"], named.as_str());
}
