//! The bounded queue between the daemon and its log. Adding a line never waits; a thread writes, and may wait for ever.

use super::journal;
use super::stderr::StderrSink;
use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes of lines that wait for a reader of the log. Further lines are dropped and counted.
const MAX_QUEUED_BYTES: usize = 1 << 20;
/// The stack of the writing thread, which formats one line at most.
const STACK_BYTES: usize = 256 * 1024;

/// The target of the lines.
pub enum Sink {
    Stderr(StderrSink),
    /// One entry is one datagram.
    Journal(UnixDatagram),
}

impl Sink {
    pub fn stderr() -> Sink {
        Sink::Stderr(StderrSink::default())
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        match self {
            Sink::Stderr(stderr) => stderr.write(line),
            Sink::Journal(socket) => journal::send(socket, line),
        }
    }
}

/// A file, and the bytes that it may have.
type Limit = (Box<Path>, u64);

#[derive(Default)]
struct State {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// The lines that were dropped and not reported yet.
    dropped: u64,
    is_writing: bool,
    /// A limit for the file, until the thread takes it.
    new_limit: Option<Limit>,
}

#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    /// Creates the queue and the thread that writes.
    pub fn start(sink: Sink) -> io::Result<Arc<Queue>> {
        let queue = Arc::new(Queue::default());
        let own = queue.clone();
        let thread = std::thread::Builder::new().name("log".into()).stack_size(STACK_BYTES);
        thread.spawn(move || own.run(sink))?;
        Ok(queue)
    }

    /// Adds a line, or counts it as dropped.
    pub fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.bytes + line.len() > MAX_QUEUED_BYTES {
            state.dropped += 1;
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line.into());
        drop(state);
        self.changed.notify_all();
    }

    pub fn limit_file(&self, path: &Path, max: u64) {
        self.lock().new_limit = Some((path.into(), max));
    }

    /// Waits until every line is written, at most for this time.
    pub fn wait_until_written(&self, timeout: Duration) {
        let until = Instant::now() + timeout;
        let mut state = self.lock();
        while state.is_writing || !state.lines.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn run(&self, mut sink: Sink) {
        loop {
            let (line, limit) = self.next_line();
            if let (Sink::Stderr(stderr), Some((path, max))) = (&mut sink, limit) {
                stderr.limit(&path, max);
            }
            let written = sink.write(&line).is_ok();
            if let Some(dropped) = self.end_line(written) {
                // Goes through this queue, which has room now, in the format of every other line.
                tracing::warn!(dropped, "lines of this log were dropped: it was not read, or could not be written");
                self.lock().is_writing = false;
            }
        }
    }

    /// Waits for a line. It counts as being written from here to `end_line`.
    fn next_line(&self) -> (Box<[u8]>, Option<Limit>) {
        let mut state = self.lock();
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.bytes -= line.len();
                state.is_writing = true;
                return (line, state.new_limit.take());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the number of dropped lines once, when a line was written and none waits. After a failed write nothing is
    /// reported: the report would fail too, and be counted, and so on.
    fn end_line(&self, written: bool) -> Option<u64> {
        let mut state = self.lock();
        state.dropped += u64::from(!written);
        let drained = written && state.lines.is_empty() && state.dropped > 0;
        // Until the report is queued, not everything is written.
        state.is_writing = drained;
        let report = drained.then(|| std::mem::take(&mut state.dropped));
        drop(state);
        self.changed.notify_all();
        report
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while it was held cannot have left half a change that matters to a log.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_over_the_bound_are_counted_and_reported_once_when_the_queue_is_empty() {
        let queue = Queue::default();
        let line = vec![b'x'; MAX_QUEUED_BYTES / 2];
        for _ in 0..5 {
            queue.push(&line);
        }
        assert_eq!(queue.lock().lines.len(), 2);
        drop(queue.next_line());
        assert_eq!(queue.end_line(true), None, "a line still waits");
        drop(queue.next_line());
        assert_eq!(queue.end_line(false), None, "nothing can be written");
        queue.push(b"y");
        drop(queue.next_line());
        assert_eq!(queue.end_line(true), Some(4));
        queue.push(b"z");
        drop(queue.next_line());
        assert_eq!(queue.end_line(true), None);
    }
}
