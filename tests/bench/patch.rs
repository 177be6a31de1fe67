//! Patches: many files at once, beside writing and syncing them one by one.

use crate::Bench;
use crate::client::{Client, call};
use crate::report::Target::TimesFloor;
use crate::report::{Figure, Unit};
use crate::sample::ms;
use serde_json::json;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use toold_test_support::rig::Daemon;

const FILES: usize = 200;
/// Lines of 40 bytes in each file.
const LINES: usize = 100;

fn text(changed: &str) -> String {
    (0..LINES).map(|n| format!("{n:038}{}\n", if n == 50 { changed } else { "x" })).collect()
}

/// Writes all files and waits until each is on the disk, as a careful program without toold does.
fn write_and_sync(dir: &Path, text: &str) {
    for n in 0..FILES {
        let mut file = File::create(dir.join(format!("f{n}"))).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.sync_all().unwrap();
    }
}

/// Measures a patch that changes a line in each of 200 files.
pub fn apply(bench: &mut Bench) {
    let daemon = Daemon::start();
    let mut client = Client::open(&daemon.socket());
    let dir = daemon.root().join("work");
    fs::create_dir(&dir).unwrap();
    write_and_sync(&dir, &text("a"));
    let line = format!("{:038}", 50);
    let patch = |from: &str, to: &str| {
        let one = |n: usize| format!("*** Update File: f{n}\n@@\n-{line}{from}\n+{line}{to}\n");
        let all: String = (0..FILES).map(one).collect();
        call("patch.apply", json!({ "patch": format!("*** Begin Patch\n{all}*** End Patch"), "cwd": dir }))
    };
    let (there, back) = (patch("a", "b"), patch("b", "a"));
    let repetitions = bench.pick(5, 15);
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    let floor_dir = daemon.root().join("floor");
    fs::create_dir(&floor_dir).unwrap();
    for repetition in 0..repetitions {
        floor.push(ms(|| write_and_sync(&floor_dir, &text("b"))));
        let call = if repetition % 2 == 0 { &there } else { &back };
        ours.push(ms(|| drop(client.checked(call))));
    }
    let figure = Figure::new("patch.apply.200_files", Unit::Ms, &ours).floor("write and fsync of 200 files", &floor);
    bench.report.add(figure.target(TimesFloor(3.0)).note("old bytes kept, journal, all or nothing"));
}
