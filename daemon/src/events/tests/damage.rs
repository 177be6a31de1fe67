//! Any cut opens to a prefix. Any damage costs only the damaged events, and is reported.

use super::*;
use proptest::prelude::*;
use std::fs::File;
use std::os::unix::fs::FileExt;

fn journal_of(n: u64) -> tempfile::TempDir {
    let dir = temporary();
    fill(&open(dir.path(), SMALL).0, n);
    dir
}

#[test]
fn any_cut_of_the_end_opens_to_a_prefix_and_continues_without_a_gap() {
    let whole = journal_of(12);
    let last = files(whole.path()).pop().expect("a segment");
    let name = last.file_name().expect("a name");
    let bytes = std::fs::read(&last).expect("it reads");
    assert!(files(whole.path()).len() > 1 && bytes.len() > 300);
    for cut in 0..=bytes.len() {
        let dir = temporary();
        for file in files(whole.path()) {
            std::fs::copy(&file, dir.path().join(file.file_name().expect("a name"))).expect("a copy");
        }
        std::fs::write(dir.path().join(name), &bytes[..cut]).expect("cut");
        let (journal, opened) = open(dir.path(), SMALL);
        assert_eq!(opened.damage, Vec::<String>::new());
        let kept = journal.last();
        assert!(kept < 12 || cut == bytes.len());
        fill(&journal, 14);
        let (events, missing) = read_all(&journal, &Filter::default());
        assert_eq!((seqs(&events), missing), ((1..=14).collect(), vec![]), "cut at {cut}");
    }
}

/// Opens a damaged journal and compares it with the written events: texts are unchanged, lost events are reported, and the
/// journal continues. Returns the lost numbers and the reported damage.
fn check(dir: &Path, written: u64) -> (Vec<u64>, Vec<String>) {
    let (journal, opened) = open(dir, SMALL);
    let (events, missing) = read_all(&journal, &Filter::default());
    assert!(events.iter().map(numbers).all(|(seq, n)| seq == n), "never a wrong event");
    let there = seqs(&events);
    let lost: Vec<u64> = (1..=written).filter(|seq| !there.contains(seq)).collect();
    let reported: Vec<u64> = missing.into_iter().flatten().collect();
    let unreported: Vec<u64> = lost.iter().copied().filter(|seq| !reported.contains(seq)).collect();
    assert!(unreported.iter().all(|seq| *seq > journal.last()), "lost {lost:?}, reported {reported:?}");
    let next = journal.last() + 1;
    assert_eq!(publish(&journal, next).expect("it continues"), next);
    drop(journal);
    let (again, reopened) = open(dir, SMALL);
    assert_eq!(reopened.damage, Vec::<String>::new(), "it was quarantined, and is reported once");
    let kept = there.iter().copied().filter(|seq| *seq < next).chain([next]);
    assert_eq!(seqs(&read_all(&again, &Filter::default()).0), kept.collect::<Vec<u64>>());
    (lost, opened.damage)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_damaged_byte_costs_one_event_and_is_reported(which in any::<prop::sample::Index>(), flip in 1u8..) {
        let dir = journal_of(20);
        let sizes = files(dir.path()).into_iter().map(|path| (path.metadata().expect("a size").len(), path));
        let places: Vec<(PathBuf, u64)> = sizes.flat_map(|(len, path)| (0..len).map(move |at| (path.clone(), at))).collect();
        let (path, at) = &places[which.index(places.len())];
        let file = File::options().read(true).write(true).open(path).expect("it opens");
        let mut byte = [0];
        file.read_exact_at(&mut byte, *at).expect("it reads");
        file.write_all_at(&[byte[0] ^ flip], *at).expect("it is damaged");
        let (lost, damage) = check(dir.path(), 20);
        prop_assert_eq!(lost.len(), 1, "{:?}", lost);
        // A last record with a damaged length looks like a torn write, which is not damage.
        prop_assert!(damage.len() == 1 || (lost[0] == 20 && damage.is_empty()), "{:?} {:?}", lost, damage);
    }

    #[test]
    fn garbage_anywhere_never_panics_and_never_yields_a_wrong_event(
        which in any::<prop::sample::Index>(),
        from in 0u64..1200,
        garbage in prop::collection::vec(any::<u8>(), 1..1500),
    ) {
        let dir = journal_of(20);
        let paths = files(dir.path());
        let file = File::options().write(true).open(&paths[which.index(paths.len())]).expect("it opens");
        file.write_all_at(&garbage, from).expect("it is damaged");
        check(dir.path(), 20);
    }
}

#[test]
fn damage_to_an_open_journal_is_reported_to_readers_as_missing_events() {
    let dir = journal_of(20);
    let (journal, _) = open(dir.path(), SMALL);
    let file = File::options().write(true).open(&files(dir.path())[0]).expect("it opens");
    file.write_all_at(b"????", 70).expect("it is damaged");
    let batch = journal.read(0, &Filter::default(), ALL).expect("it reads");
    assert_eq!((seqs(&batch.events), batch.missing), ((2..=20).collect(), vec![1..=1]));
}

#[test]
fn a_file_that_is_not_a_segment_is_quarantined_and_its_numbers_are_missing() {
    let replacements: [&dyn Fn(&Path); 3] = [
        &|path| std::os::unix::fs::symlink("/etc/passwd", path).expect("a link"),
        &|path| std::fs::create_dir(path).expect("a directory"),
        &|path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRUSR).expect("a pipe"),
    ];
    for replace in replacements {
        for which in 0..4 {
            let dir = journal_of(20);
            let paths = files(dir.path());
            let path = &paths[which.min(paths.len() - 1)];
            std::fs::remove_file(path).expect("it was there");
            replace(path);
            let (journal, opened) = open(dir.path(), SMALL);
            assert_eq!(opened.damage.len(), 1, "{:?}", opened.damage);
            let (events, missing) = read_all(&journal, &Filter::default());
            let next = publish(&journal, 99).expect("it continues");
            let there = events.len() + missing.into_iter().flatten().count();
            assert_eq!(there as u64, next - 1);
            assert_eq!(open(dir.path(), SMALL).1.damage, Vec::<String>::new());
        }
    }
}

#[test]
fn a_file_in_the_place_of_the_directory_is_renamed() {
    let dir = temporary();
    let path = dir.path().join("events");
    std::fs::write(&path, "in the way").expect("written");
    let (journal, opened) = open(&path, SMALL);
    assert_eq!((publish(&journal, 1).expect("it continues"), opened.damage.len()), (1, 1));
}

#[test]
fn numbers_before_an_unreadable_last_segment_are_not_reused_after_two_crashes() {
    let dir = temporary();
    std::fs::create_dir(dir.path().join("0000000000000015.log")).expect("a directory");
    // The broken code kept the number only in memory until the next event.
    for _ in 0..3 {
        assert_eq!(open(dir.path(), SMALL).0.last(), 20);
    }
}
