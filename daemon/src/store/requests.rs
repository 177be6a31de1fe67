//! The file `requests` beside a record: the `request_id`s that were answered with this process and did not start it.
//!
//! A line has a checksum in 16 hex digits, a space, the id as a JSON string, a space, and the digest of what the request would
//! have run in 16 hex digits; earlier versions wrote no digest. The checksum is FNV-1a of the id and, if there is a digest, its
//! 8 bytes. A file of its own, because the record's page is full and its spec never changes. Most processes have none.

use super::record::{RequestDigest, open_regular};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use toold_format::fnv1a;

/// Number of remembered requests per process that they did not start. The oldest is dropped first.
pub const MAX_REQUESTS: usize = 1024;
/// Number of lines from which the file is replaced by one with the remembered ids.
const MAX_LINES: usize = 2 * MAX_REQUESTS;
const FILE: &str = "requests";
const NEW_FILE: &str = "requests.new";

/// A request that was answered with a process which it did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredRequest {
    pub id: String,
    pub digest: Option<RequestDigest>,
}

/// The remembered requests of one process.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Oldest first.
    pub all: Vec<AnsweredRequest>,
    /// Lines in the file, also of ids that are not remembered any more.
    pub lines: usize,
    /// Lines that cannot be read.
    pub damaged: usize,
}

pub(super) fn line(request: &AnsweredRequest) -> io::Result<String> {
    let digest = request.digest.map(|digest| format!(" {digest:016x}")).unwrap_or_default();
    Ok(format!("{:016x} {}{digest}\n", checksum(request), serde_json::to_string(&request.id)?))
}

fn checksum(request: &AnsweredRequest) -> u64 {
    match request.digest {
        Some(digest) => fnv1a(&[request.id.as_bytes(), &digest.get().to_le_bytes()].concat()),
        None => fnv1a(request.id.as_bytes()),
    }
}

/// Reads one line without its end. None: it is damaged.
fn parse(line: &[u8]) -> Option<AnsweredRequest> {
    let (sum, rest) = line.split_at_checked(17)?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<String>();
    let id = values.next()?.ok()?;
    let digest = match &rest[values.byte_offset()..] {
        [] => None,
        text => Some(u64::from_str_radix(std::str::from_utf8(text.strip_prefix(b" ")?).ok()?, 16).ok()?),
    };
    let digest = digest.map(|digest| RequestDigest::new(digest).ok_or(())).transpose().ok()?;
    let request = AnsweredRequest { id, digest };
    (sum == format!("{:016x} ", checksum(&request)).as_bytes()).then_some(request)
}

/// Reads the requests of the process in `dir`. A line that a crash cut was never answered, and does not count as
/// damaged.
pub fn read(dir: &Path) -> io::Result<Requests> {
    let mut bytes = Vec::new();
    match open_regular(&dir.join(FILE)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Requests::default()),
        file => file?.read_to_end(&mut bytes)?,
    };
    Ok(decode(&bytes))
}

pub(super) fn decode(bytes: &[u8]) -> Requests {
    let mut all = Requests::default();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        all.lines += 1;
        match (parse(line.trim_ascii_end()), line.ends_with(b"\n")) {
            (Some(request), _) => all.all.push(request),
            (None, true) => all.damaged += 1,
            (None, false) => {}
        }
    }
    all.all.drain(..all.all.len().saturating_sub(MAX_REQUESTS));
    all
}

/// Adds a request. `remembered` has the earlier ones, oldest first, and `lines` counts the lines in the file. Returns the
/// lines in the file afterwards. `durable`: waits for the disk.
pub fn append(
    dir: &Path,
    request: &AnsweredRequest,
    remembered: &[AnsweredRequest],
    lines: usize,
    durable: bool,
) -> io::Result<usize> {
    let path = dir.join(FILE);
    if lines >= MAX_LINES {
        let kept = &remembered[remembered.len().saturating_sub(MAX_REQUESTS)..];
        let text = kept.iter().chain([request]).map(line).collect::<io::Result<String>>()?;
        let new = dir.join(NEW_FILE);
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        if durable {
            file.sync_data()?;
        }
        std::fs::rename(&new, &path)?;
        sync_dir(dir, durable)?;
        return Ok(kept.len() + 1);
    }
    let file = File::options().read(true).append(true).create(true).open(&path)?;
    let end = file.metadata()?.len();
    let mut last = [b'\n'];
    if end > 0 {
        file.read_exact_at(&mut last, end - 1)?;
    }
    // A line that a crash or a full disk has cut must not swallow this one.
    let start = if last == [b'\n'] { "" } else { "\n" };
    (&file).write_all(format!("{start}{}", line(request)?).as_bytes())?;
    if durable {
        file.sync_data()?;
        if end == 0 {
            sync_dir(dir, durable)?;
        }
    }
    Ok(lines + 1)
}

fn sync_dir(dir: &Path, durable: bool) -> io::Result<()> {
    if durable { File::open(dir)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(dir: &Path) -> Vec<AnsweredRequest> {
        read(dir).expect("readable").all
    }

    fn request(id: &str) -> AnsweredRequest {
        // Those of earlier versions have none.
        let digest = RequestDigest::new(id.len() as u64 % 3 * 0xabc);
        AnsweredRequest { id: id.into(), digest }
    }

    #[test]
    fn requests_read_back_in_order_whatever_is_in_them() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let dir = dir.path();
        assert_eq!(read(dir).expect("an absent file is empty"), Requests::default());
        let requests = ["a", "two parts", "line\nbreak", "网站", "\"quoted\""].map(request);
        for (lines, request) in requests.iter().enumerate() {
            assert_eq!(append(dir, request, &[], lines, true).expect("writable"), lines + 1);
        }
        assert_eq!(all(dir), requests);
    }

    #[test]
    fn a_damaged_line_is_counted_and_a_cut_one_swallows_nothing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let dir = dir.path();
        for (lines, id) in ["one", "two", "three"].iter().enumerate() {
            append(dir, &request(id), &[], lines, false).expect("writable");
        }
        let mut bytes = std::fs::read(dir.join(FILE)).expect("readable");
        let at = bytes.windows(3).position(|w| w == b"two").expect("it is there");
        bytes[at] ^= 1;
        bytes.truncate(bytes.len() - 4);
        std::fs::write(dir.join(FILE), &bytes).expect("writable");
        assert_eq!(read(dir).expect("readable"), Requests { all: vec![request("one")], lines: 3, damaged: 1 });
        append(dir, &request("four"), &[], 3, false).expect("writable");
        assert_eq!(all(dir), ["one", "four"].map(request));
    }

    #[test]
    fn the_file_is_bounded_and_keeps_the_newest() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let dir = dir.path();
        let (mut remembered, mut lines) = (Vec::new(), 0);
        for n in 0..5 * MAX_REQUESTS {
            let request = request(&format!("request-{n}"));
            lines = append(dir, &request, &remembered, lines, false).expect("writable");
            remembered.push(request);
            assert!(lines <= MAX_LINES);
        }
        remembered.drain(..remembered.len() - MAX_REQUESTS);
        assert_eq!(all(dir), remembered);
        assert!(!dir.join(NEW_FILE).exists());
    }
}
