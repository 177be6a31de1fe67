//! Entries in journald's native format. They are built here and sent by the queue's thread: a journald that is stopped
//! makes a sender wait.

use super::queue::Queue;
use std::fmt::{Debug, Write};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";
/// The most bytes of one value, so that an entry fits into a datagram.
const MAX_VALUE_LEN: usize = 16 * 1024;

/// Returns a socket for the journal if our stderr is connected to it.
pub fn socket() -> Option<UnixDatagram> {
    let stream = std::env::var("JOURNAL_STREAM").ok()?;
    let stderr = std::fs::metadata("/proc/self/fd/2").ok()?;
    if stream != format!("{}:{}", stderr.dev(), stderr.ino()) {
        return None;
    }
    let socket = UnixDatagram::unbound().ok()?;
    // An empty entry is ignored; without a journal it is an error.
    send(&socket, &[]).ok()?;
    Some(socket)
}

/// Sends an entry, by the path each time: a journald that was restarted has a new socket there.
pub fn send(socket: &UnixDatagram, entry: &[u8]) -> io::Result<()> {
    socket.send_to(entry, JOURNAL_SOCKET).map(drop)
}

/// Builds an entry without fields.
pub fn plain_entry(message: &str) -> Vec<u8> {
    let mut entry = Entry::new(Level::ERROR);
    entry.put("MESSAGE", message);
    entry.0
}

/// Queues each event as an entry, its fields as `F_NAME`.
pub struct JournalLayer {
    queue: Arc<Queue>,
}

impl JournalLayer {
    pub fn new(queue: Arc<Queue>) -> JournalLayer {
        JournalLayer { queue }
    }
}

impl<S: Subscriber> Layer<S> for JournalLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let about = event.metadata();
        let mut entry = Entry::new(*about.level());
        entry.put("TARGET", about.target());
        about.file().into_iter().for_each(|file| entry.put("CODE_FILE", file));
        about.line().into_iter().for_each(|line| entry.put("CODE_LINE", &line.to_string()));
        event.record(&mut entry);
        self.queue.push(&entry.0);
    }
}

/// An entry that is being built: name, newline, length, value, newline for each field.
struct Entry(Vec<u8>);

impl Entry {
    fn new(level: Level) -> Entry {
        let priority = match level {
            Level::ERROR => "3",
            Level::WARN => "4",
            Level::INFO => "5",
            Level::DEBUG => "6",
            Level::TRACE => "7",
        };
        let mut entry = Entry(Vec::with_capacity(256));
        entry.put("PRIORITY", priority);
        entry.put("SYSLOG_IDENTIFIER", "toold");
        entry
    }

    fn put(&mut self, name: &str, value: &str) {
        let value = &value.as_bytes()[..value.len().min(MAX_VALUE_LEN)];
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(b'\n');
        self.0.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.0.extend_from_slice(value);
        self.0.push(b'\n');
    }
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.put("MESSAGE", value),
            // The journal takes upper-case letters, digits and underscores.
            name => self.put(&format!("F_{}", name.to_ascii_uppercase().replace(['.', '#'], "_")), value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_each_field_with_its_length_and_a_long_value_is_cut() {
        let entry = plain_entry("two\nlines");
        let expected = b"PRIORITY\n\x01\0\0\0\0\0\0\x003\nSYSLOG_IDENTIFIER\n\x05\0\0\0\0\0\0\0toold\nMESSAGE\n\x09\0\0\0\0\0\0\0two\nlines\n";
        assert_eq!(entry, expected);
        assert!(plain_entry(&"x".repeat(1 << 20)).len() < 17 * 1024);
    }
}
