//! Clients with many subscriptions to one flood that read nothing and hang up.

use crate::footprint::{Baseline, nothing_runs};
use serde_json::json;
use toold_test_support::rig::Daemon;

const ROUNDS: usize = 5;
const CLIENTS: usize = 50;
/// The default of `max_subscriptions`.
const SUBSCRIPTIONS: usize = 64;
const FLOOD_BYTES: usize = 4 << 20;

/// The broken code read a page for each subscription and queued 128 of them for each client: 435 MiB stayed resident.
#[test]
fn clients_that_follow_a_flood_and_hang_up_leave_the_memory_flat() {
    let daemon = Daemon::start();
    let rest = Baseline::measure(&daemon);
    for round in 0..ROUNDS {
        let gate = daemon.gate(&format!("gate{round}"));
        let flood = daemon.sh(&format!("{}; yes 0123456789abcdef | head -c {FLOOD_BYTES}", gate.wait()));
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| daemon.conn()).collect();
        for client in &mut clients {
            for _ in 0..SUBSCRIPTIONS {
                client.call("events.subscribe", json!({ "id": flood, "output": true })).unwrap();
            }
        }
        gate.open();
        daemon.closed(&flood);
        drop(clients);
    }
    nothing_runs(&daemon);
    rest.wait_restored(&daemon);
}
