//! Rejected patterns and their error messages.

use super::super::{InvalidPattern, Patterns};
use super::pattern;
use toold_proto::pattern::Pattern;

fn rejected(list: &[Pattern]) -> (usize, String) {
    let InvalidPattern { index, reason } = Patterns::new(list).expect_err("rejected");
    (index, reason)
}

#[test]
fn a_pattern_that_never_or_always_matches_is_rejected_with_its_index() {
    let fine = pattern("fine");
    let newline = "must not have a newline in it: matching is by line, so it would never match".to_string();
    assert_eq!(rejected(&[fine.clone(), pattern("")]), (1, "must not be empty: it would match every line".into()));
    assert_eq!(rejected(&[pattern("a\nb")]), (0, newline.clone()));
    assert_eq!(rejected(&[fine.clone(), fine.clone(), pattern("/a\nb")]), (2, newline));
    let long = "x".repeat(4097);
    assert_eq!(rejected(&[pattern(&long)]), (0, "must be at most 4096 bytes, not 4097".into()));
    assert_eq!(rejected(&vec![fine; 65]), (64, "at most 64 patterns, not 65".into()));
}

#[test]
fn an_invalid_or_too_large_regular_expression_is_rejected() {
    let (index, reason) = rejected(&[pattern("a"), pattern("/b"), pattern("/(")]);
    assert_eq!((index, reason.contains("unclosed group")), (2, true), "{reason}");
    let (index, reason) = rejected(&[pattern("/a"), pattern(r"/\w{1000}"), pattern("/b")]);
    assert_eq!((index, reason.contains("too large")), (1, true), "{reason}");
    let some: Vec<Pattern> = (0..64).map(|i| pattern(&format!(r"/{i}\w{{2}}"))).collect();
    assert!(Patterns::new(some.get(..8).unwrap_or_default()).is_ok());
    assert!((1..64).contains(&rejected(&some).0), "together they are too large");
}

#[test]
fn the_maximum_number_and_length_of_patterns_is_accepted() {
    let longest: Vec<Pattern> = (0..64).map(|i| pattern(&format!("{i:04}{}", "ab".repeat(2046)))).collect();
    assert!(Patterns::new(&longest).is_ok());
    assert!(Patterns::new(&[]).is_ok());
    fn shared<T: Send + Sync>(_: T) {}
    shared(Patterns::new(&[]));
}
