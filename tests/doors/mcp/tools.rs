//! The list of tools, and each tool.

use super::client::{Server, events_in, id_in, masked};
use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

fn list(daemon: &Daemon, args: &[&str]) -> Value {
    let mut server = Server::legacy(daemon, args);
    server.request("tools/list", json!({}))["tools"].take()
}

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn the_list_has_six_tools_in_order_the_same_bytes_each_time_and_at_most_3000_characters() {
    let daemon = Daemon::prepare("", &[]);
    let (one, two) = (list(&daemon, &[]), list(&daemon, &[]));
    assert_eq!(one.to_string(), two.to_string());
    assert_eq!(names(&one), ["proc_start", "proc_wait", "proc_read", "proc_write", "proc_kill", "proc_list"]);
    assert!(one.to_string().chars().count() <= 3000, "{}", one.to_string().chars().count());
    assert!(!daemon.socket().exists(), "a list starts no daemon");
}

#[test]
fn a_server_that_only_reads_lists_and_runs_only_what_changes_nothing() {
    let daemon = Daemon::start();
    assert_eq!(names(&list(&daemon, &["--read-only"])), ["proc_wait", "proc_read", "proc_list"]);
    let mut server = Server::legacy(&daemon, &["--read-only"]);
    for (tool, arguments) in [("proc_start", json!({"command": "true"})), ("proc_kill", json!({"ids": ["x"]}))] {
        assert_eq!(server.fails(tool, arguments), format!("{tool} is not offered: this server only reads (denied)"));
    }
    assert_eq!(daemon.ids(json!({})), Vec::<String>::new());
}

#[test]
fn a_command_that_ends_is_answered_with_its_end_and_its_output() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "s"]);
    let text = server
        .call("proc_start", json!({"command": "printf 'one\\n\\033[31mtwo\\033[0m\\n'; exit 3", "name": "build"}));
    assert_eq!(masked(&text), "ID (build) exited 3 after T\none\ntwo\n[2 lines, 17 bytes, cursor 17]");
    let process = daemon.process(&id_in(&text));
    assert_eq!(
        (&process["session_key"], &process["notify"], &process["labels"]),
        (&json!("s"), &json!(true), &json!({"client": "test"}))
    );
    assert_eq!(process["cwd"], daemon.root().display().to_string());
}

#[test]
fn a_server_is_ready_by_its_port_or_by_its_output_and_the_first_line_has_it() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let serve = "import socket,time\ns=socket.socket()\ns.bind(('127.0.0.1',0))\nimport sys\np=s.getsockname()[1]\n";
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = format!(
        "{serve}s=socket.socket();s.setsockopt(1,2,1);s.bind(('127.0.0.1',{port}));print('up',flush=True);s.listen();time.sleep(600)"
    );
    let text = server.call(
        "proc_start",
        json!({"command": format!("exec python3 -c \"{}\"", script.replace('"', "\\\"")), "name": "web", "ready": format!("port:{port}"), "wait_s": 30}),
    );
    assert_eq!(
        masked(&text),
        format!("ID (web) running T, ready: port {port}, pid N\nup\n[1 line, 3 bytes, cursor 3]")
    );
    let text = server.call(
        "proc_start",
        json!({"command": "echo listening on 1; sleep 600", "ready": "^listening on \\d", "wait_s": 30}),
    );
    assert_eq!(
        masked(&text),
        "ID running T, ready: \"listening on 1\", pid N\nlistening on 1\n[1 line, 15 bytes, cursor 15]"
    );
    let refused = server.fails("proc_start", json!({"command": "true", "ready": "port:none"}));
    assert_eq!(refused, "ready: \"port:none\" is no port; write port:3000 (invalid_params)");
    assert_eq!(daemon.ids(json!({})).len(), 2, "a refused call starts nothing");
    server.call("proc_kill", json!({"ids": [id_in(&text), "web"]}));
}

#[test]
fn a_name_that_runs_is_returned_and_replaced_only_on_request() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let start = |server: &mut Server, replace: bool| {
        server.call("proc_start", json!({"command": "sleep 600", "name": "web", "wait_s": 0, "replace": replace}))
    };
    let first = start(&mut server, false);
    let second = start(&mut server, false);
    assert_eq!(id_in(&first), id_in(&second));
    assert_eq!(masked(&second), "ID (web) running T, it was running already, pid N\n[0 lines, 0 bytes, cursor 0]");
    let third = start(&mut server, true);
    assert_ne!(id_in(&third), id_in(&first));
    assert_eq!(daemon.exited(&id_in(&first))["reason"], "killed");
}

