//! The checkpoint of a process: which of its events were published, and how far its watch has scanned. It is the
//! daemon's own slot in the record. Pure.

use super::state::State;
use crate::watch::{Limiter, ScanPosition};
use toold_format::fnv1a;
use toold_format::slots::{CHECKPOINT_LEN, CheckpointSlot};
use toold_proto::event::EventType;

/// Everything about a process that only the daemon knows and that must outlive it. It goes into the journal with every
/// event of the process, so the next start repairs a crash between journal and slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// Number of the last event of this process.
    pub seq: u64,
    pub started: bool,
    pub exited: bool,
    pub closed: bool,
    pub completed: bool,
    /// The watch turned `notify` on.
    pub notify_enabled: bool,
    /// The watch has scanned everything that the program printed.
    pub scanned: bool,
    /// The restart policy gave up, and that was published.
    pub gave_up: bool,
    /// Refused calls that were published.
    pub denials: u8,
    /// The protected paths that it made were published.
    pub protected_published: bool,
    /// That its stage is ready was published.
    pub stage_ready: bool,
    /// That its script runs was published.
    pub script_started: bool,
    /// That its script has ended was published.
    pub script_finished: bool,
    pub exited_seq: u64,
    pub completed_seq: u64,
    pub limiter: Limiter,
    pub position: ScanPosition,
    /// End of the output at the last heartbeat, and the monotonic time of that heartbeat.
    pub heartbeat_cursor: u64,
    pub heartbeat_at_ms: u64,
    /// End of the output at the last `needs_input`, plus one.
    pub input_wait_end: u64,
    /// The time at which that wait was first seen, in milliseconds since 1970. 0: it is not known.
    pub input_wait_since_ms: u64,
    /// Bytes that were dropped from the log before the watch scanned them.
    pub unscanned_bytes: u64,
}

const STARTED: u32 = 1;
const EXITED: u32 = 1 << 1;
const CLOSED: u32 = 1 << 2;
const COMPLETED: u32 = 1 << 3;
const PROMOTED: u32 = 1 << 4;
const WATCHED: u32 = 1 << 5;
const STRUCK: u32 = 1 << 6;
const DISABLED: u32 = 1 << 7;
const GAVE_UP: u32 = 1 << 8;
/// Five bits: a number up to 31.
const DENIALS_SHIFT: u32 = 9;
const DENIALS_MASK: u32 = 31;
const PROTECTED_PUBLISHED: u32 = 1 << 14;
const STAGE_READY: u32 = 1 << 15;
const SCRIPT_STARTED: u32 = 1 << 16;
const SCRIPT_FINISHED: u32 = 1 << 17;
/// Set in every written slot, so that it is never all zeros.
const WRITTEN: u32 = 1 << 31;

/// Length of a slot without its checksum.
const FACTS: usize = CHECKPOINT_LEN - 8;

impl Checkpoint {
    /// Returns the checkpoint of a process from before there was a journal: its past events are not published any more.
    pub fn for_legacy_record(state: &State) -> Checkpoint {
        let ended = state.has_ended();
        Checkpoint {
            started: true,
            exited: ended,
            closed: ended,
            completed: ended,
            scanned: ended,
            ..Checkpoint::default()
        }
    }

    /// Returns the checkpoint of a process whose own is damaged and of which the journal has nothing any more: an event
    /// that is not published again is reported as damage, one that is published twice as new.
    pub fn all_published(state: &State) -> Checkpoint {
        let ended = state.has_ended();
        Checkpoint {
            started: true,
            exited: ended,
            closed: state.closed,
            stage_ready: state.is_final(),
            script_started: true,
            script_finished: ended,
            completed: ended,
            scanned: ended,
            position: ScanPosition::at(state.progress.counts.end),
            ..Checkpoint::default()
        }
    }

    /// Marks an event of this kind as published with this number.
    pub fn mark_published(&mut self, kind: EventType, seq: u64) {
        self.seq = seq;
        match kind {
            EventType::Started => self.started = true,
            EventType::Exited => {
                self.exited = true;
                self.exited_seq = seq;
            }
            EventType::Closed => self.closed = true,
            EventType::Completion => {
                self.completed = true;
                self.completed_seq = seq;
            }
            EventType::RestartGaveUp => self.gave_up = true,
            EventType::StageReady => self.stage_ready = true,
            EventType::ScriptStarted => self.script_started = true,
            EventType::ScriptFinished => self.script_finished = true,
            // The publisher of any other event changes the fields itself.
            _ => {}
        }
    }

    /// Stores the position up to which the watch has decided. `scanned`: nothing is left to scan.
    pub fn set_scanned(&mut self, position: ScanPosition, scanned: bool) {
        self.position = position;
        self.scanned = scanned;
    }

