//! Any cut and any garbage makes the log shorter, and never yields wrong bytes.

use super::*;
use crate::log::{LineQuery, Writer, check, fuzz, verify};
use crate::matcher::BoundedRegex;
use std::fs::OpenOptions;
use std::sync::Arc;

/// Truncates one of the log's files. Returns its name.
fn cut(model: &Model, which: usize, at: f64) -> Option<String> {
    let entries = std::fs::read_dir(model.dir.path()).expect("the directory lists");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let name = names.get(which % names.len().max(1))?;
    let file = OpenOptions::new().write(true).open(model.dir.path().join(name)).expect("it opens");
    let len = file.metadata().expect("its size").len();
    file.set_len((len as f64 * at) as u64).expect("it is cut");
    Some(name.clone())
}

fn read_all(log: &Log, stream: Option<Stream>) -> Vec<(u64, Vec<u8>)> {
    let (mut at, mut pages) = (0, Vec::new());
    while at < log.end() {
        let page = log.read(at, 1000, stream).expect("it reads");
        assert!(page.next > at);
        at = page.next;
        pages.push((page.from, page.bytes));
    }
    pages
}

/// Writes lines of four bytes, alternating between stdout and stderr, into a head of 80 bytes and two tails of 40.
fn alternating(lines: usize) -> Model {
    let step = |i: usize| Step {
        stream: if i.is_multiple_of(2) { Stream::Stdout } else { Stream::Stderr },
        bytes: format!("{i:03}\n").into_bytes(),
        later: 0,
    };
    Model::write(&(0..lines).map(step).collect::<Vec<Step>>(), 160, &[])
}

fn merged(log: &Log) -> Vec<u8> {
    read_all(log, None).into_iter().flat_map(|(_, bytes)| bytes).collect()
}

#[test]
fn a_file_that_the_writer_did_not_create_is_a_gap_and_is_never_followed() {
    let elsewhere = temporary();
    let secret = elsewhere.path().join("secret");
    std::fs::write(&secret, [b'!'; 160]).expect("it is written");
    let replacements: [&dyn Fn(&Path); 3] = [
        &|path| std::os::unix::fs::symlink(&secret, path).expect("a link"),
        &|path| std::fs::create_dir(path).expect("a directory"),
        // Opening a pipe blocks until there is a writer.
        &|path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRUSR).expect("a pipe"),
    ];
    for replace in replacements {
        let model = alternating(40);
        std::fs::remove_file(model.dir.path().join("log")).expect("it was there");
        replace(&model.dir.path().join("log"));
        // A file that is not a segment does not end the one before it.
        replace(&model.dir.path().join("log.0000000000000060"));
        let log = model.open();
        assert_eq!(log.first_gap(0).ok().flatten(), Some(Gap { from: 0, to: 80 }));
        assert_eq!(merged(&log), model.bytes.get(80..).unwrap_or_default());
        assert!(log.lines(&LineQuery { limit: 100, ..LineQuery::default() }, &model.counts).is_ok());
        let expected = [
            "log is not a regular file",
            "log.0000000000000060 is not a regular file",
            "a log file is short: 80 of 160 bytes of output are gone",
        ];
        assert_eq!(check(model.dir.path(), &model.counts).expect("readable"), expected);
    }
}

#[test]
fn merged_output_does_not_need_an_index() {
    let elsewhere = temporary();
    for name in ["idx", "idx.0000000000000050"] {
        let replacements: [&dyn Fn(&Path); 4] = [
            &|_| {},
            &|path| std::os::unix::fs::symlink(elsewhere.path(), path).expect("a link"),
            &|path| std::fs::create_dir(path).expect("a directory"),
            &|path| std::fs::write(path, [7; 320]).expect("garbage"),
        ];
        for replace in replacements {
            let model = alternating(40);
            std::fs::remove_file(model.dir.path().join(name)).expect("it was there");
            replace(&model.dir.path().join(name));
            assert_eq!(merged(&model.open()), model.bytes);
            let lines = |offset| {
                let query = LineQuery { offset, limit: 5, ..LineQuery::default() };
                model.open().lines(&query, &model.counts).map(|page| (page.bytes, page.first_line)).ok()
            };
            let expected = |from: usize| Some((model.bytes.get(4 * from..4 * from + 20)?.to_vec(), from as u64));
            assert_eq!([lines(Some(3)), lines(Some(22)), lines(None)], [expected(3), expected(22), expected(35)]);
        }
    }
}

