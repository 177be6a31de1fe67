//! Plain English: words that stood for too many things stay out of names, strings, comments and pages.

use crate::none;
use crate::source::{Kind, Source, all, files, read, relative};
use regex::Regex;

/// Words that each stood for several things. The field has one for each of them: publish, send, report, record, print,
/// return, receive, connect, fix, start, "no client", "another process", "the caller".
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
    ("daemon/src/matcher/mod.rs", "word", "word boundaries of regular expressions"),
    ("daemon/src/watch/multiline.rs", "word", "word boundaries of regular expressions"),
    ("daemon/src/watch/line_buffer.rs", "word", "word boundaries of regular expressions"),
    ("daemon/policy/", "word", "words of a shell command"),
    ("daemon/policy/", "words", "words of a shell command"),
    ("daemon/shim/src/run.rs", "told", "hook name"),
    ("daemon/shim/src/start.rs", "told", "hook name"),
    ("client/mcp/src/catalog.rs", "told", "a sentence for models, which they are tried with"),
    ("client/src/render/", "word", "word wrapping"),
    ("client/src/render/", "words", "word wrapping"),
    ("client/src/cmd/doctor/mod.rs", "mend", "a field of `doctor --json` that stays for its readers"),
    ("tests/tidy/names.rs", "*", "lists the retired names"),
    ("tests/crash/matrix.rs", "told", "hook names"),
    ("tests/e2e/cli/completions.rs", "words", "COMP_WORDS of bash and $words of zsh"),
    ("tests/e2e/cli/doctor.rs", "mend", "a field of `doctor --json` that stays for its readers"),
    ("tests/e2e/service/systemd.rs", "nobody", "the user `nobody`"),
];

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

    /// Every occurrence in a Rust file, with its line.
    fn in_rust(&self, source: &Source) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut last_doc = None;
        for piece in source.pieces() {
            found.extend(self.words(piece.text).into_iter().map(|word| (piece.line, word)));
            if piece.kind != Kind::Identifier {
                found.extend(self.phrases(piece.text).into_iter().map(|phrase| (piece.line, phrase)));
            }
            if piece.kind == Kind::Doc {
                let opening = piece.text.trim_start_matches(['/', '!', ' ']).split_whitespace().next().unwrap_or("");
                if last_doc != Some(piece.line - 1) && HEADLESS.contains(&opening) {
                    found.push((piece.line, format!("a doc comment that begins with `{opening}`")));
                }
                last_doc = Some(piece.line);
            }
        }
        found
    }

    /// Every occurrence in a page or a script, with its line.
    fn in_text(&self, source: &Source) -> Vec<(usize, String)> {
        let lines = source.text.lines().enumerate();
        lines
            .flat_map(|(i, line)| [self.words(line), self.phrases(line)].concat().into_iter().map(move |w| (i + 1, w)))
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

/// Files that people read and that are not Rust: pages, help topics, scripts, units, manifests.
fn texts() -> Vec<Source> {
    const SKIPPED: [&str; 5] =
        ["fuzz/corpus/", "tests/golden/", "client/golden/", "proptest-regressions", "Cargo.lock"];
    const ENDINGS: [&str; 5] = [".md", ".txt", ".toml", ".service", ".socket"];
    let mut found = Vec::new();
    for path in files("") {
        let name = relative(&path);
        if SKIPPED.iter().any(|part| name.contains(part)) {
            continue;
        }
        let is_script = || std::fs::read(&path).is_ok_and(|bytes| bytes.starts_with(b"#!"));
        if ENDINGS.iter().any(|ending| name.ends_with(ending)) || (!name.contains("LICENSE") && is_script()) {
            found.push(read(&path));
        }
    }
    found
}

/// Every occurrence in the repository: file, line, word.
fn occurrences() -> Vec<(String, usize, String)> {
    let finder = Finder::new();
    let rust = all().into_iter().map(|source| (finder.in_rust(&source), source.path));
    let texts = texts().into_iter().map(|source| (finder.in_text(&source), source.path));
    let found = rust.chain(texts).collect::<Vec<_>>().into_iter();
    found.flat_map(|(hits, path)| hits.into_iter().map(move |(line, word)| (path.clone(), line, word))).collect()
}

#[test]
fn names_strings_comments_and_pages_are_in_plain_words() {
    let mut unused: Vec<_> = ALLOWED.iter().filter(|(_, word, _)| *word != "*").collect();
    let mut broken = Vec::new();
    for (path, line, word) in occurrences() {
        let allows = |(place, allowed, _): &(&str, &str, &str)| {
            let is_here = path == *place || (place.ends_with('/') && path.starts_with(place));
            is_here && (*allowed == "*" || *allowed == word)
        };
        unused.retain(|allowed| !allows(allowed));
        if !ALLOWED.iter().any(allows) {
            broken.push(format!("{path}:{line}: {word}"));
        }
    }
    none("use the field's words and plain English, or add the place to ALLOWED with a reason", broken);
    none(
        "ALLOWED lists what is no longer there",
        unused.iter().map(|(path, word, _)| format!("{path}: {word}")).collect(),
    );
}

/// Phrases of `toolctl` and its pages that a first user did not understand, or that promised too much. They stay out.
const RETIRED_PHRASES: [&str; 12] = [
    "come back: toolctl",
    "exit as it does",
    "what happens; -f",
    "time was over",
    "what was waited for",
    "one of the ids is none",
    "to be woken",
    "no flood",
    "whose window is another",
    "harmless names",
    "three framings",
    "exactly once if",
];

#[test]
fn retired_phrases_stay_out_of_the_command_line_and_the_pages() {
    let sources = all().into_iter().filter(|source| source.path.starts_with("client/src/"));
    let pages = texts().into_iter().filter(|source| {
        let is_page = source.path.starts_with("docs/") || source.path.starts_with("client/src/help/");
        is_page || source.path == "README.md"
    });
    let found = sources.chain(pages).flat_map(|source| {
        let lines = source.text.lines().enumerate().map(|(n, line)| (n + 1, line.to_owned())).collect::<Vec<_>>();
        let path = source.path.clone();
        let hits = lines.into_iter().flat_map(move |(n, line)| {
            let here = RETIRED_PHRASES.iter().filter(|phrase| line.contains(**phrase)).map(|p| p.to_string());
            here.map(|phrase| format!("{path}:{n}: {phrase}")).collect::<Vec<_>>()
        });
        hits.collect::<Vec<_>>()
    });
    none("these phrases were retired", found.collect());
}

#[test]
fn the_finder_reads_names_strings_comments_and_openings() {
    let text = "/// What is told.\nfn tell_all() { print(\"it is no number\"); } // there is no longer a word\n";
    let source = Source { path: "x.rs".into(), text: text.into() };
    let found = Finder::new().in_rust(&source);
    let expected =
        [(1, "told"), (1, "a doc comment that begins with `What`"), (2, "tell"), (2, "it is no number"), (2, "word")];
    assert_eq!(found, expected.map(|(line, word)| (line, word.to_string())));
}
