//! Measures the redactor: time and memory of the first and of later runs over 50 KB, with own rules and with a rule file if one is
//! given. `cargo run --release -p toold-redact --example measure [FILE]`

use std::time::{Duration, Instant};
use toold_redact::{ExcerptInput, KnownValues, RedactConfig, Redactor, RuleFile};

const TEXT_BYTES: usize = 50_000;
const ROUNDS: usize = 200;

/// The resident memory of this process in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Output as a build prints it.
fn plain_text() -> String {
    let lines = (0..).map(|n| {
        format!("[{n:05}] compiling module_{n} (src/module_{n}/mod.rs) in {}ms: https://example.com/{n}\n", n % 97)
    });
    let mut text = String::new();
    lines.take_while(|_| true).take(TEXT_BYTES / 60).for_each(|line| text.push_str(&line));
    text.truncate(TEXT_BYTES);
    text
}

/// The same output with every keyword that begins a token, so that most rules are applied, and with secrets.
fn full_text() -> String {
    let prefixes = "ghp_ gho_ ghs_ ghr_ github_pat_ glpat- ATATT3 npm_ pypi-AgE rubygems_ cio oy2 dckr_pat_ AKCp sqp_ sgp_ bkua_ pul- \
        .atlasv1. PMAK- AKIA ABSK AIza ya29. GOCSPX- 1//0 Q~ JQQJ99 AZDO dop_v1_ HRKU- fo1_ nfp_ v1.0- sbp_ pscale_ dapi tskey- hvs. \
        dp.pt. ops_eyJ AGE-SECRET-KEY-1 sk-ant- sk-proj- sk-or- sk- hf_ gsk_ xai- pplx- r8_ nvapi- csk- pcsk_ lsv2_ tvly- fc- jina_ \
        xoxb- xapp- hooks.slack.com /api/webhooks/ :AA sk_live_ whsec_ SK SG. key- -us shpat_ sq0 EZAK glc_ NRAK- sntrys_ dt0 lin_api_ \
        ntn_ figd_ CFPAT- sk.eyJ eyJ LS0tLS1CRUdJTi :// Authorization: bearer -key secret_access_key session_token AccountKey= sig= \
        :_auth \"auth\" machine PRIVATE KEY";
    let secrets: String =
        (0..50).map(|n| format!("token: ghp_{:036x} and more\n", 0x9e37_79b9_7f4a_7c15_u128 * (n + 7))).collect();
    let mut text = format!("{prefixes}\n{secrets}{}", plain_text());
    text.truncate(TEXT_BYTES);
    text
}

fn known() -> KnownValues {
    let mut known = KnownValues::new();
    for n in 0..20u64 {
        known.insert(
            &format!("env:KEY_{n}"),
            format!("opaque/value+{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).as_bytes(),
        );
    }
    known
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn measure(name: &str, redactor: &Redactor, text: &str, known: &KnownValues) {
    let before = resident_kib();
    let start = Instant::now();
    let first = redactor.redact(text, known);
    let first_took = start.elapsed();
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        std::hint::black_box(redactor.redact(text, known));
        start.elapsed()
    });
    let times: Vec<Duration> = times.collect();
    let (max, median) = (times.iter().max().copied().unwrap_or_default(), median(times));
    let count: u64 = first.counts.iter().map(|one| one.count).sum();
    let grown = resident_kib().saturating_sub(before);
    println!(
        "measured {name}: first {first_took:?}, then median {median:?} max {max:?}, {count} replaced, +{grown} KiB resident"
    );
}

fn main() {
    let start = resident_kib();
    let redactor = Redactor::new(RedactConfig::default());
    let (plain, full, known) = (plain_text(), full_text(), known());
    measure("plain 50 KB, no known value", &redactor, &plain, &KnownValues::new());
    measure("plain 50 KB, 20 known values", &redactor, &plain, &known);
    measure("all keywords 50 KB, 20 known values", &redactor, &full, &known);
    let long = full.repeat(20);
    let begin = Instant::now();
    let excerpt = redactor.excerpt(ExcerptInput::Whole(&long), TEXT_BYTES, &known);
    println!("measured excerpt of 1 MB read whole: {:?}, {:?}", begin.elapsed(), excerpt.cut);
    println!("measured own rules: {} KiB resident more than at the start", resident_kib().saturating_sub(start));
    let Some(path) = std::env::args().nth(1) else { return };
    let text = std::fs::read_to_string(&path).expect("a rule file");
    let begin = Instant::now();
    let file = RuleFile::parse(&text).expect("TOML");
    println!("measured file: {} rules read in {:?}, left out: {:?}", file.len(), begin.elapsed(), file.problems);
    let redactor = Redactor::new(RedactConfig { extra_rules: vec![file], ..RedactConfig::default() });
    measure("plain 50 KB with the file", &redactor, &plain, &known);
    measure("all keywords 50 KB with the file", &redactor, &full, &known);
    // Every rule is compiled by a text that is the file itself.
    measure("the file itself", &redactor, &text, &known);
    println!("measured all rules: {} KiB resident more than at the start", resident_kib().saturating_sub(start));
}