#[test]
fn lines_after_a_gap_keep_their_numbers_without_an_index() {
    // The tails start with the lines 80 and 90. The broken code numbered them as if nothing were missing before them, and
    // searched for the last lines after the end.
    let regex = Arc::new(BoundedRegex::one("5$").expect("a pattern"));
    for lost in [
        &["idx.0000000000000140"][..],
        &["idx.0000000000000168"],
        &["idx", "idx.0000000000000140", "idx.0000000000000168"],
    ] {
        let model = alternating(100);
        for name in lost {
            std::fs::remove_file(model.dir.path().join(name)).expect("it was there");
        }
        let lines = |offset, grep| {
            let query = LineQuery { offset, limit: 3, grep, ..LineQuery::default() };
            model.open().lines(&query, &model.counts).map(|page| (page.bytes, page.first_line)).ok()
        };
        let pages = [lines(None, None), lines(Some(85), None), lines(Some(50), None), lines(Some(50), Some(&regex))];
        let expected = [
            (b"097\n098\n099\n".to_vec(), 97),
            (b"085\n086\n087\n".to_vec(), 85),
            (b"080\n081\n082\n".to_vec(), 80),
            (b"085\n095\n".to_vec(), 85),
        ];
        assert_eq!(pages, expected.map(Some), "{lost:?}");
    }
}

#[test]
fn a_check_describes_the_damage_of_the_files() {
    let damage = |harm: &dyn Fn(&Path)| {
        let model = alternating(40);
        harm(model.dir.path());
        check(model.dir.path(), &model.counts)
    };
    let cut = |name: &'static str, len| {
        damage(&move |dir| {
            let file = OpenOptions::new().write(true).open(dir.join(name)).expect("it opens");
            file.set_len(len).expect("it is cut");
        })
    };
    let remove = |name: &'static str| damage(&move |dir| std::fs::remove_file(dir.join(name)).expect("it was there"));
    let link = damage(&|dir| {
        std::fs::remove_file(dir.join("idx")).expect("it was there");
        std::os::unix::fs::symlink("log", dir.join("idx")).expect("a link");
    });
    let reports = [
        damage(&|_| {}),
        remove("log"),
        remove("log.0000000000000050"),
        cut("log.0000000000000078", 30),
        remove("idx"),
        link,
        cut("idx", 0),
        cut("idx.0000000000000050", 32),
        cut("idx.0000000000000050", 320),
        cut("idx.0000000000000078", 320),
        damage(&|dir| std::fs::write(dir.join("idx"), [7; 320]).expect("garbage")),
    ];
    let expected: [&[&str]; 11] = [
        &[],
        &["log is missing: 80 of 160 bytes of output are gone"],
        &["log.0000000000000050 is missing: 40 of 160 bytes of output are gone"],
        &["a log file is short: 10 of 160 bytes of output are gone"],
        &["idx is missing"],
        &["idx is not a regular file"],
        &["idx is damaged: it has no header"],
        &["idx.0000000000000050 is damaged: it has no first record"],
        &["idx.0000000000000050 is short"],
        &["idx.0000000000000078 is short"],
        &["idx is damaged: it has no header"],
    ];
    assert_eq!(reports.map(|report| report.expect("readable").join("; ")), expected.map(|report| report.join("; ")));
}

