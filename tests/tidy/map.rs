//! ARCHITECTURE.md names only files and directories that exist.

use crate::none;
use crate::source::{files, read, relative, root};
use regex::Regex;
use std::collections::BTreeSet;

/// Names in the map that are not files: other programs, crates and sections.
const NOT_FILES: &[&str] = &["toolctl", "toold", "unsafe", "rpc.discover", "wait", "ready"];

/// Every file and directory without `src` and extensions: `daemon/shim/src/tree.rs` as `daemon/shim/tree`.
fn tree() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for path in files("") {
        let name = relative(&path);
        let parts: Vec<&str> = name.split('/').filter(|part| *part != "src").collect();
        for end in 1..=parts.len() {
            all.insert(strip_extension(&parts[..end].join("/")).to_string());
        }
    }
    all
}

fn strip_extension(name: &str) -> &str {
    [".rs", ".md", ".txt", ".json"].iter().find_map(|ext| name.strip_suffix(ext)).unwrap_or(name)
}

/// A name of the page in the form of the tree.
fn normalized(name: &str) -> String {
    let parts: Vec<&str> = name.trim_end_matches('/').split('/').filter(|part| *part != "src").collect();
    strip_extension(&parts.join("/")).to_string()
}

/// The names in backquotes that are to be files: in the list of the map and in the last column of the invariants.
fn names(text: &str) -> Vec<(usize, String)> {
    let name = Regex::new(r"`([a-z_][a-z0-9_]*(?:[/.][a-z0-9_.-]+)*/?)`").expect("a valid pattern");
    let mut found = Vec::new();
    let mut section = "";
    for (i, line) in text.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title;
        }
        let part = match section {
            "Map" => line,
            "Invariants" => line.trim_end_matches(" |").rsplit(" | ").next().unwrap_or(""),
            // Prose.
            _ => continue,
        };
        found.extend(name.captures_iter(part).map(|found| (i + 1, found[1].to_string())));
    }
    found
}

#[test]
fn architecture_names_files_that_exist() {
    let page = read(&root().join("ARCHITECTURE.md"));
    let tree = tree();
    let named = names(&page.text);
    assert!(named.len() > 50, "the map is found: {named:?}");
    let missing = named.into_iter().filter(|(_, name)| {
        let file = normalized(name);
        let end = format!("/{file}");
        !NOT_FILES.contains(&name.as_str()) && !tree.contains(&file) && !tree.iter().any(|path| path.ends_with(&end))
    });
    none("a file of the page exists", missing.map(|(line, name)| format!("ARCHITECTURE.md:{line}: {name}")).collect());
}
