//! Cuts: a secret at every place around both of them leaks no part of itself.

use crate::samples::{ALPHANUMERIC, known, leak, noise, pem, redactor, token};
use proptest::prelude::*;
use toold_redact::{Cut, ExcerptInput, KnownValues, OVERLAP_BYTES, Open, Redactor, window_bytes};

const MAX_BYTES: usize = 1000;
/// The parts of a secret that must not be seen. Shorter ones occur by chance.
const PART: usize = 7;

fn filler(len: usize) -> String {
    "some output, line by line\n".chars().cycle().take(len).collect()
}

/// Cuts a text as a caller does: two windows of it, or the whole one if they cover it.
fn excerpt(redactor: &Redactor, text: &str, known: &KnownValues) -> String {
    let (head, tail) = window_bytes(MAX_BYTES);
    let input = if text.len() <= head + tail {
        ExcerptInput::Whole(text)
    } else {
        ExcerptInput::Windows { head: &text[..head], tail: &text[text.len() - tail..], total: text.len() as u64 }
    };
    let excerpt = redactor.excerpt(input, MAX_BYTES, known);
    assert!(excerpt.head.len() + excerpt.tail.len() <= MAX_BYTES);
    excerpt.joined()
}

/// Puts a secret at every place where it touches one of the cuts or an edge of a window.
fn nothing_leaks(secret: &str, known: &KnownValues, step: usize) {
    let redactor = redactor();
    let total = 30_000 + secret.len();
    let (head, tail) = window_bytes(MAX_BYTES);
    let edges = [400, head, total - tail, total - 600, 0, total];
    for edge in edges {
        let from = edge.saturating_sub(secret.len() + 2);
        for at in (from..=(edge + 2).min(total - secret.len())).step_by(step) {
            let text = format!("{}\n{secret}\n{}", filler(at), filler(total - secret.len() - at));
            let shown = excerpt(&redactor, &text, known);
            assert_eq!(leak(&shown, secret, PART), None, "at {at}, edge {edge}");
        }
    }
}

#[test]
fn a_token_at_any_place_around_a_cut_leaks_nothing() {
    nothing_leaks(&token("ghp_", 36), &KnownValues::new(), 1);
}

#[test]
fn a_known_value_at_any_place_around_a_cut_leaks_nothing() {
    let value = noise("abc def?!", 60, 3).trim().to_string();
    nothing_leaks(&value, &known(&[("env:X", &value)]), 1);
}

#[test]
fn a_private_key_of_any_length_around_a_cut_leaks_nothing() {
    for lines in [1, 26, 70, 200] {
        nothing_leaks(&pem(lines), &KnownValues::new(), 97);
    }
}

#[test]
fn a_private_key_on_one_line_of_json_leaks_nothing() {
    nothing_leaks(&pem(150).replace('\n', "\\n"), &KnownValues::new(), 211);
}

#[test]
fn a_token_and_a_known_value_that_are_longer_than_the_overlap_leak_nothing() {
    let jwt =
        format!("eyJ{}.eyJ{}.{}", noise(ALPHANUMERIC, 30, 1), noise(ALPHANUMERIC, 9000, 2), noise(ALPHANUMERIC, 40, 3));
    nothing_leaks(&jwt, &KnownValues::new(), 173);
    let value = noise("abcd efgh,ijkl!?{}\"", 9000, 5).trim().to_string();
    nothing_leaks(&value, &known(&[("env:X", &value)]), 173);
}

#[test]
fn an_environment_dump_with_a_long_line_leaks_nothing() {
    let long = noise("abcd ,{}:", 6000, 1).trim().to_string();
    let redactor = redactor();
    for at in (0..1200).step_by(7) {
        let secret = "opaque,value;of-a{variable}";
        let text = format!("{}\nA_TOKEN={secret}\nB={long}\nC=1\n{}", filler(at), filler(40_000));
        assert_eq!(leak(&excerpt(&redactor, &text, &KnownValues::new()), secret, PART), None, "at {at}");
    }
}

#[test]
fn half_a_character_at_the_edge_of_a_window_hides_no_known_value() {
    let value = "äöü".repeat(2000);
    let known = known(&[("env:X", &value)]);
    let redactor = redactor();
    for shift in 0..4 {
        let text = format!("{}{value}{}", filler(100 + shift), filler(60_000)).into_bytes();
        let (head, tail) = window_bytes(MAX_BYTES);
        let (head, tail) =
            (String::from_utf8_lossy(&text[..head]), String::from_utf8_lossy(&text[text.len() - tail..]));
        let input = ExcerptInput::Windows { head: &head, tail: &tail, total: text.len() as u64 };
        assert!(!redactor.excerpt(input, MAX_BYTES, &known).joined().contains("äö"));
    }
}

