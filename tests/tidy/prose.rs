//! Plain English: the words of this project's old dialect stay out of names, strings, comments and pages.
//!
//! `cargo test --test tidy prose -- --nocapture` prints the counts of each tree.

use crate::none;
use crate::source::{Kind, Source, all, files, read, relative, root};
use regex::Regex;
use std::collections::BTreeMap;

/// Words that stood for several different things. Say what happens instead: publish, send, report, record, print, return,
/// receive, connect, fix, start, "no client", "another process", "the caller".
const WORDS: &str = "told retold tell tells telling say says said saying hear hears heard hearing \
    speak speaks spoke spoken speaking voice voices tongue tongues whoever whomever nobody somebody anew \
    mend mends mended mending amid stranger strangers knock knocks knocked knocking greet greets greeted \
    leftover leftovers begun dear word words farewell";

/// Openings of a doc comment that hide its subject. A function's begins with a verb, a type's or a field's with a noun.
const HEADLESS: [&str; 6] = ["What", "Who", "Whose", "How", "Whether", "Where"];

/// Occurrences that are meant: path, word, reason. A path that ends in `/` covers a directory.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("tests/tidy/prose.rs", "*", "lists the words"),
    ("CONTRIBUTING.md", "word", "the section on words"),
    ("CONTRIBUTING.md", "words", "the section on words"),
    ("CONTRIBUTING.md", "voice", "active voice"),
    ("ARCHITECTURE.md", "words", "names this check"),
    ("daemon/src/watch/multiline.rs", "word", "word boundaries of regular expressions"),
    ("daemon/src/watch/line_buffer.rs", "word", "word boundaries of regular expressions"),
    ("daemon/shim/src/run.rs", "told", "hook name"),
    ("daemon/shim/src/start.rs", "told", "hook name"),
    ("docs/cli.md", "word", "a word of a shell, which it passes to be completed"),
    ("tests/tidy/names.rs", "*", "lists the retired names"),
    ("tests/crash/matrix.rs", "told", "hook names"),
    ("tests/e2e/cli/completions.rs", "words", "COMP_WORDS of bash and $words of zsh"),
    ("tests/e2e/cli/doctor.rs", "mend", "a field of `doctor --json` that stays for its readers"),
    ("tests/e2e/service/systemd.rs", "nobody", "the user `nobody`"),
];

/// The number of occurrences that each tree may have. Lower it when there are fewer; it never rises.
const LIMITS: &[(&str, Limit)] = &[
    ("client", Limit { identifiers: 190, strings: 22, comments: 24, headless: 1 }),
    ("daemon", Limit { identifiers: 16, strings: 4, comments: 12, headless: 0 }),
    ("docs", Limit { identifiers: 0, strings: 0, comments: 12, headless: 0 }),
    ("fuzz", Limit { identifiers: 0, strings: 0, comments: 0, headless: 0 }),
    ("proto", Limit { identifiers: 0, strings: 0, comments: 4, headless: 0 }),
    ("rest", Limit { identifiers: 0, strings: 0, comments: 0, headless: 0 }),
    ("tests", Limit { identifiers: 11, strings: 4, comments: 1, headless: 0 }),
];

#[derive(Clone, Copy)]
struct Limit {
    identifiers: usize,
    strings: usize,
    /// Comments, doc comments and pages.
    comments: usize,
    /// Doc comments with one of the openings above.
    headless: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Identifiers,
    Strings,
    Comments,
    Headless,
}

impl Limit {
    fn of(&self, class: Class) -> usize {
        match class {
            Class::Identifiers => self.identifiers,
            Class::Strings => self.strings,
            Class::Comments => self.comments,
            Class::Headless => self.headless,
        }
    }
}

struct Finder {
    word: Regex,
    phrase: Regex,
    is_no: Regex,
}

