//! The digest of a stage: of every change, in its order. What a person has seen in a diff is what a commit with its digest does.

use super::scan::{Side, StagedChange};
use super::tree::EntryKind;
use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;

/// The version of the bytes that are hashed.
const VERSION: &[u8] = b"toold-stage-1";

/// Returns the digest of changes in hexadecimal digits.
pub fn digest(changes: &[StagedChange]) -> String {
    let mut hash = Sha256::new();
    hash.update(VERSION);
    for change in changes {
        hash.update((change.root as u64).to_le_bytes());
        bytes(&mut hash, change.path.as_os_str().as_bytes());
        // Not the side below: if that changes, the commit is a conflict.
        hash.update([change.form() as u8]);
        side(&mut hash, change.after.as_ref());
    }
    let digest: [u8; 32] = hash.finalize().into();
    hex(&digest)
}

/// Returns a hash in hexadecimal digits.
pub fn hex(hash: &[u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hashes bytes with their length, so that no two lists of them have the same digest.
fn bytes(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn side(hash: &mut Sha256, side: Option<&Side>) {
    let Some(side) = side else {
        hash.update([0]);
        return;
    };
    let kind = match side.entry.kind {
        EntryKind::File => 1,
        EntryKind::Dir => 2,
        EntryKind::Link => 3,
        EntryKind::Whiteout | EntryKind::Special => 4,
    };
    hash.update([kind]);
    hash.update(side.entry.mode().to_le_bytes());
    let (uid, gid) = side.entry.owner();
    hash.update(uid.to_le_bytes());
    hash.update(gid.to_le_bytes());
    bytes(hash, side.sha256.as_ref().map_or(&[], |sha256| sha256.as_slice()));
    bytes(hash, side.target.as_ref().map_or(&[], |target| target.as_os_str().as_bytes()));
    hash.update((side.xattrs.len() as u64).to_le_bytes());
    for (name, value) in &side.xattrs {
        bytes(hash, name);
        bytes(hash, value);
    }
}
