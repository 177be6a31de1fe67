//! Exit: latency from a program's last action to the client that waits for it or subscribes to events.

use crate::Bench;
use crate::client::{Client, call};
use crate::exec::UNSYNCED;
use crate::floors::{StampedExit, Supervisor};
use crate::report::Target::TimesFloor;
use crate::report::{Figure, Unit};
use crate::sample::Series;
use serde_json::json;
use toold_test_support::rig::{Daemon, id};

pub fn latency(bench: &mut Bench) {
    let (daemon, unsynced) = (Daemon::start(), Daemon::start_with(UNSYNCED, &[]));
    let (repetitions, count) = bench.pick((5, 60), (9, 400));
    let mut supervisor = Supervisor::start(&bench.small);
    let exit = StampedExit::new(&bench.small, daemon.root());
    let (mut client, mut subscriber) = (Client::open(&daemon.socket()), daemon.conn());
    subscriber.call("events.subscribe", json!({ "types": ["exited"] })).unwrap();
    let exec = call("exec", json!({ "argv": exit.argv() }));
    let (mut floor, mut waited, mut pushed) = (Series::default(), Series::default(), Series::default());
    let (mut without, mut unsynced) = (Series::default(), Client::open(&unsynced.socket()));
    for _ in 0..repetitions {
        floor.take(count, || supervisor.exit());
        waited.take(count, || {
            let process = id(&client.checked(&exec).0);
            client.send(&call("wait", json!({ "id": process })));
            let time = exit.timed(|| assert!(!client.line().is_empty()));
            // The subscriber gets the event too.
            subscriber.push();
            time
        });
        without.take(count, || {
            let process = id(&unsynced.checked(&exec).0);
            unsynced.send(&call("wait", json!({ "id": process })));
            exit.timed(|| assert!(!unsynced.line().is_empty()))
        });
        pushed.take(count, || {
            client.checked(&exec);
            let mut line = Vec::new();
            let time = exit.timed(|| line = subscriber.line().unwrap());
            assert!(line.windows(8).any(|part| part == b"\"exited\""));
            time
        });
    }
    let report = &mut bench.report;
    let name = "pidfd to socket";
    report.add(Figure::new("exit.wait.p50", Unit::Us, &waited.p50).floor(name, &floor.p50).target(TimesFloor(3.0)));
    let without = Figure::new("exit.wait.unsynced.p50", Unit::Us, &without.p50);
    report.add(without.floor(name, &floor.p50).note("with survive_power_cut = false"));
    report.add(Figure::new("exit.wait.p99", Unit::Us, &waited.p99).floor("pidfd to socket p99", &floor.p99));
    report.add(Figure::new("exit.push.p50", Unit::Us, &pushed.p50).floor(name, &floor.p50));
    report.add(Figure::new("exit.push.p99", Unit::Us, &pushed.p99).floor("pidfd to socket p99", &floor.p99));
}
