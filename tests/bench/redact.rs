//! Redaction of a page: the time beside the same page without it, and the memory of the compiled rules.

use crate::Bench;
use crate::client::{Client, call};
use crate::many::rss_mib;
use crate::report::Target::AtMost;
use crate::report::{Figure, Unit};
use serde_json::json;
use toold_test_support::rig::Daemon;

const PAGE_BYTES: usize = 50_000;

/// Output as a build prints it, with a secret in each tenth line.
fn output() -> String {
    let line = |n: usize| match n % 10 {
        0 => format!("token: ghp_{:036x} and more\n", 0x9e37_79b9_7f4a_7c15_u128 * (n as u128 + 7)),
        _ => format!("[{n:05}] compiling module_{n} (src/module_{n}/mod.rs) in {}ms\n", n % 97),
    };
    let mut text: String = (0..).map(line).take(PAGE_BYTES / 40).collect();
    text.truncate(PAGE_BYTES);
    text
}

pub fn page(bench: &mut Bench) {
    let daemon = Daemon::start();
    let file = daemon.home().join("output");
    std::fs::write(&file, output()).unwrap();
    let process = daemon.closed(&daemon.sh(&format!("cat {}", file.display())));
    let mut client = Client::open(&daemon.socket());
    let poll = |redact: bool| {
        call("poll", json!({ "id": process["id"], "cursor": 0, "max_bytes": PAGE_BYTES, "redact": redact }))
    };
    let (plain, redacted) = (poll(false), poll(true));
    for _ in 0..20 {
        client.checked(&plain);
    }
    let before = rss_mib(daemon.pid());
    let (answer, _) = client.checked(&redacted);
    assert!(answer["output"].as_str().unwrap().contains("[redacted:github-pat]"), "{answer}");
    for _ in 0..20 {
        client.checked(&redacted);
    }
    let grown = rss_mib(daemon.pid()) - before;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..bench.pick(100, 500) {
        floor.push(client.ask(&plain) / 1e3);
        ours.push(client.ask(&redacted) / 1e3);
    }
    let added: Vec<f64> = ours.iter().zip(&floor).map(|(ours, floor)| (ours - floor).max(0.0)).collect();
    let figure = Figure::new("redact.page", Unit::Ms, &added).floor("poll without it", &floor);
    bench.report.add(figure.target(AtMost(2.0)).note("what redaction of 50 KB adds to poll"));
    let figure = Figure::new("redact.memory", Unit::MiB, &[grown]);
    bench.report.add(figure.target(AtMost(16.0)).note("resident, once the rules are compiled"));
}
