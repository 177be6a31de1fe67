//! Secrets are hidden where text leaves for a reader that may be a model, before it is cut, and nowhere else.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

/// The shape of a token of GitHub, in two parts: it is in no text of this repository.
fn token() -> String {
    format!("ghp_{}", "0123456789abcdefghijABCDEFGHIJ012345")
}

fn completion(d: &Daemon, process: &str) -> Value {
    d.closed(process);
    let all = d.ok("events.next", json!({ "consumer": "c", "types": ["completion"], "id": process, "wait_ms": 30000 }));
    all["events"][0].clone()
}

#[test]
fn known_values_and_shapes_are_hidden_in_the_result_of_a_script_and_not_in_its_log() {
    let d = Daemon::start();
    let code = "import os, base64\nfrom toold_tools import result, terminal\n\
        secret = os.environ['MY_PASSWORD']\nprint('plain', secret)\n\
        print('coded', base64.b64encode(secret.encode()).decode())\nprint(os.environ['SHAPE'])\n\
        out = terminal('echo ' + os.environ['SHAPE'])['output']\nprint(out == os.environ['SHAPE'] + '\\n')\n\
        result({'s': secret, 'n': 5})\nprint('MAX_TOKENS=100')";
    let env = json!({ "MY_PASSWORD": "correct horse battery", "SHAPE": token() });
    let call = json!({ "code": code, "env": env, "cwd": d.home() });
    let r = d.ok("script.run", call.clone());
    let output = r["output"].as_str().unwrap();
    assert!(!output.contains("correct horse") && !output.contains("ghp_"), "{output}");
    assert!(output.contains("plain [redacted:") && output.contains("True\n"), "{output}");
    assert!(output.contains("MAX_TOKENS=100"), "{output}");
    assert_eq!(r["value"]["n"], 5);
    assert!(!r["value"]["s"].as_str().unwrap().contains("correct horse"), "{r}");
    assert!(
        r["redacted"].as_array().unwrap().iter().map(|rule| rule["count"].as_u64().unwrap()).sum::<u64>() >= 4,
        "{r}"
    );
    let log = d.text(&id(&r));
    assert!(log.contains("plain correct horse battery") && log.contains(&token()), "the log has all of it");
    let mut plain = call;
    plain["redact"] = json!(false);
    assert!(d.ok("script.run", plain)["output"].as_str().unwrap().contains("correct horse battery"));
}

#[test]
fn a_secret_is_not_cut_in_half() {
    let d = Daemon::start();
    for offset in [19_990u64, 20_000, 20_010] {
        let code = format!("import os\nprint('x' * {offset} + ' ' + os.environ['SHAPE'] + ' ' + 'y ' * 60000)");
        let r = d.ok("script.run", json!({ "code": code, "env": { "SHAPE": token() }, "cwd": d.home() }));
        assert!(!r["output"].as_str().unwrap().contains("ghp_"), "{offset}");
        assert!(r["output_truncated"]["omitted"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_completion_has_no_secret_of_its_process_also_after_a_restart() {
    let mut d = Daemon::start();
    let env = json!({ "API_KEY": "a value without a shape" });
    let process = id(&d.sh_with("read x; echo got $API_KEY", json!({ "env": env, "notify": true, "stdin": "pipe" })));
    d.kill9();
    d.spawn();
    d.ok("close", json!({ "id": process }));
    let event = completion(&d, &process);
    assert!(event["output"].as_str().unwrap().starts_with("got [redacted:"), "{event}");
}

#[test]
fn poll_log_and_wait_hide_secrets_if_they_are_asked_to() {
    let d = Daemon::start();
    let env = json!({ "API_KEY": "a value without a shape" });
    let process = id(&d.sh_with("echo got $API_KEY; read x", json!({ "env": env, "stdin": "pipe" })));
    d.printed(&process, "got");
    for (method, more) in
        [("poll", json!({ "cursor": 0 })), ("log", json!({})), ("wait", json!({ "until": { "match": "got" } }))]
    {
        let mut call = json!({ "id": process, "redact": true });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = d.ok(method, call.clone());
        let text = if method == "wait" { answer["processes"][0]["output"].clone() } else { answer["output"].clone() };
        assert!(text.as_str().unwrap().starts_with("got [redacted:"), "{method}: {answer}");
        call["redact"] = json!(false);
        let answer = d.ok(method, call);
        let text = if method == "wait" { answer["processes"][0]["output"].clone() } else { answer["output"].clone() };
        assert_eq!(text, "got a value without a shape\n", "{method}");
    }
    d.ok("kill", json!({ "id": process }));
}
