//! `approvals`, `approve`, `deny`, `grants`, `revoke`, and `run` of a command that asks, as a person types them.

use crate::api::approvals::{ask, asking, decide};
use serde_json::{Value, json};
use toold_test_support::programs;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::term::Term;

fn typed(d: &Daemon, line: &str) -> (i32, String) {
    let args: Vec<&str> = line.split(' ').collect();
    let output = d.ctl(&args);
    (output.code, output.stdout + &output.stderr)
}

fn state(d: &Daemon, approval: &Value) -> Value {
    d.ok("approvals.get", json!({ "id": approval["id"] }))["state"].clone()
}

#[test]
fn a_question_is_listed_approved_and_denied() {
    let d = Daemon::start();
    let (process, approval) = ask(&d, "echo ran", json!({ "session_key": "s" }));
    let (other, denied) = ask(&d, "echo other", json!({}));
    let (code, listed) = typed(&d, "approvals");
    assert_eq!((code, listed.lines().count()), (0, 3), "{listed}");
    assert!(listed.contains(&id(&approval)) && listed.contains("the test needs it"), "{listed}");
    let line = format!("{} approved: /bin/sh -c 'echo ran'\n", id(&approval));
    let (code, shown) = typed(&d, &format!("approve {} --session", id(&approval)));
    assert_eq!((code, shown.lines().next()), (0, line.lines().next()), "{shown}");
    assert!(shown.contains("toolctl revoke grant_"), "{shown}");
    assert_eq!(d.closed(&id(&process))["output"], "ran\n");
    let (code, _) = typed(&d, &format!("deny {} -m no", id(&denied)));
    assert_eq!((code, state(&d, &denied)), (0, json!("denied")));
    assert_eq!(d.exited(&id(&other))["reason"], "denied");
    let (code, again) = typed(&d, &format!("approve {}", id(&denied)));
    assert!(code == 1 && again.contains("is denied already"), "{code} {again}");
    let (code, unknown) = typed(&d, "approve appr_000000000000");
    assert!(code == 3 && unknown.contains("no approval appr_000000000000"), "{code} {unknown}");
    assert_eq!(typed(&d, "approve web").0, 2);
    let (_, grants) = typed(&d, "grants");
    assert!(grants.contains("its session's end") && grants.contains("echo ran"), "{grants}");
    let (code, revoked) = typed(&d, "revoke --session s");
    assert!(code == 0 && revoked.contains("revoked after 0 uses"), "{revoked}");
    assert_eq!(typed(&d, "revoke").0, 2);
    let (_, all) = typed(&d, "approvals --all");
    assert!(all.contains("approved") && all.contains("denied"), "{all}");
}

#[test]
fn one_key_decides_and_new_questions_come_as_they_are_asked() {
    let d = Daemon::start();
    let env: serde_json::Map<String, Value> = (0..20).map(|n| (format!("NAME_{n:02}"), json!("x"))).collect();
    let (first, _) = ask(&d, "echo one", json!({ "env": env }));
    let term = Term::ctl(&d, &["approvals", "-f"]);
    let shown = term.sees("y approve");
    for part in
        ["/bin/sh -c 'echo one'", "full -> full", "the test needs it (caller)", "NAME_07 and 12 more", &id(&first)]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("s approve for the session"), "it has no session: {shown}");
    // A key that the question does not offer decides nothing.
    term.types("s");
    term.types("y");
    term.sees("approved: /bin/sh -c 'echo one'");
    assert_eq!(d.closed(&id(&first))["output"], "one\n");
    term.sees("no question waits; q leaves");
    let (second, _) = ask(&d, "echo two", json!({ "session_key": "s", "task_id": "t" }));
    term.sees("s approve for the session");
    term.types("n");
    term.sees("denied: /bin/sh -c 'echo two'");
    assert_eq!(d.exited(&id(&second))["reason"], "denied");
    let (_, elsewhere) = ask(&d, "echo three", json!({}));
    term.sees("/bin/sh -c 'echo three'");
    decide(&d, &elsewhere, "approve");
    term.sees(&format!("{} does not wait any more", id(&elsewhere)));
    let (_, later) = ask(&d, "echo four", json!({}));
    term.sees("/bin/sh -c 'echo four'");
    term.types(" ");
    term.sees("later");
    term.types("q");
    assert_eq!(term.ends(), 0);
    assert_eq!(state(&d, &later), "pending");
}

