//! Values that are known to be secret, and the search for them in every form (`forms`).

use crate::env_dump::SecretNames;
use crate::forms::{Partial, forms};
use crate::harmless;
use crate::spans::{Label, Span};
use crate::wiped::Wiped;
use memchr::memmem;
use std::fmt;
use std::ops::Range;

/// Shorter values are not searched: they would hide ordinary text.
const MIN_VALUE_LEN: usize = 8;
/// Longer forms are searched one by one, in linear time. The others are compared where their first bytes occur.
const MAX_COMPARED_LEN: usize = 256;
/// Labels are part of the redacted text, so they are short and plain.
const MAX_LABEL_LEN: usize = 64;
/// The bits of the filter, as a power of two: a hundred forms fill about 1 % of it.
const FILTER_BITS: u32 = 13;
const FILTER_CELLS: usize = 1 << (FILTER_BITS - 6);

/// Exact values that are hidden wherever they occur. They are in memory only, overwritten on drop and never printed.
#[derive(Default)]
pub struct KnownValues {
    labels: Vec<String>,
    /// Short forms, sorted by their first bytes.
    short: Vec<Form>,
    long: Vec<Form>,
    /// One bit per hash of the first bytes of a short form. Empty: there is none.
    filter: Vec<u64>,
}

/// A text that gives a value away.
struct Form {
    bytes: Wiped,
    label: usize,
    partial: Partial,
}

impl KnownValues {
    pub fn new() -> KnownValues {
        KnownValues::default()
    }

    /// Adds a value under a label such as `env:API_KEY`. White space around it is not part of it. Returns false if the value is
    /// too short to be searched.
    pub fn insert(&mut self, label: &str, value: &[u8]) -> bool {
        let value = value.trim_ascii();
        if value.len() < MIN_VALUE_LEN {
            return false;
        }
        let index = self.label_index(label);
        for (bytes, partial) in forms(value) {
            self.add_form(Form { bytes: Wiped::new(bytes), label: index, partial });
        }
        true
    }

    /// Adds a variable of an environment as `env:NAME` if its name is that of a secret and its value can be one.
    pub fn insert_env(&mut self, names: &SecretNames, name: &str, value: &str) -> bool {
        names.is_secret(name) && !harmless::is_harmless(value) && self.insert(&format!("env:{name}"), value.as_bytes())
    }

    /// Adds every value of another collection.
    pub fn extend_from(&mut self, other: &KnownValues) {
        for form in other.short.iter().chain(&other.long) {
            let label = self.label_index(&other.labels[form.label]);
            self.add_form(Form { bytes: Wiped::new(form.bytes.bytes().to_vec()), label, partial: form.partial });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    pub(crate) fn label(&self, index: usize) -> &str {
        &self.labels[index]
    }

    pub(crate) fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|known| known == label)
    }

    /// Appends the span of every occurrence.
    pub(crate) fn find(&self, text: &[u8], spans: &mut Vec<Span>) {
        let Some(last) = text.len().checked_sub(MIN_VALUE_LEN) else { return };
        if !self.filter.is_empty() {
            for at in 0..=last {
                let (cell, bit) = filter_place(&text[at..]);
                if self.filter[cell] & bit != 0 {
                    spans.extend(self.longest_at(text, at));
                }
            }
        }
        for form in &self.long {
            let found = memmem::find_iter(text, form.bytes.bytes());
            spans.extend(found.map(|at| form.span(text, at..at + form.bytes.bytes().len())));
        }
    }

    /// Appends the span of a value whose end is cut off by the end of the text, and of which more than `min` bytes are there.
    pub(crate) fn find_cut_end(&self, text: &[u8], min: usize, spans: &mut Vec<Span>) {
        for form in self.long.iter().filter(|form| form.bytes.bytes().len() > min + 1) {
            let bytes = form.bytes.bytes();
            let from = text.len().saturating_sub(bytes.len() - 1);
            let mut starts = memmem::find_iter(&text[from..], &bytes[..=min]).map(|at| from + at);
            if let Some(start) = starts.find(|start| bytes.starts_with(&text[*start..])) {
                spans.push(form.span(text, start..text.len()));
            }
        }
    }

