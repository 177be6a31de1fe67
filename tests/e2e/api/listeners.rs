//! The TCP ports on which a tree listens: `listeners` of `inspect`, and `ports` of `list {usage}`.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id, skip_unless};

/// Listens on two free ports, one of them in two processes, and prints them.
const SERVER: &str = "import os, socket, time
a, b = socket.socket(), socket.socket(socket.AF_INET6)
a.bind(('127.0.0.1', 0)); a.listen(); b.bind(('::1', 0)); b.listen()
os.set_inheritable(a.fileno(), True)
if os.fork() == 0:
    b.close()
    time.sleep(1000)
print('up', a.getsockname()[1], b.getsockname()[1], flush=True)
time.sleep(1000)";

fn listed(d: &Daemon, params: Value, process: &str) -> Value {
    let list = d.ok("list", params);
    list["processes"].as_array().unwrap().iter().find(|p| p["id"] == process).cloned().unwrap()
}

#[test]
fn inspect_and_list_show_the_ports_of_the_whole_tree_and_no_others() {
    let has_ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    if skip_unless(has_ipv6, "there is no IPv6 loopback") {
        return;
    }
    let mut d = Daemon::start();
    // A listener of this test is none of the daemon's processes.
    let ours = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // The server is a descendant in a session of its own.
    let server = id(&d.ok("exec", json!({ "argv": ["sh", "-c", "setsid python3 -c \"$1\" & wait", "sh", SERVER] })));
    let silent = d.sh("exec sleep 1000");
    let ended = id(&d.run("exit 0"));
    let up = d.printed(&server, "up")["output"].as_str().unwrap().to_owned();
    let ports: Vec<u16> = up.split_whitespace().filter_map(|part| part.parse().ok()).collect();
    let [v4, v6] = ports[..] else { panic!("two ports: {up}") };
    let mut sorted = vec![v4, v6];
    sorted.sort_unstable();
    let check = |d: &Daemon| {
        let inspect = d.ok("inspect", json!({ "id": server }));
        let address = |port: u16| if port == v4 { "127.0.0.1" } else { "::1" };
        let listeners = inspect["listeners"].as_array().unwrap();
        let pids: Vec<&Value> = inspect["tree"].as_array().unwrap().iter().map(|member| &member["pid"]).collect();
        assert!(listeners.iter().all(|listener| pids.contains(&&listener["pid"])), "{inspect:#}");
        let shown: Vec<Value> =
            listeners.iter().map(|l| json!({ "port": l["port"], "address": l["address"] })).collect();
        let expected: Vec<Value> =
            sorted.iter().map(|port| json!({ "port": port, "address": address(*port) })).collect();
        assert_eq!(shown, expected, "each socket once, by port");
        assert_eq!(listed(d, json!({ "usage": true }), &server)["ports"], json!(sorted));
        assert_eq!(listed(d, json!({ "fields": ["id", "ports"] }), &server), json!({ "id": server, "ports": sorted }));
    };
    check(&d);
    d.restart();
    check(&d);
    assert_eq!(listed(&d, json!({ "usage": true }), &silent)["ports"], json!([]));
    assert_eq!(listed(&d, json!({ "usage": true }), &ended).get("ports"), None, "no member of it is running");
    assert_eq!(listed(&d, json!({}), &server).get("ports"), None, "only on request");
    assert_eq!(d.ok("inspect", json!({ "id": ended }))["listeners"], json!([]));
    drop(ours);
    let shown = d.ctl(&["inspect", &server]).stdout;
    assert!(shown.contains(&format!("127.0.0.1 port {v4}")), "{shown}");
}