#[test]
fn without_follow_it_ends_when_all_are_answered() {
    let d = Daemon::start();
    let (_, first) = ask(&d, "true", json!({}));
    let (_, second) = ask(&d, "true", json!({}));
    let term = Term::ctl(&d, &["approvals"]);
    term.sees(&id(&first));
    term.sees("q leave]");
    term.types("n");
    term.sees(&format!("{} asks", id(&second)));
    term.types("y");
    term.sees("no question waits");
    assert_eq!(term.ends(), 0);
    assert_eq!((state(&d, &first), state(&d, &second)), (json!("denied"), json!("approved")));
}

#[test]
fn run_reports_that_it_waits_and_goes_on_when_it_is_approved() {
    let d = Daemon::start();
    let asks = ["run", "--escalate", "full", "--reason", "needs it", "--", "/bin/sh", "-c", "echo ran; exit 7"];
    let term = Term::ctl(&d, &asks);
    term.sees("waits for an approval (needs it)");
    let approval = d.ok("approvals.list", json!({}))["approvals"][0].clone();
    term.sees(&format!("toolctl approve {}", id(&approval)));
    term.sees(&format!("{} pending", approval["process"].as_str().unwrap()));
    decide(&d, &approval, "approve");
    term.sees("ran");
    assert_eq!(term.ends(), 7);
    // A refusal is exit code 5.
    let term = Term::ctl(&d, &asks);
    term.sees("Ctrl-C withdraws the question");
    let approval = d.ok("approvals.list", json!({}))["approvals"][0].clone();
    decide(&d, &approval, "deny");
    assert_eq!(term.ends(), 5);
    term.sees("was not approved");
    let refused = d.ctl(&[&asks[..1], &["--approval-timeout", "0"], &asks[1..]].concat());
    assert_eq!(refused.code, 5, "{refused:?}");
}

#[test]
fn an_interrupt_of_run_withdraws_the_question() {
    let d = Daemon::start();
    let asks = ["run", "--escalate", "full", "--reason", "why", "--", "/bin/sh", "-c", "echo ran"];
    let term = Term::shell(&d, "trap : INT; \"$0\" \"$@\"; echo \"[code $?]\"; read -r _", &asks);
    term.sees("Ctrl-C withdraws the question");
    let approval = d.ok("approvals.list", json!({}))["approvals"][0].clone();
    term.types("\x03");
    assert_eq!(term.ends(), 5);
    d.eventually("it is withdrawn", || state(&d, &approval) == "withdrawn");
    assert_eq!(d.process(approval["process"].as_str().unwrap())["reason"], "denied");
}

#[test]
fn a_job_decides_nothing() {
    let d = Daemon::start();
    let (_, approval) = ask(&d, "echo ran", json!({ "session_key": "s" }));
    let (_, granted) = ask(&d, "true", json!({ "session_key": "s" }));
    let mut session = crate::api::approvals::decision(&granted, "approve");
    session["scope"] = json!("session");
    let grant = d.ok("approvals.decide", session)["grant"].clone();
    let toolctl = programs::toolctl().display().to_string();
    for line in [format!("approve {}", id(&approval)), format!("revoke {}", id(&grant))] {
        let script = format!("XDG_RUNTIME_DIR={}/run {toolctl} {line}", d.root().display());
        let ended = d.run(&script);
        assert_eq!(ended["exit_code"], 5, "{line}: {ended}");
        assert!(ended["output"].as_str().unwrap().contains("a person has to decide"), "{ended}");
    }
    assert_eq!(state(&d, &approval), "pending");
    assert_eq!(d.ok("grants.list", json!({}))["grants"].as_array().unwrap().len(), 1);
    let refused = d.ok("events.next", json!({ "consumer": "c", "types": ["inside_refused"] }));
    let methods: Vec<&Value> = refused["events"].as_array().unwrap().iter().map(|event| &event["what"]).collect();
    assert_eq!(methods, ["approvals.decide", "grants.revoke"]);
    // The job may ask all the same.
    assert_eq!(d.ok("exec", asking("true", json!({})))["status"], "pending");
}
