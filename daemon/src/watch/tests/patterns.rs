//! Which patterns are refused, and with which words.

use super::super::{BadPattern, Patterns};
use super::pattern;
use toold_proto::pattern::Pattern;

fn refused(list: &[Pattern]) -> (usize, String) {
    let BadPattern { at, why } = Patterns::new(list).expect_err("refused");
    (at, why)
}

#[test]
fn what_can_never_match_or_always_would_is_refused_by_its_place() {
    let fine = pattern("fine");
    let newline = "must not have a newline in it: matching is by line, so it would never match".to_string();
    assert_eq!(refused(&[fine.clone(), pattern("")]), (1, "must not be empty: it would match every line".into()));
    assert_eq!(refused(&[pattern("a\nb")]), (0, newline.clone()));
    assert_eq!(refused(&[fine.clone(), fine.clone(), pattern("/a\nb")]), (2, newline));
    let long = "x".repeat(4097);
    assert_eq!(refused(&[pattern(&long)]), (0, "must be at most 4096 bytes, not 4097".into()));
    assert_eq!(refused(&vec![fine; 65]), (64, "at most 64 patterns, not 65".into()));
}

#[test]
fn a_regular_expression_that_is_wrong_or_too_large_is_refused() {
    let (at, why) = refused(&[pattern("a"), pattern("/b"), pattern("/(")]);
    assert_eq!((at, why.contains("unclosed group")), (2, true), "{why}");
    let (at, why) = refused(&[pattern("/a"), pattern(r"/\w{1000}"), pattern("/b")]);
    assert_eq!((at, why.contains("too large")), (1, true), "{why}");
    let some: Vec<Pattern> = (0..64).map(|i| pattern(&format!(r"/{i}\w{{2}}"))).collect();
    assert!(Patterns::new(some.get(..8).unwrap_or_default()).is_ok());
    assert!((1..64).contains(&refused(&some).0), "together they are too large");
}

#[test]
fn the_most_and_the_longest_are_taken() {
    let longest: Vec<Pattern> = (0..64).map(|i| pattern(&format!("{i:04}{}", "ab".repeat(2046)))).collect();
    assert!(Patterns::new(&longest).is_ok());
    assert!(Patterns::new(&[]).is_ok());
    fn shared<T: Send + Sync>(_: T) {}
    shared(Patterns::new(&[]));
}
