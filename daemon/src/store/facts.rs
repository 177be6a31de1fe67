//! The slots of a record as they were read.

use super::dir_pool;
use std::io;
use toold_format::slots::{
    self, CHECKPOINT_LEN, CheckpointSlot, Exit, Head, Launch, LaunchSlot, PAGE_LEN, Progress, SLOT_LEN, Slot,
    SlotCondition,
};

/// The content of all slots.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// None: the head is damaged, and with it the name of the spec.
    pub head: Option<Head>,
    pub launch: Option<Launch>,
    pub exit: Option<Exit>,
    pub closed_ms: Option<u64>,
    pub progress: Option<Progress>,
    /// Raw: its reader checks whether it is complete.
    pub checkpoint: CheckpointSlot,
    pub damaged: DamagedSlots,
    /// Slots that were damaged once, and that a daemon wrote again.
    pub repaired: DamagedSlots,
    /// The slots prove that nothing was ever started.
    pub is_unlaunched: bool,
}

/// The slots that once had a content and are not readable now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DamagedSlots {
    pub launch: bool,
    pub exit: bool,
    pub closed: bool,
    pub counts: bool,
    pub checkpoint: bool,
}

impl DamagedSlots {
    const ALL: DamagedSlots = DamagedSlots { launch: true, exit: true, closed: true, counts: true, checkpoint: true };

    pub fn any(self) -> bool {
        self != DamagedSlots::default()
    }

    pub fn or(self, other: DamagedSlots) -> DamagedSlots {
        DamagedSlots::from_bits(self.bits() | other.bits())
    }

    pub(super) fn bits(self) -> u32 {
        let all = [self.launch, self.exit, self.closed, self.counts, self.checkpoint];
        all.iter().enumerate().fold(0, |bits, (i, is_damaged)| bits | u32::from(*is_damaged) << i)
    }

    fn from_bits(bits: u32) -> DamagedSlots {
        let on = |i: u32| bits & 1 << i != 0;
        DamagedSlots { launch: on(0), exit: on(1), closed: on(2), counts: on(3), checkpoint: on(4) }
    }
}

/// The beginning of a record, as one read returned it: all slots, and the spec if it is short.
pub struct RecordStart {
    bytes: [u8; 2 * PAGE_LEN],
    len: usize,
}

impl RecordStart {
    pub(super) fn read(fill: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<RecordStart> {
        let mut bytes = [0u8; 2 * PAGE_LEN];
        let len = fill(&mut bytes)?;
        Ok(RecordStart { bytes, len })
    }

    /// Returns the bytes that the file has.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns true for a record that was created and never written: nothing but zeros, or the mark of an unused one.
    pub fn is_blank(&self) -> bool {
        dir_pool::is_unused(self.bytes())
    }

    pub(super) fn facts(&self) -> Facts {
        let facts = facts_of(&self.bytes);
        match self.len < PAGE_LEN {
            // Zeros that the file does not have prove nothing.
            true => Facts { damaged: DamagedSlots::ALL, is_unlaunched: false, ..facts },
            false => facts,
        }
    }
}

/// Returns the content of the slots of a page.
fn facts_of(page: &[u8]) -> Facts {
    let slot = |at: u64| -> Slot {
        let mut slot = [0u8; SLOT_LEN];
        slot.copy_from_slice(&page[at as usize..at as usize + SLOT_LEN]);
        slot
    };
    let mut checkpoint = [0u8; CHECKPOINT_LEN];
    checkpoint.copy_from_slice(&page[slots::CHECKPOINT_AT as usize..slots::CHECKPOINT_AT as usize + CHECKPOINT_LEN]);
    let head = Head::read(&slot(slots::HEAD_AT));
    let launch = LaunchSlot::read(&slot(slots::LAUNCH_AT));
    let [exit, closed, counts, checkpoint_is] =
        [&slot(slots::EXIT_AT)[..], &slot(slots::CLOSED_AT), &slot(slots::COUNTS_AT), &checkpoint]
            .map(SlotCondition::of);
    let is_damaged = |condition| condition == SlotCondition::Damaged;
    // These slots are written with every new record.
    let is_seeded = head.is_some_and(|head| head.is_seeded);
    let is_lost = |condition| condition != SlotCondition::Written && is_seeded;
    let damaged = DamagedSlots {
        launch: launch == LaunchSlot::Unknown || (launch == LaunchSlot::Empty && is_seeded),
        exit: is_damaged(exit),
        closed: is_damaged(closed),
        counts: is_damaged(counts) || is_lost(counts),
        checkpoint: is_damaged(checkpoint_is) || is_lost(checkpoint_is),
    };
    let progress = Progress::read(&slot(slots::COUNTS_AT));
    let is_silent = progress.is_some_and(|progress| progress.counts.end == 0);
    let is_unlaunched = exit == SlotCondition::Empty
        && match launch {
            LaunchSlot::NotLaunched => true,
            // A record of an earlier version, where zeros may also be damage: no other slot may contradict them.
            LaunchSlot::Empty if !damaged.launch => {
                [closed, checkpoint_is].iter().all(|is| *is == SlotCondition::Empty) && is_silent
            }
            LaunchSlot::Empty | LaunchSlot::Launched(_) | LaunchSlot::Unknown => false,
        };
    Facts {
        head,
        launch: match launch {
            LaunchSlot::Launched(launch) => Some(launch),
            LaunchSlot::Empty | LaunchSlot::NotLaunched | LaunchSlot::Unknown => None,
        },
        exit: Exit::read(&slot(slots::EXIT_AT)),
        closed_ms: slots::read_closed(&slot(slots::CLOSED_AT)),
        progress,
        checkpoint,
        damaged,
        repaired: DamagedSlots::from_bits(slots::read_damage_note(&slot(slots::DAMAGE_NOTE_AT))),
        is_unlaunched,
    }
}
