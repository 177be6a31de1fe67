//! The JavaScript stub with a daemon that dies, cuts, refuses and sends garbage.

use crate::program::{javascript, text};
use crate::python_faults::Random;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::time::Duration;

#[test]
fn every_effect_happens_once_while_connections_are_cut_and_the_daemon_restarts() {
    for seed in [1, 2] {
        let Some(run) = javascript() else { return };
        let mut random = Random(0x9e37_79b9_7f4a_7c15 + seed);
        run.channel.state().cut_after = Some(37);
        let mut child = run.start(
            "import { echo } from 'toold';\nlet bad = 0;\n\
             await Promise.all(Array.from({ length: 16 }, async (_, t) => {\n\
               for (let i = 0; i < 200; i++) { const r = (await echo({ t, i, ms: i % 3 })).args; if (r.t !== t || r.i !== i) bad++; }\n\
             }));\nconsole.log('bad', bad);\n",
        );
        while child.try_wait().expect("the child").is_none() {
            std::thread::sleep(Duration::from_millis(5 + random.below(40))); // rig: time between two faults
            if random.below(3) == 0 {
                run.channel.close();
                std::thread::sleep(Duration::from_millis(random.below(60))); // rig: time without a daemon
                run.channel.open();
            } else {
                run.channel.cut();
            }
        }
        let output = child.wait_with_output().expect("the end");
        assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("bad 0\n", ""), "seed {seed}");
        let state = run.channel.state();
        assert_eq!((state.effects.len(), state.journal.len(), state.conflicts), (3200, 3200, 0), "seed {seed}");
        assert!(state.hellos.len() > 10, "{} connections", state.hellos.len());
    }
}

#[test]
fn a_script_waits_for_a_daemon_that_is_away_and_an_idle_one_ends_without_it() {
    let Some(run) = javascript() else { return };
    run.channel.close();
    let child = run.start("import { echo, note, result } from 'toold';\nnote('early');\nconsole.log('went on');\nresult(await echo({ n: 1 }));\n");
    std::thread::sleep(Duration::from_millis(300)); // rig: time without a daemon
    run.channel.open();
    let output = child.wait_with_output().expect("the end");
    assert_eq!(
        (output.status.code(), text(&output.stdout).as_str()),
        (Some(0), "went on\n"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(run.channel.state().reports, [json!({"note": "early"}), json!({"value": {"args": {"n": 1}}})]);
    let mut child = run.start(
        "import { echo, note } from 'toold';\nawait echo();\nconsole.log('called');\nsetTimeout(() => {}, 300);\n",
    );
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("output");
    run.channel.close();
    assert_eq!(
        child.wait_with_output().expect("the end").status.code(),
        Some(0),
        "a process without calls needs no daemon"
    );
}

#[test]
fn a_wrong_token_is_denied_at_once_for_calls_and_reports() {
    let Some(run) = javascript() else { return };
    let code = "import { echo } from 'toold';\nawait Promise.all([1, 2].map(() => echo({ n: 1 }).catch((e) => console.log(e.kind))));\n\
        await echo({ n: 1 }).catch((e) => console.log(e.kind));\nthrow new Error('end');\n";
    std::fs::write(run.path().join("main.mjs"), code).expect("the script");
    let output = run.command("run.mjs").env("TOOLD_TOKEN", "wrong").output().expect("node runs");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), "denied\n".repeat(3).as_str()));
    assert!(text(&output.stderr).starts_with("Error: end\n"), "{}", text(&output.stderr));
    let output = run.command("run.mjs").env_remove("TOOLD_TOOLS").output().expect("node runs");
    assert_eq!(text(&output.stdout), "unavailable\n".repeat(3));
    assert_eq!(run.channel.state().effects.len(), 0);
}

#[test]
fn garbage_and_repeated_answers_cost_no_call() {
    let pieces: [&[u8]; 9] =
        [b"garbage\n", b"{\n", b"[]\n", b"null\n", b"1\n", b"\xff\xfe\n", b"{\"id\": []}\n", b"\n \n", b"{} {}\n"];
    let Some(run) = javascript() else { return };
    let mut child = run.start(
        "import { echo, twice } from 'toold';\nfor (let n = 0; n < 300; n++) if ((await (n % 2 ? echo : twice)({ n, ms: 1 })).args.n !== n) throw n;\nconsole.log('all');\n",
    );
    let mut random = Random(7);
    while child.try_wait().expect("the child").is_none() {
        std::thread::sleep(Duration::from_millis(20)); // rig: time between two faults
        let mut piece = pieces[random.below(pieces.len() as u64) as usize].to_vec();
        if random.below(2) == 0 {
            piece.insert(0, b"[{x\"\\"[random.below(5) as usize]);
        }
        run.channel.state().garbage.push(piece);
    }
    let output = child.wait_with_output().expect("the end");
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("all\n", ""));
    assert_eq!(run.channel.state().effects.len(), 300);
    run.channel.state().garbage_only = true;
    let out = run
        .output("import { echo } from 'toold';\nawait echo({ n: 1 }).catch((e) => console.log(e.kind, e.message));\n");
    assert_eq!(out, "parse_error the channel sends what is not JSON-RPC\n");
}
