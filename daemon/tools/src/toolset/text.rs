//! Bounded texts for models: cut in the middle or at the end, with the amount that is left out.

/// Bytes of one token, about.
const BYTES_PER_TOKEN: usize = 4;

/// Returns the number of tokens of a text of this size, about.
pub fn token_count(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN as u64)
}

/// Returns the bytes of a number of tokens, about.
pub fn token_bytes(tokens: usize) -> usize {
    tokens.saturating_mul(BYTES_PER_TOKEN)
}

/// Returns the marker between the head and the tail of an output whose middle was not kept.
pub fn omission_marker(bytes: u64) -> String {
    format!("... {bytes} bytes omitted ...")
}

/// Keeps the beginning and the end of a text within a number of tokens, and puts the number that is missing between them.
pub fn cut_middle(text: &str, max_tokens: usize) -> String {
    let max_bytes = token_bytes(max_tokens);
    if text.len() <= max_bytes {
        return text.into();
    }
    let head = floor_boundary(text, max_bytes / 2);
    let tail = ceil_boundary(text, text.len() - (max_bytes - max_bytes / 2));
    let cut = token_count((text.len() - max_bytes) as u64);
    format!("{}…{cut} tokens truncated…{}", &text[..head], &text[tail..])
}

/// Keeps the first characters of a text, and appends the number that is missing. `more_bytes` follow the text and were not read.
pub fn clip(text: &str, max_chars: usize, more_bytes: u64) -> String {
    let end = text.char_indices().nth(max_chars).map_or(text.len(), |(at, _)| at);
    let rest = &text[end..];
    match (rest.is_empty(), more_bytes) {
        (true, 0) => text.into(),
        (_, 0) => format!("{}\n...[truncated {} characters]...", &text[..end], rest.chars().count()),
        _ => format!("{}\n...[truncated {} bytes]...", &text[..end], rest.len() as u64 + more_bytes),
    }
}

/// Keeps the last characters of a text.
pub fn tail(text: &str, max_chars: usize) -> &str {
    match text.char_indices().rev().nth(max_chars.saturating_sub(1)) {
        Some((at, _)) if max_chars > 0 => &text[at..],
        None if max_chars > 0 => text,
        _ => "",
    }
}

/// Returns the last boundary of characters that is not after this byte.
pub fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn ceil_boundary(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_states_its_amount() {
        assert_eq!(cut_middle("abcdefgh", 2), "abcdefgh");
        assert_eq!(cut_middle("abcdefghi", 2), "abcd…1 tokens truncated…fghi");
        assert_eq!(cut_middle("abcdefgh", 0), "…2 tokens truncated…");
        assert_eq!(clip("abcdef", 4, 0), "abcd\n...[truncated 2 characters]...");
        assert_eq!(clip("äöü", 2, 0), "äö\n...[truncated 1 characters]...");
        assert_eq!(clip("äöü", 2, 10), "äö\n...[truncated 12 bytes]...");
        assert_eq!(clip("äöü", 3, 0), "äöü");
        assert_eq!((tail("äöü", 2), tail("äöü", 3), tail("äöü", 9), tail("äöü", 0)), ("öü", "äöü", "äöü", ""));
    }

    proptest! {
        #[test]
        fn a_cut_keeps_beginning_and_end_within_the_budget(text in "[aä€😀\n]{0,200}", tokens in 0usize..60) {
            let cut = cut_middle(&text, tokens);
            match cut.split_once('…') {
                None => prop_assert_eq!(cut, text),
                Some((head, rest)) => {
                    let end = rest.rsplit('…').next().unwrap_or_default();
                    prop_assert!(text.starts_with(head) && text.ends_with(end));
                    prop_assert!(head.len() + end.len() <= token_bytes(tokens));
                }
            }
        }

        #[test]
        fn a_clip_counts_every_character(text in "[aä€😀\n]{0,60}", max in 0usize..70) {
            let clipped = clip(&text, max, 0);
            let kept = clipped.split("\n...[truncated ").next().unwrap_or_default();
            let cut: usize = clipped.rsplit("[truncated ").next().and_then(|r| r.split(' ').next()?.parse().ok()).unwrap_or(0);
            prop_assert_eq!(kept.chars().count() + cut, text.chars().count());
        }
    }
}
