//! The figures: the real release binaries over the real socket, beside floors measured in the same run.
//!
//! `cargo bench` runs all of it, `cargo bench -- events` what begins with that. A line of JSON for each figure, then a table.
// A measurement that unwraps a None has failed, and says where: there is nobody to hand an error to.
#![allow(clippy::unwrap_used)]

#[path = "../e2e/conn.rs"]
#[allow(dead_code)]
mod conn;
#[path = "../e2e/ctl.rs"]
#[allow(dead_code)]
mod ctl;
#[path = "../e2e/rig.rs"]
#[allow(dead_code)]
mod rig;
#[path = "../e2e/sys.rs"]
#[allow(dead_code)]
mod sys;

mod events;
mod report;

use report::Report;

/// A group of figures, by name.
type Measure = (&'static str, fn(&mut Report));

fn main() {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let mut report = Report::default();
    let all: &[Measure] = &[
        ("events.append", events::append),
        ("events.next", events::next),
        ("events.push", events::push),
        ("events.rate", events::rate),
        ("watch.capture", events::capture),
    ];
    for (name, measure) in all {
        if wanted.is_empty() || wanted.iter().any(|w| name.starts_with(w.as_str())) {
            measure(&mut report);
        }
    }
    report.print();
}
