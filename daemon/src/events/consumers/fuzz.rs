//! Entry points for fuzzing: reads arbitrary bytes as the list of consumers, of expired ones, and as a position file.

use super::super::fuzz::flip;
use super::ConsumerName;
use super::expired;
use super::names::NameList;
use super::state::{self, ConsumerState, FACT_LEN};

/// The name of the consumer to which the bytes belong.
const NAME: &str = "consumer/1";
/// The offset of the checksum in the list of consumers, and of the bytes that it covers.
const NAMES_SUM_AT: usize = 8;
const NAMES_SUM_FROM: usize = 12;

/// Reads the bytes as each file. Panics only on a bug.
pub fn files(bytes: &[u8]) {
    names(bytes);
    let mut rest = bytes;
    while let Some((_, after)) = expired::decode_first(rest) {
        assert!(after.len() < rest.len(), "every entry makes progress");
        rest = after;
    }
    let Ok(name) = ConsumerName::parse(NAME) else { return };
    position(bytes, &name);
    position(&with_valid_facts(bytes, &name), &name);
}

/// Reads a list, as it is and with a checksum that matches.
fn names(bytes: &[u8]) {
    let mut file = bytes.to_vec();
    names_read_back(&file);
    if let Some(covered) = file.get(NAMES_SUM_FROM..) {
        let sum = crc32fast::hash(covered).to_le_bytes();
        file[NAMES_SUM_AT..NAMES_SUM_FROM].copy_from_slice(&sum);
        names_read_back(&file);
    }
}

fn names_read_back(bytes: &[u8]) {
    let Some(list) = NameList::decode(bytes) else { return };
    let mut file = list.encode();
    assert_eq!(NameList::decode(&file).as_ref(), Some(&list));
    flip(&mut file, bytes.len() as u64 * 37);
    assert_eq!(NameList::decode(&file), None, "a flipped bit is noticed");
}

/// Returns a file of the consumer with the bytes as facts, each with a checksum that matches.
fn with_valid_facts(bytes: &[u8], name: &ConsumerName) -> Vec<u8> {
    let (mut file, _) = ConsumerState::default().file(name);
    file.truncate(state::summary_at(name) as usize);
    for fact in bytes.as_chunks::<FACT_LEN>().0 {
        file.extend_from_slice(&crc32fast::hash(&fact[4..]).to_le_bytes());
        file.extend_from_slice(&fact[4..]);
    }
    file
}

/// Reads a position file with and without knowledge of its name, then the shortest file with the same state.
fn position(bytes: &[u8], name: &ConsumerName) {
    for listed in [None, Some(name)] {
        let Some(mut read) = state::decode(bytes, listed) else { continue };
        assert!(read.len <= bytes.len() as u64, "only facts that are there count");
        let (mut file, count) = read.state.file(&read.name);
        let again = state::decode(&file, None).expect("a file that was written is whole");
        assert_eq!((again.damaged, again.count, again.len), (0, Some(count), file.len() as u64));
        assert_eq!(again.name, read.name);
        assert_eq!((again.state.position, again.state.used_ms), (read.state.position, read.state.used_ms));
        assert_eq!(again.state.damaged_ms, read.state.damaged_ms);
        assert_eq!(again.state.exit_marks, read.state.exit_marks);
        flip(&mut file, bytes.len() as u64 * 37);
        let damaged = state::decode(&file, Some(&read.name)).expect("one of two facts is left");
        assert!(damaged.damaged > 0, "a flipped bit is noticed");
        assert_eq!(damaged.state.position, read.state.position, "the position is there twice");
        read.state.tidy(read.state.position);
    }
}
