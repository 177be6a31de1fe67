//! Finds the newest state of one process in the whole journal, for a record whose checkpoint is damaged.

use super::journal::Journal;
use super::record_reader::{ReadStep, RecordReader};
use std::io;

impl Journal {
    /// Returns number and state of the last event of `process`. Reads every segment, the newest first.
    pub fn newest_state(&self, process: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
        for segment in self.segments().iter().rev() {
            let file = match segment.open() {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let mut reader = RecordReader::new(&file, 0, segment.len());
            let (mut above, mut newest) = (segment.first.saturating_sub(1), None);
            while let Some(step) = reader.next(above)? {
                let ReadStep::Record { record, .. } = step else { continue };
                above = record.header.seq;
                // An event about a process that is not its own has no state.
                if record.header.process == process && !record.state.is_empty() {
                    newest = Some((above, record.state.to_vec()));
                }
            }
            if newest.is_some() {
                return Ok(newest);
            }
        }
        Ok(None)
    }
}
