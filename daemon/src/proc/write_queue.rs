//! The writes to one process's stdin: one at a time, piece by piece, each with a deadline that counts from its call. Pure:
//! time is an argument, and the frames to send are its result.
//!
//! A write that waits behind others is answered at its own deadline too. A named one may have been made before, so its
//! count is the shim's: the queue asks, and answers with the reply.

use super::handle::WriteResult;
use crate::store::shim_level;
use std::collections::VecDeque;
use tokio::sync::oneshot;
use tokio::time::Instant;
use toold_format::frame::{MAX_WRITE_LEN, ToShim, Wrote};

/// A reason to advance the writes.
pub enum WriteStep {
    /// A write was queued, or a connection is new.
    Next,
    /// A deadline has passed.
    Due,
    /// The shim's answer to a piece or to a question.
    Wrote { token: u64, done: u64, state: Wrote },
}

/// The write that the shim has a piece of.
struct Writing {
    write: Box<QueuedWrite>,
    at: u64,
    /// The token of the piece that was sent. None: a piece is to be sent.
    token: Option<u64>,
    stop: Stop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    No,
    ToSend,
    Sent,
}

/// A write, as its caller gave it.
#[derive(Debug)]
pub struct QueuedWrite {
    /// Zeros: it has no name.
    pub id: [u8; 16],
    pub data: Vec<u8>,
    pub deadline: Instant,
    pub reply: oneshot::Sender<WriteResult>,
}

/// A write whose deadline passed before its turn, and of which the shim is asked.
struct Overdue {
    write: Box<QueuedWrite>,
    token: Option<u64>,
}

pub struct WriteQueue {
    shim_level: u32,
    writing: Option<Writing>,
    queued: VecDeque<Box<QueuedWrite>>,
    overdue: Vec<Overdue>,
}

impl QueuedWrite {
    fn is_named(&self) -> bool {
        self.id != [0; 16]
    }

    fn answer(self, done: u64, state: Wrote) {
        // The caller may have given up.
        let _ = self.reply.send(WriteResult { done, state });
    }
}

impl WriteQueue {
    pub fn new(shim_level: u32) -> WriteQueue {
        WriteQueue { shim_level, writing: None, queued: VecDeque::new(), overdue: Vec::new() }
    }

    pub fn push(&mut self, write: Box<QueuedWrite>) {
        self.queued.push_back(write);
    }

    /// A shim of an early level cannot be asked: there, a named write waits for its turn.
    fn can_end_early(&self, write: &QueuedWrite) -> bool {
        !write.is_named() || shim_level::finds_writes(self.shim_level)
    }

    /// Returns the time of the next `on_deadline`.
    pub fn deadline(&self) -> Option<Instant> {
        let writing = self.writing.iter().filter(|w| w.stop == Stop::No).map(|w| w.write.deadline);
        let queued = self.queued.iter().filter(|write| self.can_end_early(write)).map(|write| write.deadline);
        writing.chain(queued).min()
    }

    /// Ends what is due at `now`. Returns true if a write was answered.
    pub fn on_deadline(&mut self, now: Instant) -> bool {
        if let Some(writing) = self.writing.as_mut().filter(|w| w.stop == Stop::No && w.write.deadline <= now) {
            writing.stop = Stop::ToSend;
        }
        let mut answered = false;
        for write in std::mem::take(&mut self.queued) {
            if write.deadline > now || !self.can_end_early(&write) {
                self.queued.push_back(write);
            } else if write.is_named() {
                self.overdue.push(Overdue { write, token: None });
            } else {
                write.answer(0, Wrote::Stopped);
                answered = true;
            }
        }
        answered
    }

    /// Takes the shim's answer. Returns true if a write was answered.
    pub fn on_wrote(&mut self, token: u64, done: u64, state: Wrote, now: Instant) -> bool {
        if let Some(at) = self.overdue.iter().position(|overdue| overdue.token == Some(token)) {
            let state = if state == Wrote::More { Wrote::Stopped } else { state };
            self.overdue.swap_remove(at).write.answer(done, state);
            return true;
        }
        let Some(writing) = self.writing.as_mut().filter(|writing| writing.token == Some(token)) else { return false };
        writing.at = done;
        if state == Wrote::More && writing.stop == Stop::No && now < writing.write.deadline {
            writing.token = None;
            return false;
        }
        let state = if state == Wrote::More { Wrote::Stopped } else { state };
        match self.writing.take() {
            Some(writing) => writing.write.answer(done, state),
            None => return false,
        }
        true
    }

