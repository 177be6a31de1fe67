//! Memory of confined jobs beyond that of plain ones, and what is left of them after their end.

use crate::Bench;
use crate::many::{self, field};
use crate::memory::{pss, settled_kernel_kib};
use crate::report::Target::AtMost;
use crate::report::{Figure, Unit};
use crate::sandbox::{params, workspace};
use serde_json::json;
use std::time::{Duration, Instant};
use toold_test_support::rig::Daemon;
use toold_test_support::traces::traces;

const MANY: usize = 1000;
/// Time after which nothing may be left: the daemon keeps namespaces for 10 seconds.
const MAX_KEPT: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_millis(200);

/// Cost of one more job in KiB.
struct Cost {
    own: f64,
    kernel: f64,
}

/// Returns the kernel's memory, with that for the code of filters, in which stacks are counted too.
fn kernel_kib() -> f64 {
    let settled = settled_kernel_kib();
    settled + field("/proc/meminfo", "VmallocUsed") - field("/proc/meminfo", "KernelStack")
}

/// Starts many jobs that sleep, and returns their cost and their daemon.
fn measure(confined: bool) -> (Cost, Daemon) {
    let each = |kib: f64| kib / MANY as f64;
    let daemon = many::daemon();
    let params = params(json!(["sleep", "100000"]), &workspace(&daemon), confined);
    // The first one makes the namespaces, which are shared by all.
    let warm = many::started(&daemon, 1, params.clone());
    daemon.ok("kill", json!({ "ids": warm }));
    let (own_before, kernel_before) = (pss(&daemon), kernel_kib());
    many::started(&daemon, MANY, params);
    let kernel = each(kernel_kib() - kernel_before);
    let own = pss(&daemon);
    let own = each(own.0 + own.1 - own_before.0 - own_before.1);
    (Cost { own, kernel }, daemon)
}

/// Measures what a confined job adds to a plain one, and counts what is left after all have ended.
pub fn jobs(bench: &mut Bench) {
    let repetitions = bench.pick(3, 5);
    let [mut own, mut kernel, mut all, mut plain, mut left] = [const { Vec::new() }; 5];
    for repetition in 1..=repetitions {
        let without = measure(false).0;
        let (with, daemon) = measure(true);
        own.push(with.own - without.own);
        kernel.push(with.kernel - without.kernel);
        all.push(with.own + with.kernel - without.own - without.kernel);
        plain.push(without.own + without.kernel);
        if repetition == repetitions {
            left.push(count_left(daemon));
        }
    }
    let report = &mut bench.report;
    let figure = Figure::new("sandbox.jobs", Unit::KiB, &all).floor("a job without a sandbox", &plain);
    report.add(figure.target(AtMost(20.0)).note(format!("added to each of {MANY} that sleep: shim, daemon, kernel")));
    report.add(Figure::new("sandbox.jobs.own", Unit::KiB, &own).note("PSS of shims and daemon"));
    report.add(Figure::new("sandbox.jobs.kernel", Unit::KiB, &kernel));
    let figure = Figure::new("sandbox.jobs.left", Unit::Count, &left).target(AtMost(0.0));
    report.add(figure.note("processes, namespaces and mounts after the last has ended"));
}

/// Ends all jobs, and counts what is left when the namespaces are no longer kept.
fn count_left(daemon: Daemon) -> f64 {
    // What a daemon has that never ran anything.
    let untouched = traces(&many::daemon());
    let ids = daemon.ids(json!({ "limit": 1000, "status": "running" }));
    daemon.ok("kill", json!({ "ids": ids, "signal": "KILL" }));
    let left = || traces(&daemon).difference(&untouched).count();
    let until = Instant::now() + MAX_KEPT;
    while left() > 0 && Instant::now() < until {
        std::thread::sleep(INTERVAL); // measured: what is left after some time
    }
    left() as f64
}