#[test]
fn environment_directory_terminal_and_timeout_reach_the_command() {
    let daemon = Daemon::start();
    let mut server = Server::start_with(&daemon, &[], &[("OF_THE_SERVER", "1")]);
    server.initialize("2025-06-18", "test", json!({}));
    let command = "echo $OF_THE_SERVER $MINE $(pwd) $PWD; test -t 0 && echo terminal";
    let text = server.call("proc_start", json!({"command": command, "cwd": "home", "env": {"MINE": "2"}, "tty": true}));
    let home = daemon.home().display().to_string();
    assert!(text.contains(&format!("1 2 {home} {home}\nterminal\n")), "{text}");
    let text = server.call("proc_start", json!({"command": "sleep 600", "timeout_s": 0.2}));
    assert!(masked(&text).starts_with("ID SIGTERM after T (timeout)"), "{text}");
}

#[test]
fn output_is_read_by_lines_cursor_line_and_pattern_and_never_beyond_the_bound() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let id = id_in(&server.call("proc_start", json!({"command": "seq 1 5000; echo err >&2", "wait_s": 30})));
    let body = |text: &str| {
        text.lines().skip(1).take_while(|line| !line.starts_with('[')).map(str::to_owned).collect::<Vec<_>>()
    };
    let text = server.call("proc_read", json!({"id": id, "stream": "stdout"}));
    assert_eq!(body(&text), (4941..=5000).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(text.contains("\n[5001 lines, 23897 bytes, cursor 23897]"), "{text}");
    let text = server.call("proc_read", json!({"id": id, "cursor": 0, "lines": 2}));
    assert_eq!(body(&text), ["1", "2"]);
    assert!(text.contains(", cursor 4]\n[23893 bytes follow: cursor 4]"), "{text}");
    let text = server.call("proc_read", json!({"id": id, "cursor": 4, "lines": 1}));
    assert_eq!(body(&text), ["3"]);
    let text = server.call("proc_read", json!({"id": id, "from_line": 10, "lines": 2}));
    assert_eq!(body(&text), ["11", "12"]);
    assert!(text.ends_with("[lines 10 to 11 of 5001; from_line 12 goes on]"), "{text}");
    let text = server.call("proc_read", json!({"id": id, "grep": "^499[0-9]$", "lines": 3, "from_line": 0}));
    assert_eq!(body(&text), ["4990", "4991", "4992"]);
    assert!(text.contains("[3 of 10 matching lines"), "{text}");
    assert_eq!(body(&server.call("proc_read", json!({"id": id, "stream": "stderr"}))), ["err"]);
    for arguments in [
        json!({"id": id, "lines": 8000}),
        json!({"id": id, "cursor": 0}),
        json!({"id": id, "from_line": 0, "lines": 5000}),
    ] {
        let text = server.call("proc_read", arguments.clone());
        let output: usize = body(&text).iter().map(|line| line.chars().count() + 1).sum();
        assert!((7000..=8001).contains(&output), "{arguments}: {output}");
        assert!(
            text.contains("cut to") || text.contains("bytes follow"),
            "it shows how to get the rest: {}",
            &text[text.len() - 200..]
        );
    }
}

#[test]
fn one_long_line_is_cut_and_a_progress_bar_is_folded_to_its_last_state() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let text = server.call("proc_start", json!({"command": "head -c 200000 /dev/zero | tr '\\0' x", "wait_s": 30}));
    assert!(text.chars().count() < 4300, "{}", text.chars().count());
    let text = server.call("proc_read", json!({"id": id_in(&text)}));
    assert!(text.chars().count() < 8300, "{}", text.chars().count());
    let text = server.call("proc_start", json!({"command": "for i in 1 2 3; do printf '\\r%s%%' $i; done; echo"}));
    assert_eq!(text.lines().nth(1), Some("3%"), "{text}");
}

#[test]
fn a_kill_ends_the_tree_and_its_receipt_has_it() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let id = id_in(&server.call("proc_start", json!({"command": "sleep 600 & sleep 600", "wait_s": 0, "name": "web"})));
    let text = server.call("proc_kill", json!({"ids": ["web"]}));
    assert!(masked(&text).starts_with("ID (web) SIGTERM after T (killed by "), "{text}");
    assert!(text.ends_with("SIGTERM, nothing of it is left"), "{text}");
    let again = server.call("proc_kill", json!({"ids": [id]}));
    assert!(again.ends_with("had ended already"), "{again}");
    let text = server.fails("proc_kill", json!({"ids": ["nothing"]}));
    assert!(text.ends_with("(not_found)"), "{text}");
}

