//! Entry points for fuzzing: reads arbitrary bytes as a log's files in every way.

use super::lines::LineQuery;
use super::reader::Log;
use crate::matcher::BoundedRegex;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use toold_format::Stream;

/// Reads `log` with the index `idx`. Panics only on a bug: bytes that are not in the log, or a page without progress.
pub fn pair(log: &[u8], idx: &[u8]) -> io::Result<()> {
    let reader = Log::of_files(0, memory(log)?, Some(memory(idx)?))?;
    let counts = reader.recount()?;
    assert_eq!((reader.end(), counts.end), (log.len() as u64, log.len() as u64));
    let regex = Arc::new(BoundedRegex::one("a").map_err(io::Error::other)?);
    for stream in [None, Some(Stream::Stdout), Some(Stream::Stderr)] {
        let (mut at, mut read) = (0, 0);
        while at < reader.end() {
            let page = reader.read(at, 50, stream)?;
            assert!(page.next > at, "a page makes progress");
            at = page.next;
            read += page.bytes.len();
        }
        assert!(read == log.len() || (stream.is_some() && read < log.len()), "merged pages are the log");
        assert!(log.ends_with(&reader.tail(50, None)?.bytes), "the tail is the log's end");
        reader.tail(50, stream)?;
        for offset in [None, Some(0), Some(counts.lines() / 2)] {
            for grep in [None, Some(&regex)] {
                reader.lines(&LineQuery { offset, limit: 10, stream, grep, ..LineQuery::default() }, &counts)?;
            }
        }
    }
    let covered: u64 = reader.spans(0, reader.end())?.iter().map(|span| span.to - span.from).sum();
    assert!(covered == reader.end() || covered == 0, "every byte has a stream, or none has");
    let known = reader.with_only(Some(Stream::Stderr));
    let covered: u64 = known.spans(0, known.end())?.iter().map(|span| span.to - span.from).sum();
    assert_eq!(covered, known.end(), "every byte has a stream if there is only one");
    Ok(())
}

fn memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"toold-fuzz", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}