impl Finder {
    fn new() -> Finder {
        let words = WORDS.split_whitespace().collect::<Vec<_>>().join("|");
        let regex = |pattern: &str| Regex::new(pattern).expect("a valid pattern");
        Finder {
            word: regex(&format!("(?i)^({words})$")),
            phrase: regex(r"(?i)\bso (long|many)\b"),
            is_no: regex(r"(?i)(\w+) (?:is|are) no (\w+)"),
        }
    }

    /// The words of the dialect in a text. An identifier is split at underscores and capitals.
    fn words(&self, text: &str) -> Vec<String> {
        let parts = text.split(|c: char| !c.is_alphanumeric()).flat_map(split_camel);
        parts.filter(|part| self.word.is_match(part)).map(str::to_lowercase).collect()
    }

    /// Phrases: "so long" and "so many" without a comparison, "is no number" in place of "is not a number".
    fn phrases(&self, text: &str) -> Vec<String> {
        let mut found: Vec<String> = self.phrase.find_iter(text).map(|m| m.as_str().to_lowercase()).collect();
        let is_no = self.is_no.captures_iter(text).filter(|c| {
            let (before, after) = (c[1].to_lowercase(), c[2].to_lowercase());
            !matches!(before.as_str(), "there" | "here") && !matches!(after.as_str(), "longer" | "more")
        });
        found.extend(is_no.map(|c| c[0].to_lowercase()));
        found
    }

    /// Every occurrence in a Rust file.
    fn in_rust(&self, source: &Source) -> Vec<(Class, usize, String)> {
        let mut found = Vec::new();
        let mut last_doc = None;
        for piece in source.pieces() {
            let class = match piece.kind {
                Kind::Identifier => Class::Identifiers,
                Kind::String => Class::Strings,
                Kind::Comment | Kind::Doc => Class::Comments,
            };
            found.extend(self.words(piece.text).into_iter().map(|word| (class, piece.line, word)));
            if piece.kind != Kind::Identifier {
                found.extend(self.phrases(piece.text).into_iter().map(|phrase| (class, piece.line, phrase)));
            }
            if piece.kind == Kind::Doc {
                let opening = piece.text.trim_start_matches(['/', '!', ' ']).split_whitespace().next().unwrap_or("");
                if last_doc != Some(piece.line - 1) && HEADLESS.contains(&opening) {
                    found.push((Class::Headless, piece.line, format!("a doc comment that begins with `{opening}`")));
                }
                last_doc = Some(piece.line);
            }
        }
        found
    }

    /// Every occurrence in a page or a script.
    fn in_text(&self, source: &Source, class: Class) -> Vec<(Class, usize, String)> {
        let lines = source.text.lines().enumerate();
        lines
            .flat_map(|(i, line)| {
                [self.words(line), self.phrases(line)].concat().into_iter().map(move |w| (class, i + 1, w))
            })
            .collect()
    }
}

/// `LogWriter` as `Log` and `Writer`.
fn split_camel(word: &str) -> Vec<&str> {
    let bytes = word.as_bytes();
    let cuts = (1..word.len())
        .filter(|&i| word.is_char_boundary(i) && bytes[i].is_ascii_uppercase() && bytes[i - 1].is_ascii_lowercase());
    let (mut start, mut parts) = (0, Vec::new());
    for cut in cuts.chain([word.len()]) {
        parts.push(&word[start..cut]);
        start = cut;
    }
    parts
}

/// The tree that a file is counted for.
fn tree(path: &str) -> &str {
    let first = path.split('/').next().unwrap_or(path);
    match first {
        "client" | "daemon" | "docs" | "fuzz" | "proto" | "tests" => first,
        _ if path.ends_with(".md") => "docs",
        // Scripts, units and manifests at the root.
        _ => "rest",
    }
}

