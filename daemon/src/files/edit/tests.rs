//! Strategies by table, and properties of every edit.

use super::*;
use proptest::prelude::*;
use toold_proto::files::EditStrategy::*;

fn plain<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
    Edit { old, new, replace_all: false, fuzzy: false }
}

fn changed(file: &str, request: &Edit<'_>) -> (EditStrategy, u64, String) {
    match edit(file.as_bytes(), request) {
        Ok(Edited::Changed { strategy, count, content }) => {
            (strategy, count, String::from_utf8(content).expect("text"))
        }
        other => panic!("{file:?} {request:?}: {other:?}"),
    }
}

#[test]
fn the_first_strategy_that_finds_the_text_counts() {
    let table = [
        // File, old, new, strategy, result.
        ("a b c\n", "b", "x", Exact, "a x c\n"),
        ("  one\n  two\n", "one\ntwo\n", "1\n2\n", LineTrimmed, "  1\n  2\n"),
        (
            "\tif x:\n\t\ty()\n",
            "    if x:\n        y()",
            "    if x:\n        z()\n        y()",
            LineTrimmed,
            "\tif x:\n\t\tz()\n\t\ty()\n",
        ),
        ("one \ntwo\t\n", "one\ntwo\n", "1\n", LineTrimmed, "1\n"),
        ("let  x\t= 1;\n", "let x = 1;", "let x = 2;", WhitespaceNormalized, "let x = 2;\n"),
        ("call(a,  b) + c\n", "(a, b)", "(b, a)", WhitespaceNormalized, "call(b, a) + c\n"),
        ("a\n\tb\n", "a\\n\\tb", "a\\n\\tc", EscapeNormalized, "a\n\tc\n"),
        ("a\nb\n", "a\\nb", "x\\ty", EscapeNormalized, "x\\ty\n"),
        (
            "print \u{201c}hi\u{201d} \u{2014} now\n",
            "\"hi\" -- now",
            "\"hi\" -- later",
            UnicodeNormalized,
            "print \u{201c}hi\u{201d} \u{2014} later\n",
        ),
        (
            "  it\u{2019}s\n  one\u{2026}\n",
            "it's\none...\n",
            "it's\ntwo\n",
            UnicodeNormalized,
            "  it\u{2019}s\n  two\n",
        ),
        (
            "x\u{a0}= 1\nkeep \u{2013}\n",
            "x = 1\nkeep -",
            "x = 2\nmore\nkeep -",
            UnicodeNormalized,
            "x = 2\nmore\nkeep \u{2013}\n",
        ),
    ];
    for (file, old, new, strategy, expected) in table {
        let (found, count, content) = changed(file, &plain(old, new));
        assert_eq!((found, count, content.as_str()), (strategy, 1, expected), "{file:?} {old:?}");
    }
}

#[test]
fn similar_texts_are_replaced_only_with_fuzzy() {
    let block =
        ("fn a() {\n    let x = 1;\n    x\n}\n", "fn a() {\n    let y = 1;\n    x\n}", "fn b() {}", BlockAnchor);
    let lines = ("alpha = first(1)\nbeta = second(2)\n", "alpha = first(3)\nbeta = second(4)", "gone", SimilarLines);
    for (file, old, new, strategy) in [block, lines] {
        assert!(matches!(edit(file.as_bytes(), &plain(old, new)), Err(EditError::NoMatch { .. })), "{old}");
        let fuzzy = Edit { fuzzy: true, ..plain(old, new) };
        assert_eq!(changed(file, &fuzzy), (strategy, 1, format!("{new}\n")));
        let all = edit(file.as_bytes(), &Edit { replace_all: true, ..fuzzy });
        assert!(matches!(all, Err(EditError::Param { param: "replace_all", .. })), "{all:?}");
    }
}

#[test]
fn several_matches_need_replace_all_and_are_listed() {
    let file = "x = 1\ny = 2\n  x = 1\n";
    let error = edit(file.as_bytes(), &plain("x = 1", "x = 3")).expect_err("two");
    let place = |line, text: &str| EditPlace { line, text: text.into(), similarity: None };
    let places = vec![place(1, "x = 1"), place(3, "  x = 1")];
    assert_eq!(error, EditError::Ambiguous { strategy: Exact, count: 2, places });
    let all = Edit { replace_all: true, ..plain("x = 1", "x = 3") };
    assert_eq!(changed(file, &all), (Exact, 2, "x = 3\ny = 2\n  x = 3\n".into()));
    let overlapping = Edit { replace_all: true, ..plain("aa", "b") };
    assert_eq!(changed("aaaaa\n", &overlapping), (Exact, 2, "bba\n".into()));
    let trimmed = Edit { replace_all: true, ..plain("f(\n1)", "g(\n2)") };
    assert_eq!(changed("f(\n  1)\n f(\n 1)\n", &trimmed), (LineTrimmed, 2, "g(\n  2)\n g(\n 2)\n".into()));
}

