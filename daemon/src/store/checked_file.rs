//! Small files with a checksum: one line of JSON after it. A change of any byte is found.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use toold_format::fnv1a;

/// Length of the checksum in hexadecimal digits, with the newline.
pub const SUM_LEN: usize = 17;

/// Reads a file of at most `max_len` bytes. A link is not followed.
pub fn read<T: DeserializeOwned>(path: &Path, max_len: u64) -> io::Result<T> {
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let mut bytes = Vec::new();
    file.take(max_len).read_to_end(&mut bytes)?;
    decode(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "does not match its checksum"))
}

/// Returns the bytes of a file.
pub fn encode(content: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_string(content)?;
    Ok(format!("{:016x}\n{json}\n", fnv1a(json.as_bytes())).into_bytes())
}

/// Returns the content of a file. None: it is damaged.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (sum, json) = bytes.split_at_checked(SUM_LEN)?;
    let json = json.strip_suffix(b"\n")?;
    if sum != format!("{:016x}\n", fnv1a(json)).as_bytes() {
        return None;
    }
    serde_json::from_slice(json).ok()
}
