//! A disk that fails: a torn record is never read, and no number is skipped.

use super::*;
use crate::events::disk::{Disk, RealDisk};
use proptest::prelude::*;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};

/// The behaviour of the disk for the next calls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// It writes this percentage of a record.
    Short(usize),
    Full,
    /// It writes everything and reports an error.
    FalseError,
    /// It writes this percentage of a record and cannot truncate it.
    Torn(usize),
    /// It cannot create files.
    NoFiles,
}

#[derive(Debug, Clone)]
struct FaultyDisk(Arc<Mutex<Fault>>);

impl FaultyDisk {
    fn fault(&self) -> Fault {
        *self.0.lock().expect("whole")
    }
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        if self.fault() == Fault::NoFiles { Err(io::ErrorKind::StorageFull.into()) } else { RealDisk.create(path) }
    }
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        match self.fault() {
            Fault::None | Fault::NoFiles => RealDisk.write(file, bytes),
            Fault::Short(part) | Fault::Torn(part) => RealDisk.write(file, &bytes[..bytes.len() * part / 100]),
            Fault::Full => Err(io::ErrorKind::StorageFull.into()),
            Fault::FalseError => RealDisk.write(file, bytes).and(Err(io::ErrorKind::TimedOut.into())),
        }
    }
    fn truncate(&self, file: &File, len: u64) -> io::Result<()> {
        if matches!(self.fault(), Fault::Torn(_) | Fault::FalseError) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        RealDisk.truncate(file, len)
    }
}

fn faults() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => Just(Fault::None),
        1 => (0usize..100).prop_map(Fault::Short),
        1 => Just(Fault::Full),
        1 => Just(Fault::FalseError),
        1 => (0usize..100).prop_map(Fault::Torn),
        1 => Just(Fault::NoFiles),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_reported_as_written_are_all_there_are_and_have_no_gap(faults in prop::collection::vec(faults(), 1..60)) {
        let dir = temporary();
        let fault = FaultyDisk(Arc::new(Mutex::new(Fault::None)));
        let (journal, _) = Journal::open_on(Box::new(fault.clone()), dir.path(), SMALL, 0, 0).expect("it opens");
        let mut published = Vec::new();
        for (n, next) in faults.iter().enumerate() {
            *fault.0.lock().expect("whole") = *next;
            if let Ok(seq) = publish(&journal, n as u64) {
                published.push((seq, n as u64));
                prop_assert_eq!(seq, published.len() as u64);
            }
        }
        let (events, missing) = read_all(&journal, &Filter::default());
        prop_assert_eq!(events.iter().map(numbers).collect::<Vec<_>>(), published.clone());
        prop_assert_eq!(missing, vec![]);
        // The disk recovers, then a crash follows.
        *fault.0.lock().expect("whole") = Fault::None;
        published.push((publish(&journal, 99).expect("it continues"), 99));
        drop(journal);
        let (journal, opened) = open(dir.path(), SMALL);
        prop_assert_eq!(opened.damage, Vec::<String>::new());
        let (events, missing) = read_all(&journal, &Filter::default());
        prop_assert_eq!(events.iter().map(numbers).collect::<Vec<_>>(), published);
        prop_assert_eq!(missing, vec![]);
    }
}

#[test]
fn an_abandoned_record_does_not_use_its_number_if_a_crash_follows_at_once() {
    let dir = temporary();
    let fault = FaultyDisk(Arc::new(Mutex::new(Fault::None)));
    let (journal, _) = Journal::open_on(Box::new(fault.clone()), dir.path(), SMALL, 0, 0).expect("it opens");
    fill(&journal, 2);
    *fault.0.lock().expect("whole") = Fault::FalseError;
    publish(&journal, 3).expect_err("rejected");
    *fault.0.lock().expect("whole") = Fault::Full;
    publish(&journal, 3).expect_err("rejected, in a new segment that stays empty");
    drop(journal);
    let (journal, opened) = open(dir.path(), SMALL);
    assert_eq!((journal.last(), opened.damage), (2, vec![]));
}
