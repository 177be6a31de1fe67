//! The forms in which a value occurs: plain, base64, percent-encoded, in JSON, with the line ends of a terminal.

use crate::wiped::wipe;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::borrow::Cow;

/// The length of a line that `base64` prints.
const BASE64_LINE_LEN: usize = 76;

/// Characters of base64 beside a form that hold some bits of the value.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Partial {
    pub(crate) before: bool,
    pub(crate) after: bool,
}

/// Lists the forms of a value, some of them more than once.
pub(crate) fn forms(value: &[u8]) -> Vec<(Vec<u8>, Partial)> {
    let mut forms = vec![(value.to_vec(), Partial::default())];
    // Bytes that are not text are replaced before a text is redacted.
    if let Cow::Owned(text) = String::from_utf8_lossy(value) {
        forms.push((text.into_bytes(), Partial::default()));
    }
    for shift in 0..3 {
        forms.extend(base64_forms(value, shift));
    }
    let mut whole = STANDARD_NO_PAD.encode(value).into_bytes();
    if whole.len() > BASE64_LINE_LEN {
        forms.push((whole.chunks(BASE64_LINE_LEN).collect::<Vec<_>>().join(&b'\n'), Partial::default()));
    }
    wipe(&mut whole);
    forms.extend(percent_forms(value).into_iter().chain(line_forms(value)).map(|form| (form, Partial::default())));
    forms
}

/// Encodes a value that `shift` bytes precede, in both alphabets, without the characters that depend on its neighbours.
fn base64_forms(value: &[u8], shift: usize) -> [(Vec<u8>, Partial); 2] {
    let mut shifted = Vec::with_capacity(shift + value.len());
    shifted.resize(shift, 0);
    shifted.extend_from_slice(value);
    let (first, end) = ((shift * 8).div_ceil(6), shifted.len() * 8 / 6);
    let partial = Partial { before: shift > 0, after: shifted.len() * 8 % 6 != 0 };
    let encoded = [STANDARD_NO_PAD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)];
    wipe(&mut shifted);
    encoded.map(|encoded| {
        let mut encoded = encoded.into_bytes();
        let form = encoded[first..end].to_vec();
        wipe(&mut encoded);
        (form, partial)
    })
}

/// Percent-encodes a value in the ways of `encodeURIComponent`, of Python's `quote`, and of forms.
fn percent_forms(value: &[u8]) -> Vec<Vec<u8>> {
    const UNRESERVED: &[u8] = b"-_.~";
    const COMPONENT: &[u8] = b"-_.~!*'()";
    const PATH: &[u8] = b"-_.~/";
    const UPPER: &[u8; 16] = b"0123456789ABCDEF";
    const LOWER: &[u8; 16] = b"0123456789abcdef";
    let mut forms = Vec::new();
    for (kept, space) in [(UNRESERVED, None), (UNRESERVED, Some(b'+')), (COMPONENT, None), (PATH, None)] {
        for hex in [UPPER, LOWER] {
            let mut form = Vec::with_capacity(value.len() * 3);
            for &byte in value {
                match (byte, space) {
                    (b' ', Some(space)) => form.push(space),
                    _ if byte.is_ascii_alphanumeric() || kept.contains(&byte) => form.push(byte),
                    _ => form.extend([b'%', hex[usize::from(byte >> 4)], hex[usize::from(byte & 15)]]),
                }
            }
            forms.push(form);
        }
    }
    forms
}

/// Writes a value as JSON does, and with the line ends of a terminal.
fn line_forms(value: &[u8]) -> [Vec<u8>; 2] {
    let mut json = Vec::with_capacity(value.len() * 2);
    let mut terminal = Vec::with_capacity(value.len() * 2);
    for &byte in value {
        match byte {
            b'\n' => json.extend(b"\\n"),
            b'\r' => json.extend(b"\\r"),
            b'\t' => json.extend(b"\\t"),
            b'"' | b'\\' => json.extend([b'\\', byte]),
            _ => json.push(byte),
        }
        if byte == b'\n' && terminal.last() != Some(&b'\r') {
            terminal.push(b'\r');
        }
        terminal.push(byte);
    }
    [json, terminal]
}
