//! The keys of `[mcp.NAME]` that change what a server is and what may be called.

use super::Rig;
use serde_json::json;

#[test]
fn only_the_allowed_tools_are_listed_and_called_and_the_config_decides_on_effects() {
    let keys = "tools = [\"echo\", \"look\", \"effect\"]\neffect_override = { look = \"network\", echo = \"read\" }\ntimeout_ms = 250";
    let rig = Rig::with(&[], keys, "");
    let shown: Vec<_> =
        rig.tools().iter().map(|tool| json!([tool["name"], tool["effect"], tool["idempotent"]])).collect();
    let expected =
        json!([["fake.echo", "read", true], ["fake.effect", "write", false], ["fake.look", "network", false]]);
    assert_eq!(json!(shown), expected);
    assert!(rig.error("die", json!({}))["message"].as_str().unwrap().contains("there is no tool"));
    assert_eq!(rig.error("effect", json!({ "gate": "never" }))["data"]["kind"], "timeout");
    rig.end();
}

#[test]
fn a_server_gets_the_variables_that_the_config_names_and_no_value_is_in_a_file() {
    let keys = "env = { PLAIN = \"p\" }\nenv_pass = [\"MY_TOKEN\"]\ncwd = \"/\"";
    let rig = Rig::with_env(&[], keys, "", &[("MY_TOKEN", "very-secret-0815"), ("OTHER_TOKEN", "x")]);
    assert_eq!(rig.text("echo", json!({ "text": "x" })), "x");
    let pid = rig.process()["pid"].as_i64().unwrap();
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environ = String::from_utf8_lossy(&environ).replace('\0', "\n");
    assert!(environ.contains("PLAIN=p\n") && environ.contains("MY_TOKEN=very-secret-0815\n"), "{environ}");
    assert!(!environ.contains("OTHER_TOKEN"));
    assert_eq!(rig.process()["cwd"], "/");
    let found = rig.d.tool("grep", &["-rl", "very-secret-0815", rig.d.state().to_str().unwrap()]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    rig.end();
}

#[test]
fn an_eager_server_starts_with_the_daemon_and_a_removed_one_ends_with_the_next() {
    let mut rig = Rig::with(&[], "start = \"eager\"", "");
    rig.waits_for("list");
    rig.d.eventually("it is ready", || rig.tools().first().is_some_and(|tool| tool["state"] == "ready"));
    let program = rig.d.program("mcp/fake");
    rig.d.kill9();
    // Another program of the same name.
    rig.configure(&["--noise"], "", "");
    rig.d.spawn();
    assert_eq!(rig.text("echo", json!({ "text": "new" })), "new");
    assert!(program.is_dead(), "the one of the old config was ended");
    let program = rig.d.program("mcp/fake");
    rig.d.kill9();
    std::fs::remove_file(rig.d.root().join("config/toold/config.toml")).unwrap();
    rig.d.spawn();
    rig.d.eventually("the removed server ended", || program.is_dead());
    rig.d.refused(-32001, "not_found", "tools.list", json!({ "provider": "fake" }));
    rig.end();
}

#[test]
fn a_server_runs_in_the_sandbox_of_its_profile() {
    let rig = Rig::with(
        &[],
        "sandbox = \"jail\"",
        &format!("[profile.jail]\nmode = \"workspace-write\"\nroots = [{}]", json!("/tmp")),
    );
    match rig.call("echo", json!({ "text": "x" })) {
        Ok(answer) => {
            assert_eq!(answer["result"]["text"], "x");
            assert_eq!(rig.process()["sandbox"]["profile"], "jail");
        }
        Err(e) => eprintln!("skipped: no sandbox here: {e}"),
    }
    rig.end();
}

#[test]
fn a_program_that_is_not_there_is_unavailable_with_the_reason() {
    let rig = Rig::prepare(&[]);
    let text = "[mcp.fake]\ncommand = [\"no-such-program-here\"]\n";
    std::fs::write(rig.d.root().join("config/toold/config.toml"), text).unwrap();
    let mut rig = rig;
    rig.d.spawn();
    let error = rig.error("echo", json!({}));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("no-such-program-here"), "{message}");
    assert_eq!(error["data"]["kind"], "unavailable");
    rig.end();
}
