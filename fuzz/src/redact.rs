//! Any bytes as a known value and a text that is redacted.

use toold_redact::{ExcerptInput, KnownValues, RedactConfig, Redactor, RuleFile, window_bytes};

/// The excerpt of a text, in units of the first byte.
const EXCERPT_UNIT: usize = 16;
/// Pads a text so that its windows do not cover it.
const PADDING: &str = "some output, line by line\n";

/// Redacts a text with a known value: the first byte is the size of an excerpt, then the value, a NUL, the text.
pub fn redact(bytes: &[u8]) {
    let Some((size, rest)) = bytes.split_first() else { return };
    let cut = rest.iter().position(|byte| *byte == 0).unwrap_or(0);
    let (value, text) = (&rest[..cut], String::from_utf8_lossy(&rest[cut..]));
    let mut known = KnownValues::new();
    let is_known = known.insert("env:FUZZ_VALUE", value);
    let value = String::from_utf8_lossy(value.trim_ascii()).into_owned();
    let file = RuleFile::parse(&text).unwrap_or_default();
    let redactor = Redactor::new(RedactConfig { extra_rules: vec![file], ..RedactConfig::default() });
    let shows_value = |text: &str| is_known && without_replacements(text).contains(&value);

    let own = Redactor::new(RedactConfig::default());
    let once = own.redact(&text, &known);
    let twice = own.redact(&once.text, &known);
    assert_eq!(twice.text, once.text, "redacted text stays as it is");
    assert!(twice.counts.is_empty());
    assert!(!shows_value(&once.text));
    assert!(!shows_value(&redactor.redact(&text, &known).text), "with rules of a file too");

    let max = usize::from(*size) * EXCERPT_UNIT;
    let whole = own.excerpt(ExcerptInput::Whole(&text), max, &known);
    assert!(whole.head.len() + whole.tail.len() <= max);
    assert!(!shows_value(&whole.head) && !shows_value(&whole.tail));
    let (head, tail) = window_bytes(max);
    let long = format!("{text}{}{text}", PADDING.repeat((head + tail) / PADDING.len() + 1)).into_bytes();
    let window = |range: std::ops::Range<usize>| String::from_utf8_lossy(&long[range]).into_owned();
    let (first, last) = (window(0..head), window(long.len() - tail..long.len()));
    let input = ExcerptInput::Windows { head: &first, tail: &last, total: long.len() as u64 };
    let excerpt = own.excerpt(input, max, &known);
    assert!(excerpt.head.len() + excerpt.tail.len() <= max);
    assert!(!shows_value(&excerpt.head) && !shows_value(&excerpt.tail));
}

/// Removes replacements, because a value may be a part of one: `redacted` is.
fn without_replacements(text: &str) -> String {
    let mut parts = text.split("[redacted:");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |all, part| all + "\0" + part.split_once(']').map_or(part, |(_, rest)| rest))
}
