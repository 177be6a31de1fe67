//! `fs.write`: the whole content of a file.

use super::content::hex_sha256;
use super::error::{FsError, Refusal};
use super::replace::{Before, NewContent, Writers, appeared, changed, check_links, replace, size};
use super::resolve::{Resolved, absolute, resolve};
use super::roots::{Access, Limits};
use crate::config::policy::Fs;
use crate::text::{NO_FILE, unified_diff};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use toold_proto::files::{FsWriteParams, FsWriteResult};

/// The largest side of a diff, and the longest diff in an answer.
const MAX_SIDE_BYTES: usize = 8 << 20;
const MAX_DIFF_BYTES: usize = 256 * 1024;

/// Writes a file. Without `apply` it only checks, and returns what would happen.
pub fn write(
    call: &FsWriteParams,
    limits: Option<&Limits>,
    config: &Fs,
    writers: &Writers,
    apply: bool,
) -> Result<FsWriteResult, FsError> {
    let bytes = match (&call.content, &call.content_base64) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(encoded)) => {
            STANDARD.decode(encoded).map_err(|e| FsError::param("content_base64", format!("is not base64: {e}")))?
        }
        _ => return Err(FsError::param("content", "give content or content_base64, and not both")),
    };
    let before = call.expect.as_deref().map_or(Ok(Before::Any), expectation)?;
    let mode = call.mode.as_deref().map(octal_mode).transpose()?;
    let asked = absolute(&call.path, call.cwd.as_deref())?;
    // In the order of turns: the file is looked at when no other call writes it.
    let target = resolve(limits, &asked, Access::Write)?;
    if limits.is_some() && mode.is_some_and(|mode| mode & 0o6000 != 0) {
        return Err(FsError::Refused { path: target.path, refusal: Refusal::SetId });
    }
    let _turn = writers.turn(&target.path);
    let target = resolve(limits, &asked, Access::Write)?;
    let old = match &target.stat {
        None => None,
        Some(stat) => {
            target.check_regular(stat)?;
            check_links(&target, call.hard_links)?;
            read_old(&target, config, &before)?
        }
    };
    match (&before, target.stat.is_some(), old.as_deref().map(hex_sha256)) {
        (Before::Absent, true, _) => return Err(appeared(&target)),
        (Before::Sha256(expected), _, found) if found.as_ref() != Some(expected) => {
            return Err(changed(&target, found));
        }
        _ => {}
    }
    if !target.missing_dirs.is_empty() && call.create_dirs == Some(false) {
        return Err(FsError::param("path", "is in a directory that does not exist; create_dirs: true creates it"));
    }
    let is_same = old.as_deref() == Some(bytes.as_slice()) && mode.is_none();
    let new = NewContent { bytes: &bytes, mode, before, create_dirs: true };
    let not_kept = if is_same || !apply { Vec::new() } else { replace(&target, &new)? };
    Ok(FsWriteResult {
        path: target.path.to_string_lossy().into_owned(),
        bytes: bytes.len() as u64,
        sha256: hex_sha256(&bytes),
        before_sha256: old.as_deref().map(hex_sha256),
        diff: match (&target.stat, &old) {
            // Too large to be read.
            (Some(_), None) => None,
            _ => diff(&target, call.cwd.as_deref(), old.as_deref(), &bytes),
        },
        created: target.stat.is_none(),
        not_kept,
    })
}

/// Returns the unified diff of a change. None: a side is binary, or it is too large.
pub(super) fn diff(target: &Resolved, cwd: Option<&str>, old: Option<&[u8]>, new: &[u8]) -> Option<String> {
    let before = old.unwrap_or_default();
    if before.len() > MAX_SIDE_BYTES || new.len() > MAX_SIDE_BYTES {
        return None;
    }
    let below = cwd.and_then(|cwd| target.path.strip_prefix(cwd).ok());
    let shown = below.unwrap_or_else(|| target.path.strip_prefix("/").unwrap_or(&target.path));
    let name = |side: &str| format!("{side}/{}", Path::new(shown).display());
    let before_name = if old.is_some() { name("a") } else { NO_FILE.to_owned() };
    let diff = unified_diff(&before_name, &name("b"), before, new);
    (!diff.binary && diff.text.len() <= MAX_DIFF_BYTES).then_some(diff.text)
}

/// Reads the old content. None: it is too large, and no hash is expected.
fn read_old(target: &Resolved, config: &Fs, before: &Before) -> Result<Option<Vec<u8>>, FsError> {
    let bytes = target.stat.as_ref().map_or(0, size);
    if bytes > config.max_file_bytes {
        return match before {
            Before::Sha256(_) => {
                Err(FsError::TooLarge { path: target.path.clone(), bytes, max: config.max_file_bytes })
            }
            Before::Any | Before::Absent => Ok(None),
        };
    }
    read_whole(target, config).map(Some)
}

/// Reads a file that is not too large.
pub(super) fn read_whole(target: &Resolved, config: &Fs) -> Result<Vec<u8>, FsError> {
    let (fd, stat) = target.open_regular()?;
    let too_large = |bytes| FsError::TooLarge { path: target.path.clone(), bytes, max: config.max_file_bytes };
    if size(&stat) > config.max_file_bytes {
        return Err(too_large(size(&stat)));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size(&stat)).unwrap_or(0));
    // A file may grow while it is read.
    let limit = config.max_file_bytes.saturating_add(1);
    File::from(fd).take(limit).read_to_end(&mut bytes).map_err(|e| FsError::io("read", &target.path, e))?;
    if bytes.len() as u64 > config.max_file_bytes { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
}

/// Reads `expect`.
pub(super) fn expectation(expect: &str) -> Result<Before, FsError> {
    let is_hash = expect.len() == 64 && expect.bytes().all(|b| b.is_ascii_hexdigit());
    match expect {
        "absent" => Ok(Before::Absent),
        hash if is_hash => Ok(Before::Sha256(hash.to_ascii_lowercase())),
        _ => Err(FsError::param("expect", "must be a sha256 in hexadecimal, or \"absent\"")),
    }
}

/// Reads `mode`.
fn octal_mode(text: &str) -> Result<u32, FsError> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    let is_octal = (1..=5).contains(&digits.len()) && digits.bytes().all(|b| matches!(b, b'0'..=b'7'));
    match u32::from_str_radix(digits, 8) {
        Ok(mode) if is_octal && mode <= 0o7777 => Ok(mode),
        _ => Err(FsError::param("mode", "must be permissions in octal: \"644\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_octal_text() {
        for (text, mode) in [("644", 0o644), ("0755", 0o755), ("0o600", 0o600), ("0", 0)] {
            assert_eq!(octal_mode(text).expect(text), mode);
        }
        for text in ["", "8", "rw", "-1", "17777", "+7", "000644"] {
            assert!(octal_mode(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_expectation_is_a_hash_or_absent() {
        assert_eq!(expectation("absent").expect("known"), Before::Absent);
        let hash = "A".repeat(64);
        assert_eq!(expectation(&hash).expect("a hash"), Before::Sha256("a".repeat(64)));
        for text in ["", "Absent", "g".repeat(64).as_str(), "aa"] {
            assert!(expectation(text).is_err(), "{text}");
        }
    }
}
