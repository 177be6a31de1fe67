//! Lists the files of `agents` and `editors`, which `toolctl integrate` writes, so that they are part of the program.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The directories that are embedded. One that is missing has no files.
const DIRS: [&str; 7] = [
    "agents/claude-code",
    "agents/codex",
    "agents/opencode",
    "agents/gemini",
    "agents/hermes",
    "editors/nvim",
    "editors/emacs",
];
/// The names that are not for users.
const LEFT_OUT: [&str; 4] = ["test", "tests", "spec", "README.md"];

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut list = String::from("&[\n");
    for dir in DIRS {
        // A directory that does not exist yet is noticed by its parent.
        println!("cargo::rerun-if-changed={}", root.join(dir).parent().unwrap_or(&root).display());
        add_files(&root, &root.join(dir), &mut list);
    }
    list.push(']');
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(out.join("embedded_files.rs"), list).expect("cargo's directory can be written");
}

fn add_files(root: &Path, dir: &Path, list: &mut String) {
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_compiled = name.ends_with(".elc");
        if LEFT_OUT.contains(&name.as_str()) || is_compiled {
            continue;
        }
        if path.is_dir() {
            add_files(root, &path, list);
        } else {
            let below = path.strip_prefix(root).expect("it is below the root").display().to_string();
            writeln!(list, "    ({below:?}, include_str!({:?})),", path.display().to_string())
                .expect("a string takes it");
        }
    }
}
