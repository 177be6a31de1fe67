//! Source files of the repository, and a lexer that splits Rust into code, strings and comments.

use std::fs;
use std::path::{Path, PathBuf};

/// Directories with Rust sources.
const RUST_DIRS: [&str; 6] = ["proto", "daemon", "client", "tests", "fuzz/src", "fuzz/fuzz_targets"];

pub struct Source {
    /// Path below the repository's root, with `/`.
    pub path: String,
    pub text: String,
}

/// Kinds of text in a Rust file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Identifier,
    String,
    /// `//` or `/* */`
    Comment,
    /// `///` or `//!`
    Doc,
}

/// A piece of a file. Comments and strings of several lines are one piece per line.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    pub kind: Kind,
    pub line: usize,
    pub text: &'a str,
}

impl Source {
    /// Numbers its lines from 1 and cuts off comments. A `//` in a string cuts a line short too: that can hide an offender
    /// and never invents one.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines.map(|(i, line)| (i + 1, line.split_once("//").map_or(line, |(code, _)| code)))
    }

    /// The first line that is built for tests only: 1 for a file of tests.
    pub fn tests_from(&self) -> Option<usize> {
        let is_test = |part: &str| matches!(part, "tests" | "benches" | "tests.rs" | "testing.rs");
        if self.path.split('/').any(is_test) {
            return Some(1);
        }
        self.text.lines().position(|line| line.trim() == "#[cfg(test)]").map(|i| i + 1)
    }

    /// Its code without comments and without the part that is built for tests only.
    pub fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = self.tests_from().unwrap_or(usize::MAX);
        self.code().take_while(move |(line, _)| *line < end)
    }

    pub fn pieces(&self) -> Vec<Piece<'_>> {
        Lexer { text: &self.text, at: 0, line: 1, pieces: Vec::new() }.run()
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    pieces: Vec<Piece<'a>>,
}

impl<'a> Lexer<'a> {
    fn run(mut self) -> Vec<Piece<'a>> {
        while let Some(first) = self.rest().chars().next() {
            let rest = self.rest();
            if rest.starts_with("//") {
                let is_doc = (rest.starts_with("///") && !rest.starts_with("////")) || rest.starts_with("//!");
                self.push(if is_doc { Kind::Doc } else { Kind::Comment }, rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with("/*") {
                self.push(Kind::Comment, block_comment_len(rest));
            } else if let Some(len) = string_len(rest) {
                self.push(Kind::String, len);
            } else if first == '\'' {
                self.skip(char_or_lifetime_len(rest));
            } else if first.is_alphanumeric() || first == '_' {
                let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                self.push(Kind::Identifier, len);
            } else {
                self.skip(first.len_utf8());
            }
        }
        self.pieces
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn push(&mut self, kind: Kind, len: usize) {
        let text = &self.rest()[..len];
        for (i, line) in text.split('\n').enumerate() {
            self.pieces.push(Piece { kind, line: self.line + i, text: line });
        }
        self.skip(len);
    }

    fn skip(&mut self, len: usize) {
        self.line += self.rest()[..len].matches('\n').count();
        self.at += len;
    }
}

fn block_comment_len(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// The length of the string literal that `text` begins with: plain, byte, C or raw.
fn string_len(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|p| {
        let after = text.strip_prefix(p);
        after.is_some_and(|t| t.starts_with('"') || (p.ends_with('r') && t.trim_start_matches('#').starts_with('"')))
    })?;
    let hashes = text[prefix.len()..].bytes().take_while(|b| *b == b'#').count();
    let start = prefix.len() + hashes + 1;
    if prefix.ends_with('r') {
        let close = format!("\"{}", "#".repeat(hashes));
        return Some(text[start..].find(&close).map_or(text.len(), |at| start + at + close.len()));
    }
    let mut escaped = false;
    for (at, c) in text[start..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(start + at + 1),
            // Content.
            _ => {}
        }
    }
    Some(text.len())
}

/// The length of a character literal, or 1 for the quote of a lifetime.
fn char_or_lifetime_len(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars.find(|(_, c)| *c == '\'').map_or(text.len(), |(at, _)| at + 1)
        }
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `dir`, in order. Directories of builds and of git are left out.
pub fn files(dir: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![root().join(dir)];
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if !path.is_dir() {
                found.push(path);
            } else if path.file_name().is_none_or(|name| name != "target" && name != ".git") {
                dirs.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The path below the repository's root.
pub fn relative(path: &Path) -> String {
    path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned()
}

pub fn read(path: &Path) -> Source {
    Source {
        text: fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())),
        path: relative(path),
    }
}

/// Every Rust file below `dir`, in order.
pub fn sources(dir: &str) -> Vec<Source> {
    files(dir).iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs")).map(|path| read(path)).collect()
}

/// Every Rust file of the repository.
pub fn all() -> Vec<Source> {
    let mut all: Vec<Source> = RUST_DIRS.iter().flat_map(|dir| sources(dir)).collect();
    all.push(read(&root().join("build.rs")));
    assert!(all.len() > 50, "the sources are found");
    all
}

#[test]
fn the_lexer_separates_code_strings_and_comments() {
    let text =
        "//! doc\nfn a<'b>() { // why\n    let c = '\"'; let d = r#\"raw \" \"#; b\"x\\\"y\"; /* one\ntwo */ }\n";
    let source = Source { path: "x.rs".into(), text: text.into() };
    let found: Vec<(Kind, usize, &str)> = source.pieces().into_iter().map(|p| (p.kind, p.line, p.text)).collect();
    use Kind::{Comment, Doc, Identifier, String};
    let expected = [
        (Doc, 1, "//! doc"),
        (Identifier, 2, "fn"),
        (Identifier, 2, "a"),
        (Identifier, 2, "b"),
        (Comment, 2, "// why"),
        (Identifier, 3, "let"),
        (Identifier, 3, "c"),
        (Identifier, 3, "let"),
        (Identifier, 3, "d"),
        (String, 3, "r#\"raw \" \"#"),
        (String, 3, "b\"x\\\"y\""),
        (Comment, 3, "/* one"),
        (Comment, 4, "two */"),
    ];
    assert_eq!(found, expected);
}
