//! The parts that all processes share to publish events: the journal, the gate for watch matches, buffers to read output, the
//! places for searches, and the signal of an end.

use super::pending::EndSignal;
use super::search_pool::SearchPool;
use super::watch_gate::WatchGate;
use crate::clock::{mono_ms, retention_ms, wall_ms};
use crate::events::{EventTime, Journal};
use crate::log::BufferPool;
use crate::redaction::Redaction;
use std::sync::Arc;
use std::time::Duration;

/// Delay before an event that could not be stored is tried again.
pub const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The destination of process events. One per daemon.
pub struct EventSink {
    pub journal: Arc<Journal>,
    pub watch_gate: WatchGate,
    pub buffers: BufferPool,
    pub searches: SearchPool,
    /// Reports ends to the scheduler of pending processes.
    pub ends: EndSignal,
    /// Hides secrets in events and results.
    pub redaction: Redaction,
}

impl EventSink {
    pub fn new(journal: Arc<Journal>, watch_gate: WatchGate, searches: SearchPool, redaction: Redaction) -> EventSink {
        let (buffers, ends) = (BufferPool::default(), EndSignal::default());
        EventSink { journal, watch_gate, buffers, searches, ends, redaction }
    }
}

/// Reads all clocks.
pub fn now() -> EventTime {
    EventTime { wall_ms: wall_ms(), mono_ms: mono_ms(), retention_ms: retention_ms() }
}
