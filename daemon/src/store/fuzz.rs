//! Entry points for fuzzing: reads arbitrary bytes as the checksummed files beside a record.

use super::record::RequestDigest;
use super::requests::{self, AnsweredRequest, MAX_REQUESTS};
use toold_format::writes;

/// Reads the bytes as `requests` and as `writes`, and as the content of files that were written. Panics only on a bug.
pub fn files(bytes: &[u8]) {
    requests_file(bytes);
    writes_file(bytes);
}

fn requests_file(bytes: &[u8]) {
    let read = requests::decode(bytes);
    assert!(read.all.len() + read.damaged <= read.lines && read.all.len() <= MAX_REQUESTS);
    reads_back(&read.all);
    let text = String::from_utf8_lossy(bytes);
    let request =
        |id: &str| AnsweredRequest { id: id.to_owned(), digest: RequestDigest::new(id.len() as u64 % 3 * 0xabc) };
    let mut all: Vec<AnsweredRequest> = text.split('\0').map(request).collect();
    all.truncate(MAX_REQUESTS);
    let mut file = reads_back(&all);
    flip(&mut file, bytes.len() as u64 * 37);
    let damaged = requests::decode(&file);
    let mut left = all.iter();
    assert!(damaged.all.iter().all(|found| left.any(|known| known == found)), "none is made up, and the order stays");
    assert!(damaged.all.len() + 2 >= all.len(), "a flipped bit costs at most the two ids that it joins");
}

/// Writes the requests and reads them again. Returns the file.
fn reads_back(all: &[AnsweredRequest]) -> Vec<u8> {
    let file: String = all.iter().map(|request| requests::line(request).expect("a string is JSON")).collect();
    let read = requests::decode(file.as_bytes());
    assert_eq!((read.all.as_slice(), read.lines, read.damaged), (all, all.len(), 0));
    file.into_bytes()
}

fn writes_file(bytes: &[u8]) {
    if let Some(entries) = writes::entries(bytes) {
        assert!(entries.len().is_multiple_of(writes::ENTRY_LEN));
    }
    let (rows, _) = bytes.as_chunks::<{ writes::ENTRY_LEN }>();
    let rows = rows.as_flattened();
    let mut file = [writes::header(rows).as_slice(), rows].concat();
    let entries = writes::entries(&file).expect("a file that was written is whole");
    assert_eq!(entries, rows);
    for row in rows.as_chunks::<{ writes::ENTRY_LEN }>().0 {
        let id = row.first_chunk().expect("an entry begins with an id");
        let (done, _) = writes::find(entries, id).expect("every entry is found");
        assert_eq!(done & writes::FINISHED, 0, "the number is without the mark");
    }
    flip(&mut file, bytes.len() as u64 * 37);
    assert_eq!(writes::entries(&file), None, "a flipped bit is noticed");
}

/// Flips the bit that `number` selects.
fn flip(file: &mut [u8], number: u64) {
    let bits = file.len() as u64 * 8;
    if let Some(bit) = number.checked_rem(bits) {
        file[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}
