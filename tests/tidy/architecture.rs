//! ARCHITECTURE.md names only modules and files that exist.

use crate::none;
use crate::source::root;
use std::fs;

/// Directories that the map's names are relative to.
const MAP_DIRS: [&str; 6] = ["", "proto/src", "daemon/src", "daemon/src/proc", "daemon/shim/src", "client/src"];
/// Directories of the map whose modules are named below the name of their parent.
const NESTED_DIRS: [&str; 5] = ["daemon/src/registry", "daemon/src/store", "daemon/src/rpc", "proto", "tests"];
/// Names of the map in code font that are not files.
const NOT_FILES: [&str; 8] = ["unsafe", "wait", "ready", "run", "attach", "toolctl", "rpc.discover", "idx"];

/// Returns the text between the heading `## title` and the next heading of its level.
fn section<'a>(text: &'a str, title: &str) -> &'a str {
    let heading = format!("## {title}\n");
    let start = text.find(&heading).unwrap_or_else(|| panic!("no section {title}")) + heading.len();
    let end = text[start..].find("\n## ").map_or(text.len(), |at| start + at);
    &text[start..end]
}

/// Returns what stands in code font, if it could be the name of a file or a module.
fn names(text: &str) -> Vec<&str> {
    let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_/.".contains(c));
    text.split('`').skip(1).step_by(2).filter(is_name).filter(|name| !name.is_empty()).collect()
}

fn exists_in(dirs: &[&str], name: &str) -> bool {
    let name = name.trim_end_matches('/');
    dirs.iter().any(|dir| {
        let dir = root().join(dir);
        fs::exists(dir.join(name)).unwrap_or(false) || fs::exists(dir.join(format!("{name}.rs"))).unwrap_or(false)
    })
}

#[test]
fn architecture_names_only_what_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let map_dirs = [&MAP_DIRS[..], &NESTED_DIRS].concat();
    let missing_in_map = names(section(&text, "Map")).into_iter().filter(|name| {
        let known = NOT_FILES.contains(name) || exists_in(&map_dirs, name);
        !known
    });
    let guards = section(&text, "Invariants").lines().filter(|line| line.starts_with('|'));
    let guards = guards.filter_map(|line| line.trim_end_matches('|').rsplit('|').next());
    let missing_guards =
        guards.flat_map(names).filter(|name| !exists_in(&["", "tests/e2e", "tests"], name)).collect::<Vec<_>>();
    none("ARCHITECTURE.md names files that exist", missing_in_map.chain(missing_guards).map(String::from).collect());
}
