//! `fs.read`: lines or bytes of a regular file, and facts of the whole file.

use super::content::{self, FileFacts, FilePage};
use super::error::FsError;
use super::resolve::{Resolved, absolute, resolve};
use super::roots::{Access, Limits};
use crate::config::policy::Fs;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use toold_proto::files::{Charset, FsReadParams, FsReadResult};
use toold_proto::params::Encoding;

const DEFAULT_LINES: u64 = 500;
const MAX_LINES: u64 = 2000;
const BUFFER_LEN: usize = 64 * 1024;
/// The longest character in bytes, so a page of characters is at most this many times longer.
const MAX_CHAR_LEN: u64 = 4;

/// Reads a page of a file.
pub fn read(call: &FsReadParams, limits: Option<&Limits>, config: &Fs) -> Result<FsReadResult, FsError> {
    let (offset, limit) = (call.offset.unwrap_or(1), call.limit.unwrap_or(DEFAULT_LINES));
    if offset == 0 {
        return Err(FsError::param("offset", "must be at least 1: the first line"));
    }
    if limit == 0 || limit > MAX_LINES {
        return Err(FsError::param("limit", format!("must be 1 to {MAX_LINES}, not {limit}")));
    }
    if call.from_byte.is_some() && (call.encoding != Encoding::Base64 || call.offset.is_some() || call.limit.is_some())
    {
        let why = "needs encoding: \"base64\", and no offset or limit";
        return Err(FsError::param("from_byte", why));
    }
    let asked = absolute(&call.path, call.cwd.as_deref())?;
    let file = resolve(limits, &asked, Access::Read)?;
    let (fd, stat) = file.open_regular()?;
    let reader = FileReader { file: &file, fd: &fd };
    if call.from_byte.is_some_and(|from| i64::try_from(from).is_err()) {
        return Err(FsError::param("from_byte", "is more than a file can have"));
    }
    if let Some(from) = call.from_byte {
        return read_bytes(&reader, from, stat.st_size as u64, config);
    }
    if stat.st_size as u64 > config.max_file_bytes {
        let (path, bytes) = (file.path.clone(), stat.st_size as u64);
        return Err(FsError::TooLarge { path, bytes, max: config.max_file_bytes });
    }
    read_lines(&reader, (offset, limit), call.encoding, config)
}

/// Returns the hash of a whole file. None: there is no such file.
pub fn sha256(call: &FsReadParams, limits: Option<&Limits>, config: &Fs) -> Result<Option<String>, FsError> {
    let asked = absolute(&call.path, call.cwd.as_deref())?;
    let file = resolve(limits, &asked, Access::Read)?;
    if file.stat.is_none() {
        return Ok(None);
    }
    let (fd, _) = file.open_regular()?;
    let mut facts = FileFacts::default();
    FileReader { file: &file, fd: &fd }.pass(0, config.max_file_bytes, |part| {
        facts.update(part);
        true
    })?;
    Ok(Some(facts.sha256()))
}

/// An open file.
struct FileReader<'a> {
    file: &'a Resolved,
    fd: &'a OwnedFd,
}

impl FileReader<'_> {
    /// Passes the bytes from `at` on to `each`, until it returns false or the file ends. Returns an error if there are more than
    /// `max` bytes: files of /proc have no size before they are read.
    fn pass(&self, at: u64, max: u64, mut each: impl FnMut(&[u8]) -> bool) -> Result<(), FsError> {
        let mut buffer = vec![0; BUFFER_LEN];
        let mut position = at;
        loop {
            let read = match rustix::io::pread(self.fd.as_fd(), &mut buffer[..], position) {
                Ok(read) => read,
                Err(Errno::INTR) => continue,
                Err(e) => return Err(FsError::io("read", &self.file.path, e)),
            };
            if read == 0 {
                return Ok(());
            }
            position += read as u64;
            if position - at > max {
                return Err(FsError::TooLarge { path: self.file.path.clone(), bytes: position, max });
            }
            if !each(&buffer[..read]) {
                return Ok(());
            }
        }
    }
}

fn read_bytes(reader: &FileReader<'_>, from: u64, size: u64, config: &Fs) -> Result<FsReadResult, FsError> {
    // Three bytes are four characters.
    let max = usize::try_from((config.read_max_chars / 4 * 3).max(3)).unwrap_or(usize::MAX);
    let (mut start, mut bytes) = (Vec::new(), Vec::new());
    reader.pass(0, u64::MAX, |part| {
        start.extend_from_slice(part);
        false
    })?;
    let mut has_more = false;
    reader.pass(from, u64::MAX, |part| {
        let room = max - bytes.len();
        has_more = part.len() > room;
        bytes.extend_from_slice(&part[..part.len().min(room)]);
        !has_more
    })?;
    let (charset, mark) = content::charset(&start);
    Ok(FsReadResult {
        path: reader.file.path.to_string_lossy().into_owned(),
        content: STANDARD.encode(&bytes),
        total_lines: None,
        bytes: size,
        sha256: None,
        truncated: has_more,
        next_offset: None,
        next_byte: has_more.then_some(from + bytes.len() as u64),
        line_ending: None,
        bom: mark > 0,
        charset,
        binary: content::is_binary(&start),
        lossy: false,
    })
}

