//! The bytes that the writer keeps, and its counts.

use super::*;
use toold_format::log::RECORD_LEN;

fn at_once(stream: Stream, bytes: Vec<u8>) -> Step {
    Step { stream, bytes, later: 0 }
}

/// Joins neighbours of one stream that came at one time, and cuts what is left into chunks.
fn rechunked(steps: &[Step], size: usize) -> Vec<Step> {
    let mut joined: Vec<Step> = Vec::new();
    for step in steps {
        match joined.last_mut() {
            Some(last) if last.stream == step.stream && step.later == 0 => last.bytes.extend_from_slice(&step.bytes),
            // The first, or another stream, or later.
            _ => joined.push(step.clone()),
        }
    }
    let mut chunks = Vec::new();
    for step in joined {
        let mut later = step.later;
        for bytes in step.bytes.chunks(size) {
            chunks.push(Step { stream: step.stream, bytes: bytes.to_vec(), later });
            later = 0;
        }
        if step.bytes.is_empty() {
            chunks.push(step);
        }
    }
    chunks
}

#[test]
fn a_process_without_output_has_no_files() {
    let model = Model::write(&[at_once(Stream::Stdout, Vec::new())], 1000, &[]);
    assert_eq!((segments(model.dir.path()), sizes(model.dir.path(), "")), (Vec::new(), 0));
}

#[test]
fn the_writer_is_small() {
    assert!(size_of::<LogWriter>() < 1024, "{}", size_of::<LogWriter>());
}

#[test]
fn the_head_and_at_least_seven_sixteenths_of_the_newest_stay() {
    let cap = 1 << 20;
    let bytes: Vec<u8> = (0..5_000_000_u32).flat_map(|i| [(i % 251) as u8, b'\n']).collect();
    let steps: Vec<Step> = bytes.chunks(100_000).map(|chunk| at_once(Stream::Stdout, chunk.to_vec())).collect();
    let model = Model::write(&steps, cap, &[]);
    let head = model.kept.iter().take_while(|kept| **kept).count() as u64;
    let tail = model.kept.iter().rev().take_while(|kept| **kept).count() as u64;
    let newlines = model.newlines(model.end(), None);
    let expected =
        Counts { end: 10_000_000, out_newlines: newlines, dropped: 10_000_000 - head - tail, ..Counts::default() };
    assert_eq!((model.counts, head), (expected, cap / 2));
    assert!(tail >= cap * 7 / 16 && tail <= cap / 2, "{tail}");
    let index = sizes(model.dir.path(), "idx");
    assert!(index < 64 * RECORD_LEN as u64, "a record for 64 KiB: {index}");
}

/// Appends `count` runs, one stream and the other by turns.
fn alternate(cap: u64, count: usize, run: &[u8]) -> (tempfile::TempDir, Counts) {
    let dir = temporary();
    let fd = File::open(dir.path()).expect("the directory opens");
    let mut writer = LogWriter::new(fd.into(), cap);
    for i in 0..count {
        writer.append(if i % 2 == 0 { Stream::Stdout } else { Stream::Stderr }, run, 0);
    }
    (dir, writer.counts())
}

#[test]
fn streams_that_alternate_byte_by_byte_cannot_fill_the_disk() {
    let (dir, counts) = alternate(1 << 20, 250_000, b"z");
    let kept = sizes(dir.path(), "log");
    assert_eq!(counts.dropped, 250_000 - kept);
    // Four times the head's 512 KiB, and of each of 16 tails' 64 KiB; a record a byte.
    let (head, tail) = (4 * 512 * 1024, 4 * 64 * 1024);
    let index = sizes(dir.path(), "idx");
    let least = (head + 15 * tail) / RECORD_LEN as u64;
    assert!(index <= head + 16 * tail + 17 * 2 * RECORD_LEN as u64 && kept >= least, "{index} {kept}");
}

#[test]
fn output_below_the_cap_is_kept_in_full_however_the_streams_alternate() {
    // A segment ended when its index was a quarter of its capacity: of the first, 68,580 bytes were dropped.
    let cases: [(u64, usize, &[u8]); 4] = [
        (100_000, 10_000, b"line 123\n"),
        (1 << 20, (1 << 20) / 8, b"1234567\n"),
        (1 << 20, 32_000, b"z"),
        (64 * 1024, 32_000, b"z\n"),
    ];
    for (cap, count, run) in cases {
        let (dir, counts) = alternate(cap, count, run);
        let written = (count * run.len()) as u64;
        assert_eq!((counts.end, counts.dropped, sizes(dir.path(), "log")), (written, 0, written), "{cap} {count}");
    }
}

#[test]
fn a_full_disk_leaves_a_gap_and_output_continues_when_there_is_space() {
    let steps = [b"one\n", b"two\n", b"six\n"].map(|bytes| at_once(Stream::Stdout, bytes.to_vec()));
    // Two creates, the index, the bytes; then the disk takes half of the second append.
    let script = [DiskResult::Full, DiskResult::Full, DiskResult::Full, DiskResult::Full, DiskResult::Half];
    let mut full = script.to_vec();
    full.resize(20, DiskResult::Full);
    let model = Model::write(&steps, 1000, &full);
    let expected = vec![(0, b"one\ntw".to_vec()), (8, b"six\n".to_vec())];
    let counts = Counts { end: 12, out_newlines: 3, unstored: 2, ..Counts::default() };
    assert_eq!((segments(model.dir.path()), model.counts), (expected, counts));
}

