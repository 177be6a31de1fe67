//! `exec --queue`, `exec --after` and `queue`, as a person types them.

use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

fn typed(d: &Daemon, line: &str) -> (i32, String) {
    let args: Vec<&str> = line.split(' ').collect();
    let output = d.ctl(&args);
    (output.code, output.stdout + &output.stderr)
}

#[test]
fn a_queue_is_listed_set_paused_and_resumed() {
    let d = Daemon::start();
    assert_eq!(typed(&d, "queue"), (0, "NAME  SLOTS  PAUSED  RUNNING  PENDING\n".into()));
    assert_eq!(typed(&d, "queue set build --slots 2"), (0, "build  2 slots, 0 running, 0 pending\n".into()));
    assert_eq!(typed(&d, "queue pause build"), (0, "build  2 slots, paused, 0 running, 0 pending\n".into()));
    let (code, id) = typed(&d, "exec --queue build --name job -- sleep 1000");
    assert_eq!((code, id.trim()), (0, d.ids(json!({}))[0].as_str()));
    let listed = "NAME   SLOTS  PAUSED  RUNNING  PENDING\nbuild  2      yes     0        1\n";
    assert_eq!(typed(&d, "queue list"), (0, listed.into()));
    let (_, pending) = typed(&d, "list --status pending");
    assert!(pending.contains("pending") && pending.contains("waits for a slot of queue build"), "{pending}");
    let (_, inspected) = typed(&d, "inspect job");
    assert!(inspected.contains("Waits for: a slot of queue build"), "{inspected}");
    assert_eq!(typed(&d, "queue resume build"), (0, "build  2 slots, 1 running, 0 pending\n".into()));
    d.eventually("it runs", || d.process("job")["status"] == "running");
    let document: Value = serde_json::from_str(&d.ctl(&["queue", "--json"]).stdout).unwrap();
    assert_eq!(document, d.ok("queues.list", json!({})));
    for (line, code) in [("queue set build --slots 0", 2), ("queue set --slots 1", 2), ("queue set build", 2)] {
        assert_eq!(typed(&d, line).0, code, "{line}");
    }
}

#[test]
fn a_process_starts_after_another_or_does_not() {
    let d = Daemon::start();
    let gate = d.sh_with("read -r x; exit 5", json!({ "stdin": "pipe", "name": "gate" }));
    let (code, first) = typed(&d, "exec --after @last --name first -- true");
    assert_eq!(code, 0, "{first}");
    assert_eq!(d.process("first")["pending_on"], json!({ "after": [gate["id"]] }));
    let (code, killed) = typed(&d, "exec --after first --name killed -- true");
    assert_eq!(code, 0, "{killed}");
    let report = format!("{} killed before it started\n", killed.trim());
    assert_eq!(typed(&d, "kill killed"), (0, report));
    assert_eq!(typed(&d, "exec --after gate --after-any --name any -- true").0, 0);
    d.ok("close", json!({ "id": "gate" }));
    let ended = format!("{} (first) dependency\n", first.trim());
    assert_eq!(typed(&d, "wait first"), (1, ended));
    assert_eq!(typed(&d, "wait any").0, 0);
    let (code, unknown) = typed(&d, "exec --after ghost -- true");
    assert_eq!((code, unknown.contains("ghost")), (3, true), "{unknown}");
}
