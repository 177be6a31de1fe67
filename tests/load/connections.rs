//! Two hundred connections at once, all of them active.

use crate::footprint::{Baseline, nothing_runs};
use serde_json::json;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};

const CONNECTIONS: usize = 200;
const ROUNDS: usize = 10;

#[test]
fn two_hundred_connections_at_once_all_get_their_own_answers() {
    let daemon = Daemon::start();
    let rest = Baseline::measure(&daemon);
    let mut conns: Vec<Conn> = (0..CONNECTIONS).map(|_| daemon.conn()).collect();
    for round in 0..ROUNDS {
        let script = |n: usize| format!("echo {round}-{n}; exit {}", n % 100);
        let exec = |n: usize| json!({ "argv": ["/bin/sh", "-c", script(n)], "yield_ms": 60_000 });
        // Every other connection starts a process, the others query; the answers are read after all requests were sent.
        let calls: Vec<u64> = conns
            .iter_mut()
            .enumerate()
            .map(|(n, conn)| match n % 2 {
                0 => conn.request("exec", exec(n)),
                // The other half.
                _ => conn.request("list", json!({ "limit": 5 })),
            })
            .collect();
        for (n, (conn, call)) in conns.iter_mut().zip(calls).enumerate() {
            let answer = conn.answer(call).unwrap();
            if n % 2 == 0 {
                assert_eq!(answer["exit_code"], n % 100, "{answer}");
                assert_eq!(answer["output"], format!("{round}-{n}\n"));
                let page = conn.call("poll", json!({ "id": id(&answer), "cursor": 0 })).unwrap();
                assert_eq!(page["output"], answer["output"]);
            } else {
                assert!(answer["processes"].is_array(), "{answer}");
            }
        }
    }
    drop(conns);
    nothing_runs(&daemon);
    rest.wait_restored(&daemon);
}
