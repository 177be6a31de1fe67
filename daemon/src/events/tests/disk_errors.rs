//! A disk that refuses: nothing half-written is ever read, and no number is used in vain.

use super::*;
use crate::events::disk::{Disk, RealDisk};
use proptest::prelude::*;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};

/// What the disk does to the next calls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Fine,
    /// It takes this many hundredths of a record.
    Short(usize),
    Full,
    /// It takes all of it and says that it did not.
    Liar,
    /// It takes a part, and does not cut it off again.
    Torn(usize),
    /// It makes no files.
    NoFiles,
}

#[derive(Debug, Clone)]
struct Moody(Arc<Mutex<Mood>>);

impl Moody {
    fn mood(&self) -> Mood {
        *self.0.lock().expect("whole")
    }
}

impl Disk for Moody {
    fn create(&self, path: &Path) -> io::Result<File> {
        if self.mood() == Mood::NoFiles { Err(io::ErrorKind::StorageFull.into()) } else { RealDisk.create(path) }
    }
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        match self.mood() {
            Mood::Fine | Mood::NoFiles => RealDisk.write(file, bytes),
            Mood::Short(part) | Mood::Torn(part) => RealDisk.write(file, &bytes[..bytes.len() * part / 100]),
            Mood::Full => Err(io::ErrorKind::StorageFull.into()),
            Mood::Liar => RealDisk.write(file, bytes).and(Err(io::ErrorKind::TimedOut.into())),
        }
    }
    fn truncate(&self, file: &File, len: u64) -> io::Result<()> {
        if matches!(self.mood(), Mood::Torn(_) | Mood::Liar) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        RealDisk.truncate(file, len)
    }
}

fn moods() -> impl Strategy<Value = Mood> {
    prop_oneof![
        4 => Just(Mood::Fine),
        1 => (0usize..100).prop_map(Mood::Short),
        1 => Just(Mood::Full),
        1 => Just(Mood::Liar),
        1 => (0usize..100).prop_map(Mood::Torn),
        1 => Just(Mood::NoFiles),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_told_as_written_is_all_there_is_and_is_without_a_gap(moods in prop::collection::vec(moods(), 1..60)) {
        let dir = temporary();
        let mood = Moody(Arc::new(Mutex::new(Mood::Fine)));
        let (journal, _) = Journal::open_on(Box::new(mood.clone()), dir.path(), SMALL, 0, 0).expect("it opens");
        let mut told = Vec::new();
        for (n, next) in moods.iter().enumerate() {
            *mood.0.lock().expect("whole") = *next;
            if let Ok(seq) = publish(&journal, n as u64) {
                told.push((seq, n as u64));
                prop_assert_eq!(seq, told.len() as u64);
            }
        }
        let (events, missing) = read_all(&journal, &Filter::default());
        prop_assert_eq!(events.iter().map(numbers).collect::<Vec<_>>(), told.clone());
        prop_assert_eq!(missing, vec![]);
        // A good disk again, and then a crash.
        *mood.0.lock().expect("whole") = Mood::Fine;
        told.push((publish(&journal, 99).expect("it goes on"), 99));
        drop(journal);
        let (journal, opened) = open(dir.path(), SMALL);
        prop_assert_eq!(opened.damage, Vec::<String>::new());
        let (events, missing) = read_all(&journal, &Filter::default());
        prop_assert_eq!(events.iter().map(numbers).collect::<Vec<_>>(), told);
        prop_assert_eq!(missing, vec![]);
    }
}

#[test]
fn a_record_that_was_given_up_does_not_use_its_number_when_a_crash_follows_at_once() {
    let dir = temporary();
    let mood = Moody(Arc::new(Mutex::new(Mood::Fine)));
    let (journal, _) = Journal::open_on(Box::new(mood.clone()), dir.path(), SMALL, 0, 0).expect("it opens");
    fill(&journal, 2);
    *mood.0.lock().expect("whole") = Mood::Liar;
    publish(&journal, 3).expect_err("refused");
    *mood.0.lock().expect("whole") = Mood::Full;
    publish(&journal, 3).expect_err("refused, in a new segment that stays empty");
    drop(journal);
    let (journal, opened) = open(dir.path(), SMALL);
    assert_eq!((journal.last(), opened.damage), (2, vec![]));
}
