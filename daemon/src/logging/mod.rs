//! Sets up the daemon's own log: journald if stderr is connected to it, else stderr. A line goes through a bounded queue
//! and a thread of its own, so that a log which is not read never delays the daemon.

mod journal;
mod queue;
mod stderr;

use queue::{Queue, Sink};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The time that a daemon which ends gives its last lines.
const END_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// The log of this process. Dropping it writes what is queued, within a bound.
pub struct DaemonLog {
    queue: Arc<Queue>,
    is_journal: bool,
}

/// Starts logging and the thread that writes. `RUST_LOG` is a level, or levels by target: `info,toold_daemon=debug`.
pub fn start(format: Option<Format>) -> io::Result<DaemonLog> {
    let (filter, problem) = match std::env::var("RUST_LOG") {
        Ok(text) if !text.is_empty() => match text.parse::<Targets>() {
            Ok(filter) => (filter, None),
            Err(e) => (Targets::new().with_default(tracing::Level::INFO), Some(format!("RUST_LOG: {e}"))),
        },
        Ok(_) | Err(_) => (Targets::new().with_default(tracing::Level::INFO), None),
    };
    let journal = if format.is_none() { journal::socket() } else { None };
    let is_journal = journal.is_some();
    let queue = Queue::start(journal.map_or_else(Sink::stderr, Sink::Journal))?;
    let lines = queue.clone();
    let text = tracing_subscriber::fmt::layer().with_writer(move || QueueWriter(lines.clone()));
    let layer = match format {
        None if is_journal => journal::JournalLayer::new(queue.clone()).boxed(),
        Some(Format::Json) => text.json().boxed(),
        Some(Format::Text) | None => text.with_ansi(colour()).boxed(),
    };
    // A second subscriber in one process happens only in tests.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
    // The default hook writes to stderr and waits for its reader.
    std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "panicked")));
    if let Some(problem) = problem {
        tracing::warn!(problem, "ignored");
    }
    Ok(DaemonLog { queue, is_journal })
}

impl DaemonLog {
    /// Limits the file that stderr is, if it is the one at `path`: beyond `max` bytes it becomes `path` with `.1` at its
    /// end, and a new one begins. A log that someone else redirected is theirs to rotate.
    pub fn limit_file(&self, path: &Path, max: u64) {
        self.queue.limit_file(path, max);
    }

    /// Adds a last line for a person: the reason of a failed start.
    pub fn fail(&self, message: &str) {
        if self.is_journal {
            self.queue.push(&journal::plain_entry(message));
        } else {
            self.queue.push(format!("toold: {message}\n").as_bytes());
        }
    }
}

impl Drop for DaemonLog {
    fn drop(&mut self) {
        self.queue.wait_until_written(END_TIMEOUT);
    }
}

/// The queue as the target of formatted lines. Each write is one whole line.
struct QueueWriter(Arc<Queue>);

impl Write for QueueWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn colour() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}