    /// Returns the next frame to send. `token` is the last one that was used.
    pub fn next_frame(&mut self, token: &mut u64) -> Option<ToShim<'_>> {
        if let Some(overdue) = self.overdue.iter_mut().find(|overdue| overdue.token.is_none()) {
            *token += 1;
            overdue.token = Some(*token);
            return Some(ToShim::WriteFind { token: *token, id: overdue.write.id });
        }
        if self.writing.is_none() {
            let write = self.queued.pop_front()?;
            self.writing = Some(Writing { write, at: 0, token: None, stop: Stop::No });
        }
        let writing = self.writing.as_mut()?;
        match writing.token {
            None => {
                *token += 1;
                writing.token = Some(*token);
                let data = &writing.write.data;
                let rest = &data[usize::try_from(writing.at).unwrap_or(usize::MAX).min(data.len())..];
                Some(ToShim::Write {
                    token: *token,
                    id: writing.write.id,
                    offset: writing.at,
                    total: data.len() as u64,
                    data: &rest[..rest.len().min(MAX_WRITE_LEN)],
                })
            }
            Some(token) if writing.stop == Stop::ToSend => {
                writing.stop = Stop::Sent;
                Some(ToShim::WriteStop { token })
            }
            Some(_) => None,
        }
    }

    /// Forgets what was sent on a connection that broke. A named write is made again from its start, and the shim skips
    /// what it has written. How much of an unnamed one was written cannot be known: its caller gets no count.
    pub fn disconnect(&mut self) {
        self.overdue.iter_mut().for_each(|overdue| overdue.token = None);
        if let Some(writing) = self.writing.take().filter(|writing| writing.write.is_named()) {
            self.queued.push_front(writing.write);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    struct Rig {
        queue: WriteQueue,
        start: Instant,
        token: u64,
    }

    impl Rig {
        fn new(shim_level: u32) -> Rig {
            Rig { queue: WriteQueue::new(shim_level), start: Instant::now(), token: 0 }
        }

        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        fn push(&mut self, name: u8, len: usize, deadline_ms: u64) -> oneshot::Receiver<WriteResult> {
            let (reply, answer) = oneshot::channel();
            let (id, data, deadline) = ([name; 16], vec![b'x'; len], self.at(deadline_ms));
            self.queue.push(Box::new(QueuedWrite { id, data, deadline, reply }));
            answer
        }

        /// Sends everything: the kinds of the frames and the last token.
        fn sent(&mut self) -> String {
            let mut all = String::new();
            while let Some(frame) = self.queue.next_frame(&mut self.token) {
                all += match frame {
                    ToShim::Write { .. } => "write ",
                    ToShim::WriteStop { .. } => "stop ",
                    ToShim::WriteFind { .. } => "find ",
                    // The queue sends nothing else.
                    _ => "other ",
                };
            }
            all
        }
    }

    #[test]
    fn each_write_is_answered_at_its_own_deadline_with_its_count() {
        let mut rig = Rig::new(1);
        let (mut first, mut second, mut named) = (rig.push(0, 9, 300), rig.push(0, 9, 100), rig.push(7, 9, 200));
        assert_eq!(rig.sent(), "write ");
        assert_eq!(rig.queue.deadline(), Some(rig.at(100)));
        assert!(rig.queue.on_deadline(rig.at(100)));
        assert_eq!(second.try_recv(), Ok(WriteResult { done: 0, state: Wrote::Stopped }));
        assert_eq!((rig.queue.deadline(), rig.sent()), (Some(rig.at(200)), String::new()));
        assert!(!rig.queue.on_deadline(rig.at(200)));
        assert_eq!(rig.sent(), "find ");
        assert!(named.try_recv().is_err(), "its count is the shim's");
        assert!(rig.queue.on_wrote(2, 9, Wrote::Duplicate, rig.at(201)));
        assert_eq!(named.try_recv(), Ok(WriteResult { done: 9, state: Wrote::Duplicate }));
        assert!(!rig.queue.on_deadline(rig.at(300)));
        assert_eq!((rig.sent(), rig.queue.deadline()), ("stop ".into(), None));
        assert!(rig.queue.on_wrote(1, 4, Wrote::Stopped, rig.at(301)));
        assert_eq!(first.try_recv(), Ok(WriteResult { done: 4, state: Wrote::Stopped }));
    }

    #[test]
    fn a_named_write_waits_for_its_turn_at_a_shim_that_cannot_be_asked() {
        let mut rig = Rig::new(0);
        let (_first, mut named) = (rig.push(0, 9, 300), rig.push(7, 9, 100));
        assert_eq!((rig.sent(), rig.queue.deadline()), ("write ".into(), Some(rig.at(300))));
        rig.queue.on_deadline(rig.at(300));
        rig.sent();
        assert!(rig.queue.on_wrote(1, 4, Wrote::Stopped, rig.at(301)));
        assert_eq!(rig.sent(), "write ");
        assert!(rig.queue.on_wrote(2, 9, Wrote::Duplicate, rig.at(302)));
        assert_eq!(named.try_recv(), Ok(WriteResult { done: 9, state: Wrote::Duplicate }));
    }

    #[test]
    fn a_long_write_goes_piece_by_piece_and_after_a_broken_connection_from_its_start() {
        let mut rig = Rig::new(1);
        let mut named = rig.push(7, MAX_WRITE_LEN + 1, 300);
        assert_eq!(rig.sent(), "write ");
        assert!(!rig.queue.on_wrote(1, MAX_WRITE_LEN as u64, Wrote::More, rig.at(1)));
        assert_eq!(rig.sent(), "write ");
        rig.queue.disconnect();
        assert!(!rig.queue.on_wrote(2, 9, Wrote::Complete, rig.at(2)), "an answer of before");
        assert_eq!(rig.sent(), "write ");
        assert!(!rig.queue.on_wrote(3, MAX_WRITE_LEN as u64, Wrote::More, rig.at(3)));
        assert_eq!(rig.sent(), "write ");
        assert!(rig.queue.on_wrote(4, MAX_WRITE_LEN as u64 + 1, Wrote::Complete, rig.at(4)));
        assert_eq!(named.try_recv(), Ok(WriteResult { done: MAX_WRITE_LEN as u64 + 1, state: Wrote::Complete }));
    }
}