/// Files that are text for people and not Rust: pages, help topics, scripts, units, manifests.
fn texts() -> Vec<(Source, Class)> {
    let mut found = Vec::new();
    for path in files("") {
        let name = relative(&path);
        let file = name.rsplit('/').next().unwrap_or(&name);
        let skipped = ["fuzz/corpus/", "tests/golden/", "client/golden/", "proptest-regressions"];
        if skipped.iter().any(|part| name.contains(part)) {
            continue;
        }
        if name.starts_with("client/src/help/") && name.ends_with(".txt") {
            found.push((read(&path), Class::Strings));
        } else if name.ends_with(".md")
            || name.ends_with(".toml")
            || name.ends_with(".service")
            || name.ends_with(".socket")
        {
            found.push((read(&path), Class::Comments));
        } else if !file.contains('.') && !file.starts_with("LICENSE") {
            let text = std::fs::read(&path).unwrap_or_default();
            if text.starts_with(b"#!") {
                found.push((read(&path), Class::Comments));
            }
        }
    }
    found
}

fn is_allowed(path: &str, word: &str) -> bool {
    ALLOWED.iter().any(|(place, allowed, _)| {
        let here = path == *place || (place.ends_with('/') && path.starts_with(place));
        here && (*allowed == "*" || *allowed == word)
    })
}

/// Every occurrence by tree and class, as `file:line: word`.
fn occurrences() -> BTreeMap<(String, Class), Vec<String>> {
    let finder = Finder::new();
    let mut found: BTreeMap<(String, Class), Vec<String>> = BTreeMap::new();
    let mut add = |source: &Source, hits: Vec<(Class, usize, String)>| {
        for (class, line, word) in hits.into_iter().filter(|(_, _, word)| !is_allowed(&source.path, word)) {
            let place = format!("{}:{line}: {word}", source.path);
            found.entry((tree(&source.path).to_string(), class)).or_default().push(place);
        }
    };
    for source in all() {
        add(&source, finder.in_rust(&source));
    }
    for (source, class) in texts() {
        add(&source, finder.in_text(&source, class));
    }
    found
}

#[test]
fn the_old_dialect_does_not_come_back() {
    let limits: BTreeMap<&str, Limit> = LIMITS.iter().copied().collect();
    let mut broken = Vec::new();
    for ((tree, class), places) in occurrences() {
        println!("{tree} {class:?}: {}", places.len());
        let limit = limits.get(tree.as_str()).map_or(0, |limit| limit.of(class));
        if places.len() > limit {
            broken.push(format!(
                "{tree}: {} in {class:?}, at most {limit}\n    {}",
                places.len(),
                places.join("\n    ")
            ));
        }
    }
    none("use the field's words and plain English", broken);
}

#[test]
fn every_allowed_word_is_still_in_its_file() {
    let finder = Finder::new();
    let texts = texts();
    let all = all();
    let mut idle = Vec::new();
    for (place, word, _) in ALLOWED.iter().filter(|(_, word, _)| *word != "*") {
        let here = |path: &str| path == *place || (place.ends_with('/') && path.starts_with(place));
        let in_rust = all.iter().filter(|s| here(&s.path)).any(|s| finder.in_rust(s).iter().any(|(_, _, w)| w == word));
        let in_text = texts
            .iter()
            .filter(|(s, _)| here(&s.path))
            .any(|(s, class)| finder.in_text(s, *class).iter().any(|(_, _, w)| w == word));
        if !in_rust && !in_text {
            idle.push(format!("{place}: {word}"));
        }
    }
    none("remove what is no longer needed from ALLOWED", idle);
}

#[test]
fn the_finder_reads_names_strings_comments_and_openings() {
    let text = "/// What is told.\nfn tell_all() { print(\"it is no number\"); } // there is no longer a word\n";
    let source = Source { path: "x.rs".into(), text: text.into() };
    let found = Finder::new().in_rust(&source);
    let expected = [
        (Class::Comments, 1, "told"),
        (Class::Headless, 1, "a doc comment that begins with `What`"),
        (Class::Identifiers, 2, "tell"),
        (Class::Strings, 2, "it is no number"),
        (Class::Comments, 2, "word"),
    ];
    assert_eq!(found, expected.map(|(class, line, word)| (class, line, word.to_string())));
    assert!(root().join("tests/tidy/prose.rs").exists());
}