    /// Merges the end of the journal: `newest` is the last event of this process there, `last` the last event of all.
    /// An event in the journal counts as published, whether the slot has it or not. One that the journal lost at its end,
    /// to a power cut or damage, is published again; events before it are not.
    pub fn merge_journal(mut self, newest: Option<&(u64, Vec<u8>)>, last: u64) -> Checkpoint {
        if let Some((seq, state)) = newest
            && *seq > self.seq
            && let Some(ahead) = Checkpoint::from_state(state)
        {
            return Checkpoint { seq: *seq, ..ahead }.with_numbers(*seq);
        }
        if self.seq > last {
            let found = newest.and_then(|(_, state)| Checkpoint::from_state(state));
            let is_there = |seq: u64| seq != 0 && seq <= last;
            self.exited &= is_there(self.exited_seq);
            self.completed &= is_there(self.completed_seq);
            // `closed` has no number. It comes after `exited`; the state of a later event shows whether it was published.
            self.closed &= found.map_or(self.exited, |found| found.closed);
            // It is the last one, so it is among those that were lost.
            self.stage_ready &= found.is_some_and(|found| found.stage_ready);
            self.script_started &= found.is_some_and(|found| found.script_started);
            self.script_finished &= found.is_some_and(|found| found.script_finished);
        }
        self
    }

    /// Fills in an event's own number: the state in the journal was made before the number was known.
    fn with_numbers(mut self, seq: u64) -> Checkpoint {
        if self.exited && self.exited_seq == 0 {
            self.exited_seq = seq;
        }
        if self.completed && self.completed_seq == 0 {
            self.completed_seq = seq;
        }
        self
    }

    /// Encodes the checkpoint for the journal, as it is after an event of this kind, without trailing zeros.
    pub fn state(mut self, kind: EventType) -> Vec<u8> {
        let (exited, completed) = (self.exited_seq, self.completed_seq);
        self.mark_published(kind, 0);
        self.exited_seq = exited;
        self.completed_seq = completed;
        let mut bytes = self.facts().to_vec();
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        bytes.truncate(used);
        bytes
    }

    fn from_state(state: &[u8]) -> Option<Checkpoint> {
        let mut facts = [0; FACTS];
        facts.get_mut(..state.len())?.copy_from_slice(state);
        Checkpoint::from_facts(&facts)
    }

    pub fn slot(&self) -> CheckpointSlot {
        let (facts, mut slot) = (self.facts(), [0; CHECKPOINT_LEN]);
        slot[..FACTS].copy_from_slice(&facts);
        slot[FACTS..].copy_from_slice(&fnv1a(&facts).to_le_bytes());
        slot
    }

    /// Returns None for a slot that was never written or only in part.
    pub fn read(slot: &CheckpointSlot) -> Option<Checkpoint> {
        let (facts, check) = slot.split_first_chunk::<FACTS>()?;
        if fnv1a(facts).to_le_bytes() != check {
            return None;
        }
        Checkpoint::from_facts(facts)
    }

    fn facts(&self) -> [u8; FACTS] {
        let flags = [
            (self.started, STARTED),
            (self.exited, EXITED),
            (self.closed, CLOSED),
            (self.completed, COMPLETED),
            (self.notify_enabled, PROMOTED),
            (self.scanned, WATCHED),
            (self.limiter.struck, STRUCK),
            (self.limiter.disabled, DISABLED),
            (self.gave_up, GAVE_UP),
            (self.protected_published, PROTECTED_PUBLISHED),
            (self.stage_ready, STAGE_READY),
            (self.script_started, SCRIPT_STARTED),
            (self.script_finished, SCRIPT_FINISHED),
        ];
        let flags = flags.iter().filter(|(on, _)| *on).fold(WRITTEN, |all, (_, flag)| all | flag);
        let flags = flags | u32::from(self.denials) << DENIALS_SHIFT;
        let limiter = &self.limiter;
        let mut bytes = Vec::with_capacity(FACTS);
        bytes.extend(flags.to_le_bytes());
        bytes.extend(limiter.strikes.to_le_bytes());
        // Fields that most processes have come first: the rest is zeros, and trailing zeros take no space in the
        // journal.
        let numbers = [
            self.seq,
            self.exited_seq,
            self.completed_seq,
            limiter.quiet_until,
            limiter.pending,
            limiter.suppressed,
            limiter.hits,
            self.input_wait_end,
            self.heartbeat_cursor,
            self.heartbeat_at_ms,
            self.unscanned_bytes,
        ];
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(self.position.to_bytes());
        bytes.extend(self.input_wait_since_ms.to_le_bytes());
        bytes.resize(FACTS, 0);
        let mut facts = [0; FACTS];
        facts.copy_from_slice(&bytes);
        facts
    }

