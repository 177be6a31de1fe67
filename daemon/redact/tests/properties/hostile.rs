//! Hostile texts of 1 MB: their cost grows with their length and no faster.

use crate::samples::{known, redactor};
use std::time::{Duration, Instant};
use toold_redact::Redactor;

const LEN: usize = 1 << 20;
/// Quadratic time would be hours, linear time is seconds in a debug build on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(60);

fn time(redactor: &Redactor, unit: &str) -> Duration {
    // A unit without line breaks is one long value of a dump too.
    let text = format!("A=1\nB=1\nA_KEY={}", unit.repeat(LEN / unit.len()));
    let known =
        known(&[("env:A", &"a".repeat(300)), ("env:B", "aaaaaaaab"), ("env:C", &format!("{}b", "a".repeat(200)))]);
    let start = Instant::now();
    let redacted = redactor.redact(&text, &known);
    let took = start.elapsed();
    assert!(redacted.text.len() <= text.len() * 4);
    took
}

#[test]
fn hostile_text_costs_linear_time() {
    let redactor = redactor();
    let pem = ["-----BEGIN PRI", "VATE KEY-----"].concat();
    let pem_end = pem.replace("BEGIN", "END");
    let units = [
        "a",
        "a\n",
        "eyJ",
        "eyJaaaaaaaaaa.",
        "-eyJ",
        "sk-",
        "-sk-",
        "ask-",
        "://",
        "a://:",
        "a://b:c",
        "a://b:c@d ",
        "A=b\n",
        "A_KEY=b\n",
        "[redacted:",
        "[redacted:env:X",
        "[redacted:env:Y]",
        "Authorization: Bearer ",
        "AKIA",
        "SK0",
        "ghp_",
        "bearer ",
        "xox",
        "sk-T3BlbkFJ",
        "secret_access_key=",
        "{{",
        "${",
        "0123456789abcdef-us",
        "A1",
        "JQQJ99",
        ".atlasv1.",
        &pem,
        &pem_end,
        "SG.aaaaaaaaaaaaaaaa.",
        "=\n",
        "\"A_KEY=${\n",
        "é",
        "machine a login b ",
        "xapp-1-A-",
        "1Q~",
        "hooks.slack.com/services/",
        "https://discord.com/api/webhooks/1",
        "sk-ant-xxxxxxxxxxxxxxxxxxxx ",
    ];
    let mut slow = Vec::new();
    for unit in units {
        let took = time(&redactor, unit);
        println!("measured {took:?} {unit:?}");
        if took > MAX_TIME {
            slow.push((unit, took));
        }
    }
    assert_eq!(slow, []);
}