#[test]
fn the_list_of_processes_has_those_of_the_session_and_on_request_the_others_and_the_ended() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &["--session", "mine"]);
    daemon.sh_with("echo hello; sleep 600", json!({"name": "other", "session_key": "theirs"}));
    let text = server.call("proc_list", json!({}));
    assert_eq!(text, "0 running, 0 ended (everyone: true lists those of others)");
    server.call("proc_start", json!({"command": "echo done", "name": "past"}));
    server.call("proc_start", json!({"command": "echo here; sleep 600", "name": "web", "ready": "here"}));
    let text = server.call("proc_list", json!({}));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        (lines[0], lines[1]),
        ("1 running, 1 ended (ended: true lists them)", "ID  NAME  STATE  AGE  CPU  MEM  PORTS  LAST LINE")
    );
    assert!(lines[2].contains("  web  running  ") && lines[2].ends_with("  here"), "{text}");
    let text = server.call("proc_list", json!({"ended": true}));
    assert!(text.lines().nth(3).unwrap().contains("  past  exited 0  "), "{text}");
    let text = server.call("proc_list", json!({"everyone": true}));
    assert!(text.contains("  other  running  ") && text.contains("  theirs  hello"), "{text}");
    assert_eq!(events_in(&text), None, "the list has stated the end");
}

#[test]
fn wrong_arguments_are_refused_by_name_and_those_of_gemini_are_ignored() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let known = "command, cwd, env, name, ready, replace, timeout_s, tty, wait_s";
    assert_eq!(
        server.fails("proc_start", json!({"command": "true", "background": true})),
        format!("background: there is no such argument; there are {known} (invalid_params)")
    );
    assert_eq!(server.fails("proc_read", json!({})), "id: is missing (invalid_params)");
    assert_eq!(
        server.fails("proc_wait", json!({"match": "a", "port": 3})),
        "give one of match, port and quiet_s (invalid_params)"
    );
    let text = server.call("proc_start", json!({"command": "true", "wait_for_previous": true, "_session": "injected"}));
    assert_eq!(daemon.process(&id_in(&text))["session_key"], "injected");
    let error = server.refused("tools/call", json!({"name": "proc_restart", "arguments": {}}));
    assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!("there is no tool \"proc_restart\"")));
    assert_eq!(server.refused("prompts/list", json!({}))["code"], -32601);
}

#[test]
fn the_session_is_that_of_the_agent() {
    let daemon = Daemon::start();
    let start = |env: &[(&str, &str)], args: &[&str], meta: Value| {
        let mut server = Server::start_with(&daemon, args, env);
        server.initialize("2025-06-18", "agent", json!({}));
        let result = server
            .request("tools/call", json!({"name": "proc_start", "arguments": {"command": "true"}, "_meta": meta}));
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        let session = daemon.process(&id_in(&text))["session_key"].as_str().unwrap().to_owned();
        (session, server.pid())
    };
    let claude = [("CLAUDE_CODE_SESSION_ID", "67466")];
    assert_eq!(start(&claude, &["--session", "chosen"], json!({})).0, "chosen");
    assert_eq!(start(&claude, &[], json!({"threadId": "01a1"})).0, "claude:67466");
    assert_eq!(start(&[], &[], json!({"threadId": "01a1"})).0, "codex:01a1");
    let (own, pid) = start(&[], &[], json!({}));
    assert!(own.starts_with(&format!("mcp:agent:{pid}-")), "{own}");
}

#[test]
fn a_search_that_is_cut_goes_on_at_the_line_after_its_last_one() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let id = id_in(&server.call("proc_start", json!({"command": "seq 1 30000", "wait_s": 30})));
    let (mut found, mut from) = (0, 0);
    loop {
        let arguments = json!({"id": id, "grep": "1", "from_line": from, "lines": 5000});
        let text = server.call("proc_read", arguments);
        found += text.lines().filter(|line| line.parse::<u64>().is_ok_and(|n| n.to_string().contains('1'))).count();
        let Some((_, rest)) = text.rsplit_once("; from_line ") else { break };
        from = rest.strip_suffix(" goes on]").unwrap().parse().unwrap();
    }
    assert_eq!(found, (1..=30_000).filter(|n: &u32| n.to_string().contains('1')).count());
    let text = server.call("proc_read", json!({"id": id, "grep": "1", "lines": 5000}));
    assert!(text.contains("\n29991\n") && text.ends_with(", the last; from_line 0 begins with the first]"), "{text}");
}

#[test]
fn a_wrong_pattern_starts_nothing_and_names_its_argument() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let text = server.fails("proc_start", json!({"command": "sleep 600", "ready": "("}));
    assert!(text.starts_with("ready: ") && text.ends_with("(invalid_params)"), "{text}");
    assert!(daemon.ids(json!({})).is_empty());
    let text = server.fails("proc_wait", json!({"match": "("}));
    assert!(text.starts_with("match: "), "{text}");
}

#[test]
fn a_progress_bar_in_the_list_is_its_last_state() {
    let daemon = Daemon::start();
    let mut server = Server::legacy(&daemon, &[]);
    let bar = json!({"command": "printf '\\r10/30 working\\r20/30 working'; sleep 600", "ready": "20/30"});
    server.call("proc_start", bar);
    let text = server.call("proc_list", json!({}));
    assert!(text.ends_with("  20/30 working"), "{text}");
}
