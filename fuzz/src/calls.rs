//! The journal of calls as any bytes.

use toold_daemon::tools::journal::{CallEntry, line_of, parse};

/// Reads the bytes as the file `calls` of a script.
pub fn calls(bytes: &[u8]) {
    let (found, end) = parse(bytes);
    assert!(end <= bytes.len() as u64);
    let entries: Vec<&CallEntry> = found.entries.iter().map(|(entry, _)| entry).collect();
    for (entry, place) in &found.entries {
        let (line, damaged) = alone(&bytes[place.start() as usize..place.end() as usize]);
        assert_eq!(
            (line.as_slice(), damaged),
            (std::slice::from_ref(entry), 0),
            "an entry reads the same at its place"
        );
    }
    // A cut leaves a prefix: what a crash leaves of the file.
    let (cut, _) = parse(&bytes[..bytes.len() / 2]);
    assert!(cut.entries.iter().map(|(entry, _)| entry).eq(entries.iter().copied().take(cut.entries.len())));
    let mut again = Vec::new();
    for entry in &entries {
        again.extend(line_of(entry).expect("an entry prints"));
    }
    let (written, damaged) = alone(&again);
    assert_eq!((written.iter().collect::<Vec<_>>(), damaged), (entries, 0), "what is written reads the same");
    // One flipped bit costs the entries of its line and the next, and makes up none.
    if let Some(at) = again.len().checked_sub(1).map(|last| bytes.len() % (last + 1)) {
        again[at] ^= 1;
        let (left, _) = alone(&again);
        assert!(left.len() + 2 >= written.len());
        assert!(left.iter().all(|entry| written.contains(entry)));
    }
}

fn alone(bytes: &[u8]) -> (Vec<CallEntry>, usize) {
    let (found, _) = parse(bytes);
    (found.entries.into_iter().map(|(entry, _)| entry).collect(), found.damaged)
}