fn read_lines(
    reader: &FileReader<'_>,
    (offset, limit): (u64, u64),
    encoding: Encoding,
    config: &Fs,
) -> Result<FsReadResult, FsError> {
    let max_bytes = usize::try_from(config.read_max_chars.saturating_mul(MAX_CHAR_LEN)).unwrap_or(usize::MAX);
    let new_page = |terminator| FilePage::new(terminator, offset, limit, max_bytes);
    let mut facts = FileFacts::default();
    let mut page = new_page(b'\n');
    let (mut charset, mut mark, mut is_binary) = (Charset::Utf8, 0, false);
    // The whole text of a file in UTF-16: its lines are found after decoding.
    let mut utf16: Vec<u8> = Vec::new();
    reader.pass(0, config.max_file_bytes, |part| {
        let is_first = facts.bytes == 0;
        facts.update(part);
        if is_first {
            (charset, mark) = content::charset(part);
            is_binary = content::is_binary(part);
        }
        match charset {
            Charset::Utf8 => page.update(&part[if is_first { mark } else { 0 }..]),
            Charset::Utf16Le | Charset::Utf16Be => utf16.extend_from_slice(part),
        }
        true
    })?;
    let (sha256, bytes) = (facts.sha256(), facts.bytes);
    let mut ends = facts.ends;
    let mut lossy = false;
    if charset != Charset::Utf8 && encoding == Encoding::Text {
        let (text, is_lossy) = content::decode_utf16(&utf16[mark..], charset);
        ends = content::LineEnds::of(text.as_bytes());
        page = new_page(ends.terminator());
        page.update(text.as_bytes());
        lossy = is_lossy;
    } else if charset != Charset::Utf8 {
        page.update(&utf16);
    } else if ends.terminator() != b'\n' {
        page = new_page(ends.terminator());
        let mut at = 0;
        reader.pass(0, config.max_file_bytes, |part| {
            page.update(&part[if at == 0 { mark } else { 0 }..]);
            at += part.len();
            !page.is_complete()
        })?;
    }
    let total_lines = ends.lines();
    let last = offset.saturating_sub(1).saturating_add(limit);
    let next_offset = (last < total_lines).then_some(last + 1);
    let content = match encoding {
        Encoding::Text if is_binary => String::new(),
        Encoding::Text => {
            let text = String::from_utf8_lossy(&page.bytes);
            lossy |= matches!(text, std::borrow::Cow::Owned(_)) && page.total_bytes == page.bytes.len() as u64;
            check_length(&page, &text, offset, config)?;
            text.into_owned()
        }
        Encoding::Base64 => {
            let chars = page.total_bytes.div_ceil(3) * 4;
            if chars > config.read_max_chars {
                return Err(too_long(&page, chars, offset, 0, config));
            }
            STANDARD.encode(&page.bytes)
        }
    };
    Ok(FsReadResult {
        path: reader.file.path.to_string_lossy().into_owned(),
        content,
        total_lines: Some(total_lines),
        bytes,
        sha256: Some(sha256),
        truncated: next_offset.is_some() || (is_binary && encoding == Encoding::Text),
        next_offset: next_offset.filter(|_| !is_binary || encoding == Encoding::Base64),
        next_byte: None,
        line_ending: ends.kind(),
        bom: mark > 0,
        charset,
        binary: is_binary,
        lossy,
    })
}

/// Returns an error if the page has too many characters, with the number of lines that fit.
fn check_length(page: &FilePage, text: &str, offset: u64, config: &Fs) -> Result<(), FsError> {
    let (max, chars) = (config.read_max_chars, page.total_chars);
    if chars <= max && page.total_bytes == page.bytes.len() as u64 {
        return Ok(());
    }
    let (mut fitting, mut counted) = (0, 0);
    for line in text.split_inclusive('\n') {
        counted += line.chars().count() as u64;
        if counted > max {
            break;
        }
        fitting += 1;
    }
    Err(too_long(page, chars, offset, fitting, config))
}

fn too_long(page: &FilePage, chars: u64, first_line: u64, fitting_lines: u64, config: &Fs) -> FsError {
    FsError::PageTooLong { first_line, lines: page.lines.max(1), chars, max: config.read_max_chars, fitting_lines }
}