    /// Appends the span of a value whose beginning is cut off by the start of the text, and of which more than `min` bytes are
    /// there.
    pub(crate) fn find_cut_start(&self, text: &[u8], min: usize, spans: &mut Vec<Span>) {
        for form in self.long.iter().filter(|form| form.bytes.bytes().len() > min + 1) {
            let bytes = form.bytes.bytes();
            let to = text.len().min(bytes.len() - 1);
            let last = &bytes[bytes.len() - min - 1..];
            let mut ends = memmem::rfind_iter(&text[..to], last).map(|at| at + last.len());
            if let Some(end) = ends.find(|end| bytes.ends_with(&text[..*end])) {
                spans.push(form.span(text, 0..end));
            }
        }
    }

    fn longest_at(&self, text: &[u8], at: usize) -> Option<Span> {
        let rest = &text[at..];
        let first = self.short.partition_point(|form| form.bytes.bytes()[..MIN_VALUE_LEN] < rest[..MIN_VALUE_LEN]);
        let same = self.short[first..].iter().take_while(|form| rest.starts_with(&form.bytes.bytes()[..MIN_VALUE_LEN]));
        let form =
            same.filter(|form| rest.starts_with(form.bytes.bytes())).max_by_key(|form| form.bytes.bytes().len())?;
        Some(form.span(text, at..at + form.bytes.bytes().len()))
    }

    fn label_index(&mut self, label: &str) -> usize {
        let label = plain_label(label);
        if let Some(index) = self.labels.iter().position(|known| *known == label) {
            return index;
        }
        self.labels.push(label);
        self.labels.len() - 1
    }

    fn add_form(&mut self, form: Form) {
        if form.bytes.bytes().len() > MAX_COMPARED_LEN {
            if !self.long.iter().any(|known| known.bytes.bytes() == form.bytes.bytes()) {
                self.long.push(form);
            }
            return;
        }
        let place = self.short.partition_point(|known| known.bytes.bytes() < form.bytes.bytes());
        if self.short.get(place).is_some_and(|known| known.bytes.bytes() == form.bytes.bytes()) {
            return;
        }
        self.filter.resize(FILTER_CELLS, 0);
        let (cell, bit) = filter_place(form.bytes.bytes());
        self.filter[cell] |= bit;
        self.short.insert(place, form);
    }
}

impl fmt::Debug for KnownValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownValues").field("labels", &self.labels).finish_non_exhaustive()
    }
}

impl Form {
    /// Widens a match by the characters that hold some of its bits, and by the padding.
    fn span(&self, text: &[u8], found: Range<usize>) -> Span {
        let Range { mut start, mut end } = found;
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
        if self.partial.before && start > 0 && is_base64(&text[start - 1]) {
            start -= 1;
        }
        if self.partial.after && text.get(end).is_some_and(is_base64) {
            end += 1;
        }
        if self.partial.after {
            end += text[end..].iter().take(2).take_while(|byte| **byte == b'=').count();
        }
        Span::new(start..end, Label::Known(self.label))
    }
}

/// Reduces a label to characters that no rule takes for a secret.
fn plain_label(label: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
    let plain: String = label.chars().take(MAX_LABEL_LEN).map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain.is_empty() { "value".into() } else { plain }
}

