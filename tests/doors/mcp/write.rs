//! `proc_write`: text, keys, and prompts that are none of the model's business.

use super::client::{Server, id_in, masked};
use serde_json::json;
use toold_test_support::rig::Daemon;

#[test]
fn text_goes_to_a_pipe_that_stays_open_until_it_is_closed() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let id = id_in(
        &server.call("proc_start", json!({"command": "while read a; do echo got $a; done; echo end", "wait_s": 0})),
    );
    let text = server.call("proc_write", json!({"id": id, "text": "one", "wait_s": 10}));
    assert!(masked(&text).contains("\ngot one\n[1 line, 8 bytes, cursor 8]"), "{text}");
    let text = server.call("proc_write", json!({"id": id, "text": "t", "enter": false, "wait_s": 0}));
    assert!(text.contains("[1 line, 8 bytes, cursor 8]"), "{text}");
    let text = server.call("proc_write", json!({"id": id, "text": "wo", "wait_s": 10}));
    assert!(text.contains("\ngot two\n"), "{text}");
    server.call("proc_write", json!({"id": id, "key": "close"}));
    assert_eq!(daemon.closed(&id)["exit_code"], 0);
    let text = server.call("proc_read", json!({"id": id}));
    assert!(text.contains("\nend\n"), "{text}");
}

#[test]
fn keys_reach_a_terminal_and_interrupt_a_program_without_one() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    for tty in [true, false] {
        let script = "trap 'echo int; exit 9' INT; echo on; while :; do sleep 0.05; done";
        let id = id_in(&server.call("proc_start", json!({"command": script, "tty": tty, "ready": "on", "wait_s": 30})));
        server.call("proc_write", json!({"id": id, "key": "ctrl-c"}));
        assert_eq!(daemon.exited(&id)["exit_code"], 9, "tty {tty}");
    }
    let text = server.fails("proc_write", json!({"id": "x", "key": "f1"}));
    assert!(text.ends_with("(not_found)"), "{text}");
}

#[test]
fn a_prompt_that_does_not_show_what_is_typed_is_left_to_a_person() {
    let daemon = Daemon::start();
    let ask = json!({"command": "stty -echo; printf 'Password: '; read a; stty echo; echo; echo got $a", "tty": true, "wait_s": 30});
    let mut server = Server::legacy(&daemon, &[]);
    let text = server.call("proc_start", ask.clone());
    let id = id_in(&text);
    assert!(masked(&text).starts_with("ID asks \"Password:\", pid N"), "{text}");
    let text = server.fails("proc_write", json!({"id": id, "text": "hunter2"}));
    assert!(text.ends_with(&format!("`toolctl attach {id}` (denied)")) && text.contains("Password:"), "{text}");
    let text = server.fails("proc_write", json!({"id": id, "key": "enter"}));
    assert!(text.ends_with("(denied)"), "an empty answer is one: {text}");
    let text = server.call("proc_write", json!({"id": id, "key": "ctrl-c"}));
    assert!(text.starts_with(&id), "{text}");
    daemon.exited(&id);
    // The broken code typed into a prompt that was printed a moment ago: the question was not known yet.
    let quick = json!({"command": "stty -echo; echo now; printf 'Password: '; read a; echo got $a", "tty": true, "ready": "^now"});
    let id = id_in(&server.call("proc_start", quick));
    let text = server.fails("proc_write", json!({"id": id, "text": "hunter2"}));
    assert!(text.ends_with("(denied)"), "{text}");
    server.call("proc_kill", json!({"ids": [id]}));
    let mut trusted = Server::legacy(&daemon, &["--allow-secrets"]);
    let id = id_in(&trusted.call("proc_start", ask));
    let text = trusted.call("proc_write", json!({"id": id, "text": "hunter2", "wait_s": 10}));
    assert_eq!(daemon.exited(&id)["exit_code"], 0, "{text}");
}

#[test]
fn a_program_that_edits_its_own_line_is_typed_to() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let script = "import sys,tty,termios,os\ntty.setcbreak(0)\nsys.stdout.write('>>> ');sys.stdout.flush()\nline=b''\nwhile not line.endswith(b'\\r') and not line.endswith(b'\\n'):\n    line+=os.read(0,1)\nprint('got',line)";
    std::fs::write(daemon.root().join("repl.py"), script).unwrap();
    let text = server.call("proc_start", json!({"command": "exec python3 repl.py", "tty": true, "wait_s": 30}));
    assert!(masked(&text).starts_with("ID asks \">>>\", pid N"), "{text}");
    let text = server.call("proc_write", json!({"id": id_in(&text), "text": "6*7", "wait_s": 10}));
    assert!(text.contains("got b'6*7"), "{text}");
}

#[test]
fn a_wait_that_is_cut_by_the_limit_of_the_client_is_stated() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--max-wait", "1s"]);
    let id = id_in(&server.call("proc_start", json!({"command": "sleep 600", "wait_s": 0})));
    let text = server.call("proc_write", json!({"id": id, "text": "x", "wait_s": 100}));
    assert!(text.ends_with("[waited 1s of 1m, the limit of one call here; call proc_wait again]"), "{text}");
}