/// Runs in the next test, in a shell that limits the size of files, as a full disk would.
#[test]
fn child_that_may_write_no_large_file() {
    let Ok(dir) = std::env::var("TOOLD_TEST_SMALL_FILES") else { return };
    let fd = File::open(&dir).expect("the directory opens");
    let mut writer = LogWriter::new(fd.into(), 1 << 20);
    for _ in 0..5 {
        writer.append(Stream::Stderr, &[b'q'; 3000], 0);
    }
    std::fs::write(Path::new(&dir).join("counts"), format!("{:?}", writer.counts())).expect("a small file");
}

#[test]
fn the_kernels_refusal_is_counted_and_survived() {
    let dir = temporary();
    let program = std::env::current_exe().expect("this program");
    let status = std::process::Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$0\" --exact \"$1\" >/dev/null 2>&1"])
        .arg(program)
        .arg("log::tests::writer::child_that_may_write_no_large_file")
        .env("TOOLD_TEST_SMALL_FILES", dir.path())
        .status();
    assert!(status.is_ok_and(|status| status.success()));
    // 4096 bytes fit into a file: every second append of 3000 is cut short after 1096, and a new segment follows.
    let expected = Counts { end: 15_000, err_open: true, last_open: true, unstored: 2 * 1904, ..Counts::default() };
    let counts = std::fs::read_to_string(dir.path().join("counts")).expect("the child wrote it");
    let sizes: Vec<(u64, usize)> =
        segments(dir.path()).into_iter().map(|(start, bytes)| (start, bytes.len())).collect();
    assert_eq!((counts, sizes), (format!("{expected:?}"), vec![(0, 4096), (6000, 4096), (12_000, 3000)]));
}

proptest! {
    #[test]
    fn any_chunking_keeps_the_same_bytes_and_counts(steps in steps(), cap in caps(), size in 1_usize..700) {
        let (one, other) = (Model::write(&steps, cap, &[]), Model::write(&rechunked(&steps, size), cap, &[]));
        prop_assert_eq!(segments(one.dir.path()), segments(other.dir.path()));
        prop_assert_eq!(one.counts, other.counts);
    }

    #[test]
    fn counts_are_those_of_the_bytes(steps in steps(), cap in caps(), script in disks()) {
        let model = Model::write(&steps, cap, &script);
        prop_assert_eq!(model.counts, model.naive_counts());
    }

    #[test]
    fn the_cap_holds_after_every_append(steps in steps(), cap in caps(), script in disks()) {
        Model::watch(&steps, cap, &script, |dir| assert!(sizes(dir, "log") <= cap));
    }

    #[test]
    fn the_newest_bytes_stay(steps in steps(), cap in 16_u64..4000) {
        let model = Model::write(&steps, cap, &[]);
        let tail = model.kept.iter().rev().take_while(|kept| **kept).count() as u64;
        // A segment of so small a cap never ends early for its index.
        prop_assert!(tail >= model.counts.end.min(cap / 4), "{tail} of {}", model.counts.end);
    }
}

/// A disk that only counts the blocks reserved and released.
#[derive(Default)]
struct CountingDisk {
    reserved: Vec<(u64, u64)>,
    released: usize,
    full: bool,
}

impl Files for &mut CountingDisk {
    fn create(&mut self, _: &CStr) -> Result<OwnedFd, Errno> {
        Ok(File::open("/dev/null").expect("it opens").into())
    }
    fn write(&mut self, _: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
        Ok(bytes.len())
    }
    fn reserve(&mut self, _: &OwnedFd, from: u64, len: u64) -> Result<(), Errno> {
        self.reserved.push((from, len));
        if self.full { Err(Errno::NOSPC) } else { Ok(()) }
    }
    fn release(&mut self, _: &OwnedFd) {
        self.released += 1;
    }
    fn remove(&mut self, _: &CStr) {}
}

#[test]
fn blocks_are_reserved_only_for_a_flood_and_never_beyond_the_segment() {
    const MIB: u64 = 1 << 20;
    let mut disk = CountingDisk::default();
    let mut writer = LogWriter::with_files(&mut disk, 72 * MIB);
    for n in 0..40_000 {
        writer.append(Stream::Stdout, &[b'x'; 100], n);
    }
    writer.release_reserved();
    for n in 0..144 {
        writer.append(Stream::Stdout, &[b'x'; 256 * 1024], n);
    }
    writer.release_reserved();
    writer.release_reserved();
    drop(writer);
    let small = 4_000_000;
    assert_eq!(
        disk.reserved[..3],
        [(small, 16 * MIB), (small + 16 * MIB, 16 * MIB), (small + 32 * MIB, 4 * MIB - small)]
    );
    // The head had 36 MiB, a tail segment has 4.5: it reserved once, after its first MiB, and released once.
    let ends: Vec<u64> = disk.reserved[3..].iter().map(|(from, len)| from + len).collect();
    assert_eq!((ends, disk.released), (vec![9 * MIB / 2], 1));
}

#[test]
fn a_disk_that_refuses_to_reserve_is_not_asked_again() {
    let mut disk = CountingDisk { full: true, ..CountingDisk::default() };
    let mut writer = LogWriter::with_files(&mut disk, 1 << 30);
    for n in 0..100 {
        assert_eq!(writer.append(Stream::Stdout, &[b'x'; 256 * 1024], n), 256 * 1024);
    }
    writer.release_reserved();
    assert_eq!(writer.counts().unstored, 0);
    drop(writer);
    assert_eq!((disk.reserved.len(), disk.released), (1, 0));
}