/// Returns the place in the filter of a text's first four bytes.
fn filter_place(text: &[u8]) -> (usize, u64) {
    let first = u32::from_le_bytes([text[0], text[1], text[2], text[3]]);
    let hash = first.wrapping_mul(0x9e37_79b1) >> (32 - FILTER_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

    const VALUE: &[u8] = b"k/7+?>pA ss~w0rd\xc3\xa9";

    fn hidden(known: &KnownValues, text: &str) -> Vec<String> {
        let mut spans = Vec::new();
        known.find(text.as_bytes(), &mut spans);
        crate::spans::merge(spans).iter().map(|span| text[span.start..span.end].to_string()).collect()
    }

    fn known(value: &[u8]) -> KnownValues {
        let mut known = KnownValues::new();
        assert!(known.insert("env:API_KEY", value));
        known
    }

    #[test]
    fn a_value_is_found_plain_in_base64_and_percent_encoded() {
        let known = known(VALUE);
        let plain = String::from_utf8_lossy(VALUE);
        let forms = [
            plain.to_string(),
            STANDARD.encode(VALUE),
            STANDARD_NO_PAD.encode(VALUE),
            URL_SAFE.encode(VALUE),
            URL_SAFE_NO_PAD.encode(VALUE),
            "k%2F7%2B%3F%3EpA%20ss~w0rd%C3%A9".into(),
            "k%2f7%2b%3f%3epA%20ss~w0rd%c3%a9".into(),
            "k/7%2B%3F%3EpA%20ss~w0rd%C3%A9".into(),
            "k%2F7%2B%3F%3EpA+ss~w0rd%C3%A9".into(),
        ];
        for form in forms {
            assert_eq!(hidden(&known, &format!("x={form};y")), [form.as_str()], "{form}");
        }
    }

    #[test]
    fn a_value_inside_of_other_text_is_found_in_base64_at_every_alignment() {
        let known = known(b"hunter2-hunter2");
        for before in 0..6 {
            for after in 0..6 {
                let text = [&b"bearer"[..before], b"hunter2-hunter2", &b"suffix"[..after]].concat();
                for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                    let found = hidden(&known, &encoded);
                    assert_eq!(found.len(), 1, "{before} {after} {encoded}");
                    assert!(found[0].len() >= 20, "every character with bits of the value: {}", found[0]);
                }
            }
        }
    }

    #[test]
    fn a_value_of_several_lines_is_found_as_json_from_a_terminal_and_in_lines_of_base64() {
        let value = b"first \"line\"\nsecond line of the value that is long enough for two lines of base64";
        let known = known(value);
        let json = r#"first \"line\"\nsecond line of the value that is long enough for two lines of base64"#;
        assert_eq!(hidden(&known, json), [json]);
        let terminal = String::from_utf8_lossy(value).replace('\n', "\r\n");
        assert_eq!(hidden(&known, &terminal), [terminal.as_str()]);
        let encoded = STANDARD_NO_PAD.encode(value);
        let (first, second) = encoded.split_at(76);
        let wrapped = format!("{first}\n{second}");
        assert_eq!(hidden(&known, &format!("{wrapped}\n")), [wrapped]);
    }

    #[test]
    fn white_space_around_a_value_is_not_part_of_it_and_short_values_are_refused() {
        let mut known = known(b"  hunter2-hunter2\n");
        assert_eq!(hidden(&known, "a hunter2-hunter2 b"), ["hunter2-hunter2"]);
        assert!(!known.insert("env:PIN", b"1234567\n"));
    }

    #[test]
    fn a_value_that_is_not_text_is_found_in_what_a_reader_gets_of_it() {
        let known = known(b"k\xff7 value\xc3");
        assert_eq!(hidden(&known, "a k\u{fffd}7 value\u{fffd} b"), ["k\u{fffd}7 value\u{fffd}"]);
    }

    #[test]
    fn debug_prints_labels_and_no_value() {
        assert_eq!(format!("{:?}", known(VALUE)), r#"KnownValues { labels: ["env:API_KEY"], .. }"#);
    }

    #[test]
    fn variables_are_added_by_name_and_value() {
        let (names, mut known) = (SecretNames::default(), KnownValues::new());
        assert!(known.insert_env(&names, "MY_API_KEY", "opaque-value-1"));
        assert!(known.insert_env(&names, "PASSWORD", "8259174629"));
        assert!(!known.insert_env(&names, "PATH", "opaque-value-2"));
        assert!(!known.insert_env(&names, "SSH_AUTH_SOCK", "/tmp/ssh-1/agent.1"));
        assert!(!known.insert_env(&names, "AUTH_MODE", "disabled"));
        let mut other = KnownValues::new();
        other.extend_from(&known);
        assert_eq!(hidden(&other, "opaque-value-1 opaque-value-2"), ["opaque-value-1"]);
    }

    #[test]
    fn a_long_value_is_found_although_one_end_of_it_is_cut_off() {
        let value: Vec<u8> = (0..2000u32).flat_map(|n| format!("{n}!").into_bytes()).collect();
        let known = known(&value);
        let text = String::from_utf8(value).expect("text");
        let (cut_end, cut_start) = (format!("before {}", &text[..5000]), format!("{} after", &text[1000..]));
        let mut spans = Vec::new();
        known.find_cut_end(cut_end.as_bytes(), 4096, &mut spans);
        known.find_cut_start(cut_start.as_bytes(), 4096, &mut spans);
        let label = Label::Known(0);
        assert_eq!(spans, [Span::new(7..5007, label), Span::new(0..cut_start.len() - 6, label)]);
    }
}
