//! Everything that a client can read of a daemon: processes with their output, events, consumers, reported damage.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use toold_test_support::rig::Daemon;

/// Each snapshot reads all events as a consumer of its own.
static READERS: AtomicU64 = AtomicU64::new(0);
const MAX_EVENTS: u64 = 10_000;
/// Fields of a process that change while it runs, or with the directory that it is in.
const VOLATILE: [&str; 6] = ["uptime_ms", "next_cursor", "output", "usage", "idle_ms", "shim_pid"];

#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The consumer that reads all events.
    pub reader: String,
    /// Each process by id: its fields, its bytes and the lines of both streams.
    pub processes: BTreeMap<String, Value>,
    /// Each event by number.
    pub events: BTreeMap<u64, Value>,
    /// The ranges that were reported as missing.
    pub missing: Vec<(u64, u64)>,
    /// The oldest kept and the newest number.
    pub oldest: u64,
    pub last: u64,
    pub consumers: BTreeMap<String, ConsumerSnapshot>,
    /// `damaged` of `daemon.info`, read last.
    pub damaged: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConsumerSnapshot {
    pub listed: bool,
    pub position: u64,
    /// The numbers that `events.next` returns.
    pub next: Vec<u64>,
    pub missing: Option<(u64, u64)>,
    /// The consumer was informed that its position was lost or that it expired.
    pub informed: bool,
    pub forgotten: bool,
}

impl Snapshot {
    /// Reads everything. `consumers` are read even if the daemon does not list them.
    pub fn read(daemon: &Daemon, ids: &[String], consumers: &[String]) -> Snapshot {
        let reader = format!("damage-reader-{}", READERS.fetch_add(1, Ordering::Relaxed));
        let mut snapshot = Snapshot { reader, ..Snapshot::default() };
        let info = daemon.ok("daemon.info", json!({}));
        snapshot.last = info["events"]["last"].as_u64().unwrap();
        snapshot.oldest = info["events"]["oldest"].as_u64().unwrap();
        let mut all: Vec<String> = daemon.ids(json!({}));
        all.extend(ids.iter().filter(|id| !all.contains(id)).cloned().collect::<Vec<_>>());
        for id in all {
            snapshot.processes.insert(id.clone(), process(daemon, &id));
        }
        snapshot.read_events(daemon);
        for name in consumers {
            let listed = info["events"]["consumers"].as_array().unwrap().iter().any(|c| c["name"] == *name);
            snapshot.consumers.insert(name.clone(), consumer(daemon, name, listed));
        }
        let damaged = daemon.ok("daemon.info", json!({}))["damaged"].clone();
        snapshot.damaged = damaged.as_array().unwrap().iter().map(|d| d.as_str().unwrap().to_string()).collect();
        snapshot
    }

    /// Reads the events after those that were read before.
    pub fn read_events(&mut self, daemon: &Daemon) {
        loop {
            let next =
                daemon.ok("events.next", json!({ "consumer": self.reader, "from": "oldest", "limit": MAX_EVENTS }));
            let mut to = 0;
            if let Some(range) = range(&next["missing"]) {
                self.missing.push(range);
                to = range.1;
            }
            for event in next["events"].as_array().unwrap() {
                to = event["seq"].as_u64().unwrap();
                assert!(self.events.insert(to, event.clone()).is_none(), "event {to} was delivered twice");
            }
            if to == 0 {
                return;
            }
            daemon.ok("events.ack", json!({ "consumer": self.reader, "seq": to }));
        }
    }

    /// Returns true if the event number was reported as missing, or is before the oldest that is kept.
    pub fn is_missing(&self, seq: u64) -> bool {
        seq < self.oldest || self.missing.iter().any(|(from, to)| (*from..=*to).contains(&seq))
    }
}

fn range(value: &Value) -> Option<(u64, u64)> {
    Some((value["from"].as_u64()?, value["to"].as_u64()?))
}

fn consumer(daemon: &Daemon, name: &str, listed: bool) -> ConsumerSnapshot {
    let next = daemon.ok("events.next", json!({ "consumer": name, "from": "now", "limit": MAX_EVENTS }));
    ConsumerSnapshot {
        listed,
        position: next["position"].as_u64().unwrap(),
        next: next["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect(),
        missing: range(&next["missing"]),
        informed: !next["damaged"].is_null() || !next["forgotten"].is_null(),
        forgotten: !next["forgotten"].is_null(),
    }
}

/// Reads one process. Errors are part of the result.
fn process(daemon: &Daemon, id: &str) -> Value {
    let mut conn = daemon.conn();
    let mut fields = match conn.call("poll", json!({ "id": id })) {
        Ok(fields) => fields,
        Err(error) => return json!({ "error": error }),
    };
    for name in VOLATILE {
        fields.as_object_mut().unwrap().remove(name);
    }
    let (mut cursor, mut pages) = (0, Vec::new());
    loop {
        let page = match conn.call("poll", json!({ "id": id, "cursor": cursor, "encoding": "base64" })) {
            Ok(page) => page,
            Err(error) => {
                pages.push(json!({ "error": error }));
                break;
            }
        };
        let next = page["next_cursor"].as_u64().unwrap();
        pages.push(json!([page["output"], page["gap"], page["truncated"], page["damaged"]]));
        if next <= cursor {
            break;
        }
        cursor = next;
    }
    let log = |stream: &str| match daemon.call("log", json!({ "id": id, "stream": stream })) {
        Ok(log) => log,
        Err(error) => json!({ "error": error }),
    };
    json!({ "fields": fields, "pages": pages, "stdout": log("stdout"), "stderr": log("stderr") })
}
