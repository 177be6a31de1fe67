//! Sets up the daemon's own log: journald if stderr is connected to it, else stderr.

use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// Starts logging. `RUST_LOG` is a level, or levels by target: `info,toold_daemon=debug`.
pub fn start(format: Option<Format>) {
    let (filter, problem) = match std::env::var("RUST_LOG") {
        Ok(text) if !text.is_empty() => match text.parse::<Targets>() {
            Ok(filter) => (filter, None),
            Err(e) => (Targets::new().with_default(tracing::Level::INFO), Some(format!("RUST_LOG: {e}"))),
        },
        Ok(_) | Err(_) => (Targets::new().with_default(tracing::Level::INFO), None),
    };
    let to_stderr = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = match (format, journal()) {
        (None, Some(journal)) => journal.boxed(),
        (Some(Format::Json), _) => to_stderr.json().boxed(),
        (Some(Format::Text) | None, _) => to_stderr.with_ansi(colour()).boxed(),
    };
    // A second subscriber in one process happens only in tests.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
    if let Some(problem) = problem {
        tracing::warn!(problem, "ignored");
    }
}

fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Returns the journald layer if our stderr is connected to the journal.
fn journal() -> Option<tracing_journald::Layer> {
    let stream = std::env::var("JOURNAL_STREAM").ok()?;
    let stderr = std::fs::metadata("/proc/self/fd/2").ok()?;
    let ours = stream == format!("{}:{}", stderr.dev(), stderr.ino());
    if ours { tracing_journald::layer().ok() } else { None }
}
