//! Bytes that the writer keeps for a reader, whatever the cap.

use super::*;

/// A writer that holds for a reader, with everything that was written and read.
struct HeldWriter {
    dir: tempfile::TempDir,
    writer: LogWriter,
    cap: u64,
    bytes: Vec<u8>,
    read_to: usize,
}

impl HeldWriter {
    fn new(cap: u64) -> HeldWriter {
        let dir = temporary();
        let fd = File::open(dir.path()).expect("the directory opens");
        let mut writer = LogWriter::new(fd.into(), cap);
        writer.keep_from(0);
        HeldWriter { dir, writer, cap, bytes: Vec::new(), read_to: 0 }
    }

    /// Appends all bytes; the reader reads `pace` of them whenever no more fit.
    fn append(&mut self, step: &Step, pace: usize) {
        let mut rest = &step.bytes[..];
        while !rest.is_empty() {
            let taken = self.writer.append(step.stream, rest, 0);
            self.bytes.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            self.check();
            if !rest.is_empty() {
                assert!(taken > 0 || self.read_to < self.bytes.len(), "nothing is unread, and nothing fits");
                self.read_to = (self.read_to + pace).min(self.bytes.len());
                self.writer.keep_from(self.read_to as u64);
            }
        }
    }

    /// Checks that all unread bytes are there, and no more than the cap.
    fn check(&self) {
        let mut next = self.read_to;
        for (start, content) in segments(self.dir.path()) {
            let (start, end) = (start as usize, start as usize + content.len());
            assert_eq!(Some(&*content), self.bytes.get(start..end), "the bytes of the segment at {start}");
            if (start..end).contains(&next) {
                next = end;
            }
        }
        assert_eq!(next, self.bytes.len(), "unread bytes are missing");
        assert!(sizes(self.dir.path(), "log") <= self.cap);
        assert_eq!(self.writer.counts().end, self.bytes.len() as u64);
    }
}

proptest! {
    #[test]
    fn a_reader_of_any_pace_gets_every_byte_and_the_cap_stays(
        steps in steps(), cap in prop_oneof![2_u64..64, 64_u64..4000], paces in proptest::collection::vec(1_usize..700, 1..9),
    ) {
        let mut held = HeldWriter::new(cap);
        for (step, pace) in steps.iter().zip(paces.iter().cycle()) {
            held.append(step, *pace);
        }
    }
}

#[test]
fn a_full_log_takes_no_more_until_the_reader_has_read_a_segment_and_all_without_a_reader() {
    let mut held = HeldWriter::new(1 << 20);
    let flood = vec![b'x'; 3 << 20];
    let full = held.writer.append(Stream::Stdout, &flood, 0);
    assert_eq!(full, 1 << 20, "head and tail are full");
    assert_eq!((held.writer.append(Stream::Stdout, &flood, 0), held.writer.counts().dropped), (0, 0));
    // Within the head, which is never dropped, and within the first segment of the tail.
    for read in [100, 512 << 10, (512 << 10) + (64 << 10) - 1] {
        held.writer.keep_from(read);
        assert_eq!(held.writer.append(Stream::Stdout, &flood, 0), 0, "{read}");
    }
    held.writer.keep_from((512 << 10) + (64 << 10));
    assert_eq!(held.writer.append(Stream::Stdout, &flood, 0), 64 << 10, "the segment that was read has gone");
    held.writer.keep_from(u64::MAX);
    assert_eq!(held.writer.append(Stream::Stdout, &flood, 0), flood.len(), "the cap drops as usual");
    assert!(held.writer.counts().dropped > 0 && sizes(held.dir.path(), "log") <= 1 << 20);
}

#[test]
fn a_disk_that_refuses_holds_nothing_back() {
    let dir = temporary();
    let fd = File::open(dir.path()).expect("the directory opens");
    let files = ScriptedDisk { dir: Dir::new(fd.into()), script: vec![DiskResult::Error], at: 0 };
    let mut writer = LogWriter::with_files(files, 1000);
    writer.keep_from(0);
    assert_eq!(writer.append(Stream::Stdout, &[b'x'; 5000], 0), 5000);
    assert_eq!((writer.counts().unstored, writer.counts().end), (5000, 5000), "what cannot be stored is counted");
}
