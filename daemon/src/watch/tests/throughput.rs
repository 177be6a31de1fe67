//! Measures the throughput of a scan. Run it manually:
//! `cargo test --release -p toold-daemon --lib watch::tests::throughput -- --ignored --nocapture`.

use super::super::Matches;
use super::scanner;
use std::time::{Duration, Instant};
use toold_format::Stream::Stdout;

/// The length of one read from a log.
const READ: usize = 256 * 1024;

/// Returns log lines of 80 bytes, one of `every` coloured.
fn log(every: usize) -> Vec<u8> {
    let parts = ["compiling", "request", "handled", "in", "cache", "worker", "connection", "from", "user", "status"];
    let mut log = Vec::new();
    for i in 0..READ / 80 {
        let colour = if i % every == every - 1 { "\x1b[32mINFO\x1b[0m" } else { "INFO" };
        let mut line = format!("2026-01-02T03:04:05.{i:06} {colour} ");
        (0..12).for_each(|k| line.push_str(&format!("{} ", parts[(i * 7 + k * k * 3) % parts.len()])));
        log.extend_from_slice(&line.as_bytes()[..79]);
        log.push(b'\n');
    }
    log
}

fn measure(name: &str, written: &[&str], log: &[u8]) {
    let mut scanner = scanner(written);
    let (mut matches, mut at, start) = (Matches::default(), 0, Instant::now());
    while start.elapsed() < Duration::from_millis(700) {
        for _ in 0..8 {
            scanner.feed(Stdout, at, log, &mut matches);
            at += log.len() as u64;
        }
    }
    let rate = at as f64 / start.elapsed().as_secs_f64() / f64::from(1 << 30);
    println!("{name:<34} {rate:6.2} GiB/s, {} lines matched", matches.matches);
}

#[test]
#[ignore = "measures; meaningful only in a release build"]
fn a_scan_is_faster_than_a_program_can_print() {
    let (plain, some, all) = (log(usize::MAX), log(10), log(1));
    let texts: Vec<String> =
        (0..64).map(|i| format!("{}{i} failed", ["ERROR", "panic", "fatal", "Listening"][i % 4])).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let usual = [
        "error",
        "ERROR",
        "panicked at",
        "Listening on",
        "FAILED",
        "Traceback",
        "warning:",
        "READY",
        "fatal",
        "Segmentation fault",
        "exception",
        "OOM",
        "refused",
        "denied",
        "timed out",
        "listening",
        "Killed",
        "abort",
        "undefined",
        "BUILD",
    ];
    measure("1 text", &["panicked at"], &plain);
    measure("5 texts", &usual[..5], &plain);
    measure("20 texts", &usual, &plain);
    measure("64 texts", &texts, &plain);
    measure("5 texts, a tenth of lines coloured", &usual[..5], &some);
    measure("5 texts, all lines coloured", &usual[..5], &all);
    measure("5 texts, each line matches", &["zzz", "yyy", "xxx", "INFO", "www"], &plain);
    measure("1 regex with letters", &["/panicked at .*:\\d+"], &plain);
    measure("1 regex, either text", &["/(?i)error|failed"], &plain);
    measure("1 regex, anchored", &["/^ERROR"], &plain);
    measure("1 regex without letters", &["/\\d{7}$"], &plain);
    measure("1 regex, each line matches", &["/INFO \\w+"], &plain);
    measure(
        "5 texts and 5 regexes",
        &[
            "error",
            "ERROR",
            "FAILED",
            "READY",
            "fatal",
            "/^E\\d+",
            "/panicked at .*:\\d+",
            "/exit code [1-9]",
            "/done in \\d+s$",
            "/(?i)exception",
        ],
        &plain,
    );
}