proptest! {
    #[test]
    fn an_intact_log_has_no_damage(steps in steps(), cap in caps(), script in disks()) {
        let model = Model::write(&steps, cap, &script);
        prop_assert_eq!(check(model.dir.path(), &model.counts)?, Vec::<String>::new());
        let counts = Log::open_all(model.dir.path())?.recount()?;
        prop_assert_eq!(check(model.dir.path(), &counts)?, Vec::<String>::new());
    }

    #[test]
    fn an_intact_log_has_its_checksums(steps in steps(), cap in caps(), script in disks()) {
        let model = Model::write(&steps, cap, &script);
        prop_assert_eq!(verify(model.dir.path(), &model.sums, Writer::Ended, u64::MAX)?, Some(Vec::new()));
    }

    /// A writer that goes on, to later segments and over its cap, changes nothing that earlier checksums cover.
    #[test]
    fn a_log_that_was_written_further_has_its_earlier_checksums(steps in steps(), cap in caps(), script in disks()) {
        let model = Model::write(&steps, cap, &script);
        for sums in &model.history {
            prop_assert_eq!(verify(model.dir.path(), sums, Writer::MayRun, u64::MAX)?, Some(Vec::new()), "{:?}", sums);
        }
    }

    #[test]
    fn a_flipped_bit_in_any_file_of_a_log_is_noticed(steps in steps(), cap in caps(), at: usize, bit in 0..8_u8) {
        let model = Model::write(&steps, cap, &[]);
        let mut files: Vec<_> = std::fs::read_dir(model.dir.path())?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
        files.sort();
        prop_assume!(!files.is_empty());
        let file = &files[at % files.len()];
        let mut bytes = std::fs::read(file)?;
        let place = at / files.len() % bytes.len();
        bytes[place] ^= 1_u8 << bit;
        std::fs::write(file, bytes)?;
        let changed = verify(model.dir.path(), &model.sums, Writer::Ended, u64::MAX)?.unwrap_or_default();
        prop_assert_eq!(changed.len(), 1, "{:?}", changed);
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        prop_assert_eq!(changed.first().map(|changed| changed.name()), Some(name));
    }

    #[test]
    fn counts_can_be_computed_from_the_files_alone(steps in steps(), cap in caps(), script in disks()) {
        let model = Model::write(&steps, cap, &script);
        let counts = Log::open_all(model.dir.path())?.recount()?;
        // Bytes rejected after the last stored one are unknown.
        if model.kept.last() == Some(&true) {
            prop_assert_eq!(counts, model.counts);
        } else {
            prop_assert!(counts.end <= model.counts.end && counts.unstored <= model.counts.unstored);
        }
    }

    #[test]
    fn any_cut_of_any_file_reads_as_a_part_of_the_written_bytes(
        steps in steps(), cap in 64_u64..4000, script in disks(), which in 0_usize..40, at in 0.0..1.0_f64,
    ) {
        let mut model = Model::write(&steps, cap, &script);
        let Some(name) = cut(&model, which, at) else { return Ok(()) };
        model.update_kept();
        let log = Log::open_all(model.dir.path())?;
        for (from, bytes) in read_all(&log, None) {
            let range = from as usize..from as usize + bytes.len();
            prop_assert_eq!(Some(&*bytes), model.bytes.get(range.clone()));
            prop_assert!(model.kept.get(range).is_some_and(|kept| kept.iter().all(|kept| *kept)));
        }
        let counts = log.recount()?;
        let kept_end = model.kept.iter().rposition(|kept| *kept).map_or(0, |at| at as u64 + 1);
        prop_assert_eq!(counts.end, kept_end);
        for stream in [Some(Stream::Stdout), Some(Stream::Stderr)] {
            let bytes: Vec<u8> = read_all(&log, stream).into_iter().flat_map(|(_, bytes)| bytes).collect();
            // A truncated index loses the streams; a truncated log does not.
            if name.starts_with("log") {
                let kept = (0..model.end()).filter(|at| model.kept.get(*at) == Some(&true) && model.is_in(*at, stream));
                prop_assert_eq!(bytes, kept.filter_map(|at| model.bytes.get(at).copied()).collect::<Vec<u8>>());
                prop_assert_eq!(counts.newlines(stream), model.newlines(kept_end as usize, stream));
            }
            log.lines(&LineQuery { limit: 10, stream, ..LineQuery::default() }, &counts)?;
            log.lines(&LineQuery { offset: Some(3), limit: 10, stream, ..LineQuery::default() }, &counts)?;
        }
    }

    #[test]
    fn any_pair_of_files_can_be_read(log in "[a\n]{0,300}", mut idx in proptest::collection::vec(any::<u8>(), 0..300), good: bool) {
        if good {
            let header = toold_format::log::IndexHeader { start: 0, unstored: 0, previous: Default::default() }.encode();
            idx.splice(0..0, header);
        }
        fuzz::pair(log.as_bytes(), &idx)?;
    }

    #[test]
    fn a_pair_with_a_changed_byte_can_be_read(steps in steps(), at in 0.0..1.0_f64, byte: u8) {
        let model = Model::write(&steps, 1 << 20, &[]);
        let Ok(mut idx) = std::fs::read(model.dir.path().join("idx")) else { return Ok(()) };
        let position = (idx.len() as f64 * at) as usize;
        idx.get_mut(position..=position).expect("within the index").fill(byte);
        fuzz::pair(&model.bytes, &idx)?;
    }
}
