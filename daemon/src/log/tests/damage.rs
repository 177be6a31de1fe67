//! Any cut, and any garbage, reads as less and never as something else.

use super::*;
use crate::log::{LineQuery, fuzz};
use std::fs::OpenOptions;

/// Cuts one of the log's files short. Gives its name.
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

proptest! {
    #[test]
    fn counts_can_be_had_from_the_files_alone(steps in steps(), cap in caps(), script in disks()) {
        let model = Model::write(&steps, cap, &script);
        let counts = Log::open_all(model.dir.path())?.recount()?;
        // What was refused after the last byte kept cannot be known.
        if model.kept.last() == Some(&true) {
            prop_assert_eq!(counts, model.counts);
        } else {
            prop_assert!(counts.end <= model.counts.end && counts.unstored <= model.counts.unstored);
        }
    }

    #[test]
    fn any_cut_of_any_file_reads_as_a_part_of_what_was_written(
        steps in steps(), cap in 64_u64..4000, script in disks(), which in 0_usize..40, at in 0.0..1.0_f64,
    ) {
        let mut model = Model::write(&steps, cap, &script);
        let Some(name) = cut(&model, which, at) else { return Ok(()) };
        model.look();
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
            // A cut index no longer knows the streams; a cut log does.
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
            let header = crate::log::format::Header { start: 0, unstored: 0 }.encode();
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