#[test]
fn a_cut_keeps_two_fifths_at_the_beginning_and_counts_every_byte() {
    let text = filler(20_000);
    let (head, tail) = window_bytes(MAX_BYTES);
    let input = ExcerptInput::Windows { head: &text[..head], tail: &text[text.len() - tail..], total: 20_000 };
    let excerpt = redactor().excerpt(input, MAX_BYTES, &KnownValues::new());
    assert_eq!(excerpt.cut, Some(Cut { total: 20_000, kept: 1000, omitted: 19_000, head: 400, tail: 600 }));
    assert_eq!((excerpt.head.as_str(), excerpt.tail.as_str()), (&text[..400], &text[19_400..]));
    assert_eq!(redactor().excerpt(ExcerptInput::Whole(&text), MAX_BYTES, &KnownValues::new()), excerpt);
}

#[test]
fn a_text_that_fits_is_not_cut() {
    let secret = token("ghp_", 2000);
    let excerpt = redactor().excerpt(ExcerptInput::Whole(&format!("a {secret} b")), MAX_BYTES, &KnownValues::new());
    assert_eq!((excerpt.joined().as_str(), excerpt.cut), ("a [redacted:github-pat] b", None));
}

#[test]
fn a_cut_divides_no_character_and_no_replacement() {
    for shift in 0..40 {
        let text = format!("{}{}", "a".repeat(shift), format!("ü {} ", token("ghp_", 36)).repeat(60));
        let excerpt = redactor().excerpt(ExcerptInput::Whole(&text), 500, &KnownValues::new());
        let cut = excerpt.cut.expect("a cut");
        assert_eq!(cut.kept + cut.omitted, text.len() as u64);
        for part in [&excerpt.head, &excerpt.tail] {
            assert_eq!(part.matches("[redacted:").count(), part.matches(":github-pat]").count());
        }
        let shown = excerpt.head.matches("[redacted:").count() + excerpt.tail.matches("[redacted:").count();
        assert_eq!(excerpt.counts.iter().map(|one| one.count).sum::<u64>(), shown as u64);
    }
}

#[test]
fn pages_of_a_log_leak_nothing_of_a_key_that_is_longer_than_they_are() {
    let key = pem(400);
    let text = format!("{}\n{key}\n{}", filler(3000), filler(3000));
    let redactor = redactor();
    for page in (0..text.len()).step_by(1000) {
        let part = page..(page + 1000).min(text.len());
        let from = part.start.saturating_sub(OVERLAP_BYTES);
        let to = (part.end + OVERLAP_BYTES).min(text.len());
        let open = Open { start: from > 0, end: to < text.len() };
        let page = redactor.redact_part(&text[from..to], part.start - from..part.end - from, open, &KnownValues::new());
        assert_eq!(leak(&page.text, &key, PART), None, "page at {}", part.start);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn secrets_anywhere_leak_nothing(places in proptest::collection::vec(0usize..30_000, 1..12), max in 0usize..3000) {
        let (pat, value) = (token("ghp_", 36), "opaque value, with spaces");
        let known = known(&[("env:X", value)]);
        let mut text = filler(30_000);
        for (n, at) in places.iter().enumerate() {
            text.insert_str(*at, if n % 2 == 0 { &pat } else { value });
            text.insert(*at, ' ');
        }
        let (head, tail) = window_bytes(max);
        let input = ExcerptInput::Windows { head: &text[..head], tail: &text[text.len() - tail..], total: text.len() as u64 };
        let excerpt = redactor().excerpt(input, max, &known);
        prop_assert!(excerpt.head.len() + excerpt.tail.len() <= max);
        // One secret may be put into another one, which divides it: then its parts are ordinary text.
        let divided = places.iter().enumerate().any(|(n, a)| places.iter().skip(n + 1).any(|b| a.abs_diff(*b) < 120 * 12));
        if !divided {
            prop_assert_eq!(leak(&excerpt.joined(), &pat, PART), None);
            prop_assert_eq!(leak(&excerpt.joined(), value, 10), None);
        }
    }
}
