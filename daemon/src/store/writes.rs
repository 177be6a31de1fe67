//! Readers of the named writes that a shim stored at the exit: in the record, and in the file `writes` if there were more.

use super::record::Record;
use std::io;
use std::path::Path;
use toold_format::writes;

/// Returns the bytes of a named write. None: the shim did not see it, or does not remember it.
pub fn find(dir: &Path, id: &[u8; 16]) -> Option<u64> {
    let recorded = Record::open(dir).ok().and_then(|record| record.written(id));
    recorded.or_else(|| {
        let file = std::fs::read(dir.join(writes::FILE_NAME)).ok()?;
        writes::find(writes::entries(&file)?, id).map(|(done, _)| done)
    })
}

/// Describes the damage to the file, if there is any.
pub fn check(dir: &Path) -> Option<String> {
    match std::fs::read(dir.join(writes::FILE_NAME)) {
        Ok(file) if writes::entries(&file).is_some() => None,
        Ok(_) => Some(format!("{}: the checksum is wrong; only the last write ids are remembered", writes::FILE_NAME)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => Some(format!("{}: {e}", writes::FILE_NAME)),
    }
}
