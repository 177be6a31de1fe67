//! `--ready-…`: the condition that makes a process ready, and its timeout.

use crate::args;
use crate::cmd::wait::code_of;
use crate::error::{DONE, FAILED, TIMED_OUT};
use crate::render::{poll, time};
use clap::Args;
use std::time::Duration;
use toold_proto::params::Status;
use toold_proto::pattern::Pattern;
use toold_proto::process::Process;
use toold_proto::results;
use toold_proto::until::Until;

/// The heading of these options in the help.
const READY: &str = "Readiness";
/// The daemon's default timeout.
const DEFAULT_TIMEOUT_MS: u64 = 60_000;

#[derive(Debug, Default, Args)]
pub struct ReadyOptions {
    #[command(flatten)]
    when: ReadyWhen,
    /// Give up on that after this long; it keeps running [default: 1m]
    #[arg(long, help_heading = READY, value_name = "TIME", requires = "ReadyWhen", value_parser = args::duration_ms)]
    ready_timeout: Option<u64>,
}

#[derive(Debug, Default, Args)]
#[group(multiple = false)]
struct ReadyWhen {
    /// Wait until a line of its output has this text
    #[arg(long, help_heading = READY, value_name = "TEXT", allow_hyphen_values = true)]
    ready_match: Option<String>,
    /// Wait until a line of its output matches this regular expression
    #[arg(long, help_heading = READY, value_name = "RE", allow_hyphen_values = true)]
    ready_re: Option<String>,
    /// Wait until it listens on this TCP port
    #[arg(long, help_heading = READY, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    ready_port: Option<u16>,
    /// Wait until it has printed nothing for this long
    #[arg(long, help_heading = READY, value_name = "TIME", value_parser = args::duration_ms)]
    ready_quiet: Option<u64>,
}

/// The condition, and its timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    pub until: Until,
    /// As it was given; the daemon has a default.
    pub timeout_ms: Option<u64>,
}

impl Readiness {
    pub fn time(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS))
    }
}

impl ReadyOptions {
    /// Returns None when no readiness was requested.
    pub fn readiness(self) -> Option<Readiness> {
        let ReadyWhen { ready_match, ready_re, ready_port, ready_quiet } = self.when;
        let matching = ready_match.map(Pattern::Text).or(ready_re.map(Pattern::Regex)).map(Until::Match);
        let until = matching.or(ready_port.map(Until::Port)).or(ready_quiet.map(Until::Quiet))?;
        Some(Readiness { until, timeout_ms: self.ready_timeout })
    }
}

/// Returns the exit code. An end before it was ready is a failure, also an end with 0.
pub fn exit_code(ready: results::Ready, status: Status, exit_code: Option<i32>) -> u8 {
    match ready {
        results::Ready::Ready => DONE,
        results::Ready::Timeout => TIMED_OUT,
        results::Ready::Exited => match code_of(status, exit_code) {
            DONE => FAILED,
            code => code,
        },
    }
}

/// Returns a sentence about the outcome.
pub fn sentence(ready: results::Ready, process: &Process, asked: &Readiness) -> String {
    match ready {
        results::Ready::Ready => format!("{} is ready", process.id),
        results::Ready::Timeout => {
            let after = time::exact(asked.time().as_millis() as u64);
            format!("{} is not ready after {after}; it keeps running", process.id)
        }
        results::Ready::Exited => format!("{} before it was ready", poll::summary(process)),
    }
}
