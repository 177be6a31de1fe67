//! Tests of the slots: each reads back, and each change of a bit is noticed.

use super::*;

#[test]
fn every_slot_reads_back_and_one_flipped_bit_empties_it() {
    let head = Head { spec_len: 7, spec_checksum: 9, nonce: [3; 16], boot: [4; 16], is_seeded: true, is_pending: true };
    let launch =
        Launch { stage: Stage::Failed, shim_pid: 5, pid: 6, ticks: 7, step: 3, errno: 2, at_ms: 8, stdin_inode: 9 };
    let exit = Exit {
        wait_status: 9,
        cause: Cause::Timeout,
        oom: true,
        by_uid: 1000,
        by_pid: 12,
        at_ms: 13,
        end: 14,
        cpu_us: 15,
        max_rss_kib: 16,
        oom_kills: 17,
    };
    let counts = Counts {
        end: 1,
        out_newlines: 2,
        err_newlines: 3,
        dropped: 4,
        unstored: 5,
        out_open: true,
        err_open: false,
        last_open: true,
    };
    let sums = LogSums {
        start: 1,
        end: 2,
        idx_len: 3,
        last: SegmentSums { log: 4, idx: 5 },
        head: SegmentSums { log: 6, idx: 7 },
    };
    let progress = Progress {
        counts,
        closed: true,
        held_back: true,
        stdin_closed: true,
        stopped: true,
        rows: 24,
        cols: 80,
        sums: Some(sums),
    };
    assert_eq!(Head::read(&head.slot()), Some(head));
    assert_eq!(Launch::read(&launch.slot()), Some(launch));
    assert_eq!(Exit::read(&exit.slot()), Some(exit));
    assert_eq!(Progress::read(&progress.slot()), Some(progress));
    assert_eq!(read_closed(&closed_slot(77)), Some(77));
    for bit in 0..SLOT_LEN * 8 {
        let mut slot = exit.slot();
        slot[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Exit::read(&slot), None, "bit {bit}");
    }
    assert_eq!(Exit::read(&[0; SLOT_LEN]), None);
}

#[test]
fn only_a_whole_note_cancels_a_start() {
    let note = cancel_slot(77);
    assert!(is_canceled(&note) && !is_canceled(&[0; SLOT_LEN]));
    for bit in 0..SLOT_LEN * 8 {
        let mut slot = note;
        slot[bit / 8] ^= 1 << (bit % 8);
        assert!(!is_canceled(&slot), "bit {bit}");
    }
}

#[test]
fn an_empty_an_unused_a_used_and_a_damaged_launch_slot_differ() {
    let launch =
        Launch { stage: Stage::Running, shim_pid: 5, pid: 6, ticks: 7, step: 0, errno: 0, at_ms: 8, stdin_inode: 0 };
    assert_eq!(LaunchSlot::read(&[0; SLOT_LEN]), LaunchSlot::Empty);
    assert_eq!(LaunchSlot::read(&LaunchSlot::not_launched(0)), LaunchSlot::NotLaunched);
    assert_eq!(Launch::read(&LaunchSlot::not_launched(9)), None, "an earlier version reads: not started");
    assert_eq!(LaunchSlot::read(&launch.slot()), LaunchSlot::Launched(launch));
    // A flipped bit read as "never started", and the record was removed.
    for written in [launch.slot(), LaunchSlot::not_launched(9)] {
        for bit in 0..SLOT_LEN * 8 {
            let mut slot = written;
            slot[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(LaunchSlot::read(&slot), LaunchSlot::Unknown, "bit {bit}");
        }
    }
}

#[test]
fn the_head_of_an_earlier_version_has_no_seeded_slots() {
    let head =
        Head { spec_len: 7, spec_checksum: 9, nonce: [3; 16], boot: [4; 16], is_seeded: false, is_pending: false };
    let slot = head.slot();
    assert_eq!(slot[56..SLOT_LEN - 8], [0; 32], "bytes of an earlier version");
    assert_eq!(Head::read(&slot), Some(head));
}
