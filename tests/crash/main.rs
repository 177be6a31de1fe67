//! The crash matrix: kill -9 at every hook, and the invariants that hold afterwards.
// A test that unwraps a None has failed, and the panic names the line: there is no caller to return an error to.
#![allow(clippy::unwrap_used)]

mod approvals;
mod cancel;
mod case_run;
mod changes;
mod check;
mod discard;
mod event_files;
mod events;
mod fallback;
mod files;
mod hold;
mod kernel;
mod matrix;
mod pause;
mod queue;
mod random;
mod requests;
mod restart;
mod retry;
mod sandbox;
mod script;
mod script_random;
mod session;
mod stage;
mod toolsets;
mod verdict;

use matrix::{Case, Mode};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;

/// Cases that run at once. They mostly wait: for a hook, for pid 1 to reap.
const MAX_CONCURRENT: usize = 6;

const MCP_POINTS: [&str; 9] = [
    "mcp.attach",
    "mcp.handshake",
    "mcp.ready",
    "mcp.recorded",
    "mcp.sent",
    "mcp.started",
    "mcp.state_written",
    "mcp.write",
    "mcp.written",
];

#[test]
fn every_pause_point_in_the_daemon_has_a_crash_case() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    for file in
        ["daemon/src", "daemon/shim/src"].into_iter().flat_map(|dir| toold_test_support::rig::files(&root.join(dir)))
    {
        let text = std::fs::read_to_string(&file).unwrap();
        let calls = text.split("hooks::at(\"").skip(1);
        found.extend(calls.map(|rest| rest.split('"').next().unwrap().to_string()));
    }
    let mut covered: BTreeSet<String> = matrix::all().iter().map(|case| case.point.name.to_string()).collect();
    covered.extend(changes::POINTS.iter().map(ToString::to_string));
    covered.insert(discard::POINT.to_string());
    covered.insert(cancel::POINT.to_string());
    covered.extend(approvals::POINTS.iter().map(ToString::to_string));
    covered.extend(queue::POINTS.iter().map(ToString::to_string));
    covered.extend(requests::POINTS.iter().map(ToString::to_string));
    covered.extend(restart::POINTS.iter().chain(&restart::POLICY_POINTS).map(ToString::to_string));
    covered.extend(retry::POINTS.iter().map(ToString::to_string));
    covered.extend(pause::POINTS.iter().map(ToString::to_string));
    covered.extend(event_files::POINTS.iter().map(ToString::to_string));
    covered.extend(files::POINTS.iter().map(ToString::to_string));
    covered.extend(kernel::POINTS.iter().map(ToString::to_string));
    covered.extend(hold::POINTS.iter().map(ToString::to_string));
    covered.extend(sandbox::POINTS.iter().map(ToString::to_string));
    covered.extend(script::POINTS.iter().map(ToString::to_string));
    covered.extend(session::POINTS.iter().map(ToString::to_string));
    covered.extend(stage::POINTS.iter().map(ToString::to_string));
    covered.extend(verdict::POINTS.iter().map(ToString::to_string));
    // Servers of MCP: `e2e::mcp::survive` stops at each.
    covered.extend(MCP_POINTS.iter().map(ToString::to_string));
    covered.extend(events::POINTS.iter().map(ToString::to_string));
    // A read leaves nothing behind. `recovery::hung_disk` stops there.
    covered.insert("log.read_disk".into());
    assert_eq!(found, covered, "left: points in the sources; right: points with crash cases");
}

#[test]
fn nothing_is_lost_run_twice_or_left_over_with_shims_from_the_zygote() {
    run_all(matrix::all().into_iter().filter(|case| case.mode == Mode::Zygote).collect());
}

#[test]
fn nothing_is_lost_run_twice_or_left_over_with_executed_shims() {
    run_all(matrix::all().into_iter().filter(|case| case.mode == Mode::Exec).collect());
}

/// Runs the cases, several at a time, and names all that failed. `TOOLD_CRASH_CASE` selects by a part of the name.
fn run_all(mut cases: Vec<Case>) {
    if let Ok(part) = std::env::var("TOOLD_CRASH_CASE") {
        cases.retain(|case| case.to_string().contains(&part));
    }
    let count = cases.len();
    let (left, failed) = (Mutex::new(cases), Mutex::new(Vec::new()));
    let next = || left.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..MAX_CONCURRENT {
            scope.spawn(|| {
                while let Some(case) = next() {
                    let run = catch_unwind(AssertUnwindSafe(|| check::run(&case)));
                    if let Err(panic) = run {
                        let why = panic.downcast_ref::<String>().cloned();
                        let why = why.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                        failed.lock().unwrap().push(format!("{case}: {}", why.unwrap_or_default()));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {count} cases failed:\n{}", failed.len(), failed.join("\n"));
    println!("{count} cases");
}
