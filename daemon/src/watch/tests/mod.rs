//! Tests watches with single cases and against models that keep everything.

mod breaker;
mod limiter;
mod long_lines;
mod model;
mod patterns;
mod scan;
mod throughput;

use super::{Patterns, ScanPosition, Scanner};
use std::sync::Arc;
use toold_proto::pattern::Pattern;

/// Parses a pattern: a text, or with a leading `/` a regular expression.
fn pattern(written: &str) -> Pattern {
    match written.strip_prefix('/') {
        Some(regex) => Pattern::Regex(regex.into()),
        None => Pattern::Text(written.into()),
    }
}

fn patterns(written: &[&str]) -> Arc<Patterns> {
    let list: Vec<Pattern> = written.iter().map(|written| pattern(written)).collect();
    Arc::new(Patterns::new(&list).expect("valid patterns"))
}

fn scanner(written: &[&str]) -> Scanner {
    Scanner::new(patterns(written), ScanPosition::default())
}
