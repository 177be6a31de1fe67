//! A pause and a resume, and a daemon or a shim that is killed around them: `stopped` is the truth afterwards.

use crate::case_run::{end, tempfile_name};
use serde_json::json;
use std::fs;
use toold_test_support::rig::{Daemon, id};

pub const POINTS: [&str; 3] = ["pause.signalled", "pause.recorded", "resume.signalled"];

#[test]
fn a_stopped_process_is_shown_as_stopped_after_a_crash_at_any_step_and_continues() {
    std::thread::scope(|scope| {
        for point in POINTS {
            for shim_dies in [false, true] {
                scope.spawn(move || crash_at(point, shim_dies));
            }
        }
    });
}

fn crash_at(point: &str, shim_dies: bool) {
    let case = format!("{point}, the shim dies: {shim_dies}");
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let mut daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let marker = daemon.root().join("ran");
    let script = format!("echo ran >> {}; read -r x; echo \"got $x\"; exit 7", marker.display());
    let proc = id(&daemon.ok("exec", json!({ "argv": ["/bin/sh", "-c", script], "stdin": "pipe" })));
    daemon.eventually("it runs", || marker.exists());
    let verb = if point == "resume.signalled" {
        daemon.ok("pause", json!({ "id": proc }));
        "resume"
    } else {
        "pause"
    };

    fs::write(hooks.join(point), "").unwrap();
    let mut conn = daemon.conn();
    conn.request(verb, json!({ "id": proc }));
    let hit = hooks.join(format!("{point}.hit"));
    daemon.eventually(&format!("{case}: it is reached"), || hit.exists());
    let shim: i32 = fs::read_to_string(&hit).unwrap().parse().unwrap();
    daemon.kill9();
    if shim_dies {
        end(shim);
    }
    fs::remove_file(hooks.join(point)).unwrap();
    daemon.spawn();

    if shim_dies {
        daemon.eventually(&format!("{case}: it is lost"), || daemon.process(&proc)["status"] == "lost");
        assert_eq!(daemon.process(&proc)["stopped"], false, "{case}");
    } else {
        let stopped = verb == "pause";
        daemon.eventually(&format!("{case}: stopped is {stopped}"), || daemon.process(&proc)["stopped"] == stopped);
        assert_eq!(daemon.ok("resume", json!({ "id": proc }))["stopped"], false, "{case}");
        daemon.ok("submit", json!({ "id": proc, "data": "hello" }));
        let p = daemon.exited(&proc);
        assert_eq!((&p["exit_code"], &p["stopped"]), (&json!(7), &json!(false)), "{case}: {p}");
        assert!(daemon.text(&proc).ends_with("got hello\n"), "{case}");
    }
    assert_eq!(fs::read_to_string(&marker).unwrap(), "ran\n", "{case}: it ran more than once");
    fs::remove_dir_all(&hooks).unwrap();
}