#[test]
fn a_text_that_is_not_there_names_the_nearest_places() {
    let file = "fn one() {}\nfn two() {}\nlet total = sum(values);\n";
    let error = edit(file.as_bytes(), &plain("let total = sum(value) + 1;", "x")).expect_err("not there");
    let EditError::NoMatch { nearest, why: None } = error else { panic!("{error:?}") };
    assert_eq!((nearest[0].line, nearest[0].text.as_str()), (3, "let total = sum(values);"));
    assert!(nearest.len() <= 3 && nearest[0].similarity > Some(0.8), "{nearest:?}");
}

#[test]
fn an_edit_that_was_made_before_changes_nothing() {
    assert_eq!(edit(b"the new text\n", &plain("old", "the new text")), Ok(Edited::Unchanged));
    let short = edit(b"new\n", &plain("old", "new"));
    assert!(matches!(short, Err(EditError::NoMatch { .. })), "too short to be sure: {short:?}");
}

#[test]
fn requests_without_a_meaning_are_refused_by_parameter() {
    for (old, new, param) in [("", "x", "old"), (" \n\t", "x", "old"), ("a", "a", "new")] {
        let error = edit(b"a\n", &plain(old, new)).expect_err("refused");
        assert!(matches!(error, EditError::Param { param: p, .. } if p == param), "{error:?}");
    }
    let ends = edit(b"a\r\nb\r\n", &plain("a\nb", "a\r\nb")).expect_err("refused");
    assert!(matches!(ends, EditError::Param { param: "new", .. }), "{ends:?}");
}

#[test]
fn line_ends_and_marks_are_kept_whatever_the_request_has() {
    let table: [(&[u8], &str, &str, &[u8]); 5] = [
        (b"a\r\nb\r\nc", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc"),
        (b"a\nb\n", "a\r\nb\r\n", "x\r\ny\r\n", b"x\ny\n"),
        (b"\xef\xbb\xbfa\r\n", "a", "b\nc", b"\xef\xbb\xbfb\r\nc\r\n"),
        (b"a\rb\r", "a\nb", "c\nd", b"c\rd\r"),
        (b"\xfe\xff\0a\0\r\0\n", "a", "b\nc", b"\xfe\xff\0b\0\r\0\n\0c\0\r\0\n"),
    ];
    for (file, old, new, expected) in table {
        let Ok(Edited::Changed { content, strategy: Exact, .. }) = edit(file, &plain(old, new)) else {
            panic!("{file:?}");
        };
        assert_eq!(content, expected, "{file:?}");
    }
}

#[test]
fn a_file_that_is_not_text_is_edited_by_the_same_bytes_only() {
    let Ok(Edited::Changed { content, .. }) = edit(b"caf\xe9 = 1\n", &plain("= 1", "= 2")) else { panic!("found") };
    assert_eq!(content, b"caf\xe9 = 2\n");
    let error = edit(b"caf\xe9 =  1\n", &plain("= 1", "= 2")).expect_err("blanks differ");
    assert!(matches!(error, EditError::NoMatch { why: Some(_), .. }), "{error:?}");
    assert!(matches!(edit(b"a\xe9a", &plain("a", "b")), Err(EditError::Ambiguous { count: 2, .. })));
}

#[test]
fn quotes_that_only_the_request_escapes_are_refused() {
    let file = "print('one', 'two', 'three', 'four')\n";
    let request = Edit { fuzzy: true, ..plain("print(\\'one\\', 'two', 'three', 'four')", "print(\\'1\\')") };
    let error = edit(file.as_bytes(), &request).expect_err("refused");
    assert!(matches!(&error, EditError::NoMatch { why: Some(why), .. } if why.contains("escape")), "{error:?}");
}

proptest! {
    /// No request panics, and bytes outside the lines that are replaced stay.
    #[test]
    fn any_edit_of_any_text_is_bounded(
        file in "[ab \t\r\n\u{2014}\u{201c}\\\\n'\"]{0,60}",
        old in "[ab \t\r\n\u{2014}\u{201c}\\\\n'\"]{0,12}",
        new in "[ab \t\r\n\u{2014}\\\\n'\"]{0,12}",
        replace_all: bool,
        fuzzy: bool,
    ) {
        let request = Edit { old: &old, new: &new, replace_all, fuzzy };
        if let Ok(Edited::Changed { strategy: Exact, content, count }) = edit(file.as_bytes(), &request) {
            prop_assert!(count == 1 || replace_all);
            if !file.contains('\r') && !old.contains('\r') {
                prop_assert_eq!(String::from_utf8(content).expect("text"), file.replace(&old, &new));
            }
        }
    }

    /// A line that is unique is found, and replacing it back gives the file again.
    #[test]
    fn an_exact_edit_can_be_undone(before in "[a-z\n]{0,40}", after in "[a-z\n]{0,40}") {
        let file = format!("{before}\nUNIQUE\n{after}");
        let (_, _, there) = changed(&file, &plain("UNIQUE", "OTHER LINE"));
        let (_, _, back) = changed(&there, &plain("OTHER LINE", "UNIQUE"));
        prop_assert_eq!(back, file);
    }

    #[test]
    fn any_bytes_are_edited_without_a_panic(file: Vec<u8>, old in ".{1,6}", new in ".{0,6}") {
        let _ = edit(&file, &Edit { old: &old, new: &new, replace_all: true, fuzzy: true });
    }
}