    fn from_facts(facts: &[u8; FACTS]) -> Option<Checkpoint> {
        let (flags, rest) = facts.split_first_chunk::<4>()?;
        let (strikes, rest) = rest.split_first_chunk::<4>()?;
        let flags = u32::from_le_bytes(*flags);
        if flags & WRITTEN == 0 {
            return None;
        }
        let (numbers, rest) = rest.split_at_checked(88)?;
        let (numbers, _) = numbers.as_chunks::<8>();
        let number = |at: usize| numbers.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let on = |flag: u32| flags & flag != 0;
        let (position, rest) = rest.split_first_chunk()?;
        Some(Checkpoint {
            seq: number(0),
            started: on(STARTED),
            exited: on(EXITED),
            closed: on(CLOSED),
            completed: on(COMPLETED),
            notify_enabled: on(PROMOTED),
            scanned: on(WATCHED),
            gave_up: on(GAVE_UP),
            denials: (flags >> DENIALS_SHIFT & DENIALS_MASK) as u8,
            protected_published: on(PROTECTED_PUBLISHED),
            stage_ready: on(STAGE_READY),
            script_started: on(SCRIPT_STARTED),
            script_finished: on(SCRIPT_FINISHED),
            exited_seq: number(1),
            completed_seq: number(2),
            limiter: Limiter {
                quiet_until: number(3),
                strikes: u32::from_le_bytes(*strikes),
                struck: on(STRUCK),
                pending: number(4),
                suppressed: number(5),
                hits: number(6),
                disabled: on(DISABLED),
            },
            input_wait_end: number(7),
            heartbeat_cursor: number(8),
            heartbeat_at_ms: number(9),
            unscanned_bytes: number(10),
            input_wait_since_ms: u64::from_le_bytes(*rest.first_chunk()?),
            position: ScanPosition::from_bytes(position)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Checkpoint {
        Checkpoint {
            seq: 9,
            started: true,
            exited: true,
            closed: true,
            completed: true,
            notify_enabled: true,
            scanned: true,
            gave_up: true,
            denials: 20,
            protected_published: true,
            stage_ready: true,
            script_started: true,
            script_finished: true,
            exited_seq: 7,
            completed_seq: 9,
            limiter: Limiter {
                quiet_until: 1,
                strikes: 2,
                struck: true,
                pending: 3,
                suppressed: 4,
                hits: 5,
                disabled: true,
            },
            position: ScanPosition::at(77),
            heartbeat_cursor: 6,
            heartbeat_at_ms: 7,
            input_wait_end: 8,
            input_wait_since_ms: 10,
            unscanned_bytes: 9,
        }
    }

    #[test]
    fn a_slot_reads_back_and_one_flipped_bit_empties_it() {
        for checkpoint in [Checkpoint::default(), full()] {
            assert_eq!(Checkpoint::read(&checkpoint.slot()), Some(checkpoint));
        }
        assert_eq!(Checkpoint::read(&[0; CHECKPOINT_LEN]), None);
        for bit in 0..CHECKPOINT_LEN * 8 {
            let mut slot = full().slot();
            slot[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Checkpoint::read(&slot), None, "bit {bit}");
        }
    }

    #[test]
    fn a_newer_state_in_the_journal_wins_and_is_short() {
        let stored = Checkpoint { seq: 4, started: true, ..Checkpoint::default() };
        let newer = (5, stored.state(EventType::Exited));
        assert!(newer.1.len() < 32, "{}", newer.1.len());
        let merged = stored.merge_journal(Some(&newer), 5);
        assert_eq!(merged, Checkpoint { seq: 5, exited: true, exited_seq: 5, ..stored });
        assert_eq!(merged.merge_journal(Some(&newer), 5), merged);
        assert_eq!(full().merge_journal(Some(&(9, Vec::new())), 9), full());
    }

    #[test]
    fn an_event_that_a_power_cut_took_from_the_journal_is_published_again() {
        let lost = full().merge_journal(None, 3);
        assert!(lost.started && !lost.exited && !lost.closed && !lost.completed);
    }

    #[test]
    fn only_the_events_after_the_end_of_the_journal_are_published_again() {
        // The broken code published the exit again although the journal had it.
        let part = full().merge_journal(None, 7);
        assert!(part.exited && part.closed && !part.completed);
        let exited = Checkpoint { closed: false, completed: false, ..full() };
        let newest = (7, Checkpoint { seq: 4, exited: false, ..exited }.state(EventType::Exited));
        let part = full().merge_journal(Some(&newest), 7);
        assert!(part.exited && !part.closed && !part.completed);
    }
}
