//! Random trees and random patches: the result is that of the patch, an undo gives the same bytes and modes, a patch that
//! does not fit changes nothing, and `sequential` reports exactly what it did. `TOOLD_PATCH_ROUNDS=2000` runs more.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use toold_test_support::rig::Daemon;

const DEFAULT_ROUNDS: u64 = 40;
const NAMES: [&str; 6] = ["a", "deep/er/b.txt", "ünï cödé/ñ", "with blank", "-dash", "日本/語.rs"];
const MODES: [u32; 4] = [0o644, 0o600, 0o755, 0o444];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// A file of the tree. No line is there twice, so a chunk has one place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    lines: Vec<String>,
    end: &'static str,
    has_bom: bool,
    ends_in_newline: bool,
    mode: u32,
}

impl Content {
    fn random(random: &mut Random, name: &str) -> Content {
        let count = if random.one_in(6) { 0 } else { 1 + random.below(30) };
        let line = |at: usize| match at % 4 {
            0 => format!("{name} {at}"),
            1 => format!("    indented {at}"),
            2 => format!("\ttab and ünïcode {at} "),
            _ => format!("{at}"),
        };
        Content {
            lines: (0..count).map(line).collect(),
            end: if random.one_in(3) { "\r\n" } else { "\n" },
            has_bom: count > 0 && random.one_in(5),
            ends_in_newline: !random.one_in(4),
            mode: MODES[random.below(MODES.len())],
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut text = self.lines.join(self.end);
        if self.ends_in_newline && !self.lines.is_empty() {
            text += self.end;
        }
        if self.has_bom { format!("\u{feff}{text}").into_bytes() } else { text.into_bytes() }
    }
}

type Tree = BTreeMap<String, Content>;

/// One operation: its text, and the tree after it.
struct Operation {
    text: String,
    paths: Vec<String>,
    after: Tree,
}

/// Makes an operation on a path that no other one has.
fn operation(random: &mut Random, tree: &Tree, taken: &[String], round: u64) -> Option<Operation> {
    let mut after = tree.clone();
    let free: Vec<&String> = tree.keys().filter(|name| !taken.contains(name)).collect();
    let new = format!("new {round}/{}", taken.len());
    if free.is_empty() || random.one_in(4) {
        let lines: Vec<String> = (0..1 + random.below(5)).map(|at| format!("added {at}")).collect();
        let text = lines.iter().fold(format!("*** Add File: {new}\n"), |text, line| text + &format!("+{line}\n"));
        let added = Content { lines, end: "\n", has_bom: false, ends_in_newline: true, mode: 0 };
        after.insert(new.clone(), added);
        return Some(Operation { text, paths: vec![new], after });
    }
    let name = free[random.below(free.len())].clone();
    if random.one_in(4) {
        after.remove(&name);
        return Some(Operation { text: format!("*** Delete File: {name}\n"), paths: vec![name], after });
    }
    let mut content = after.remove(&name)?;
    // A line with a mark has a test of its own.
    let (first, last) = (usize::from(content.has_bom), content.lines.len().checked_sub(1)?);
    if first + 1 >= last {
        return None;
    }
    let from = first + random.below(last - first);
    let to = (from + 1 + random.below(3)).min(last);
    let mut chunk = String::new();
    if from > 0 && random.one_in(2) {
        chunk += &format!("@@ {}\n", content.lines[from - 1]);
    }
    let new_lines: Vec<String> = (0..random.below(4)).map(|at| format!("changed {round} {at}")).collect();
    content.lines[from..to].iter().for_each(|line| chunk += &format!("-{line}\n"));
    new_lines.iter().for_each(|line| chunk += &format!("+{line}\n"));
    chunk += &format!(" {}\n", content.lines[to]);
    content.lines.splice(from..to, new_lines);
    content.ends_in_newline = true;
    let moves = random.one_in(4);
    let (header, paths) = match moves {
        true => (format!("*** Update File: {name}\n*** Move to: {new}\n"), vec![name.clone(), new.clone()]),
        false => (format!("*** Update File: {name}\n"), vec![name.clone()]),
    };
    after.insert(if moves { new } else { name }, content);
    Some(Operation { text: header + &chunk, paths, after })
}

fn write(dir: &Path, tree: &Tree) {
    for (name, content) in tree {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content.bytes()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(content.mode)).unwrap();
    }
}

/// Everything below a directory: files with mode and bytes, and directories.
fn look(dir: &Path) -> BTreeMap<PathBuf, Option<(u32, Vec<u8>)>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            let file = meta.is_file().then(|| (meta.permissions().mode() & 0o7777, fs::read(&path).unwrap()));
            if file.is_none() {
                dirs.push(path.clone());
            }
            found.insert(path, file);
        }
    }
    found
}

/// Checks that the files are those of the tree. A new file has the mode that the daemon gives it.
#[track_caller]
fn check(dir: &Path, tree: &Tree, what: &str) {
    let found = look(dir);
    let files = found.iter().filter_map(|(path, file)| Some((path, file.as_ref()?)));
    let names: Vec<&Path> = files.clone().map(|(path, _)| path.strip_prefix(dir).unwrap()).collect();
    assert_eq!(names.len(), tree.len(), "{what}: {names:?}");
    for (name, content) in tree {
        let (mode, bytes) = found[&dir.join(name)].as_ref().unwrap();
        assert_eq!(String::from_utf8_lossy(bytes), String::from_utf8_lossy(&content.bytes()), "{name}: {what}");
        assert!(content.mode == 0 || content.mode == *mode, "{name}: mode {mode:o}: {what}");
    }
}

fn patch(operations: &[&str]) -> String {
    format!("*** Begin Patch\n{}*** End Patch\n", operations.concat())
}

#[test]
fn random_patches_are_applied_as_written_and_undone_without_a_trace() {
    let d = Daemon::start_with("survive_power_cut = false\n", &[]);
    let rounds = std::env::var("TOOLD_PATCH_ROUNDS").map_or(DEFAULT_ROUNDS, |count| count.parse().unwrap());
    for round in 0..rounds {
        let mut random = Random(round);
        let dir = d.root().join(format!("tree-{round}"));
        fs::create_dir(&dir).unwrap();
        let mut tree = Tree::new();
        for name in NAMES {
            if !random.one_in(4) {
                tree.insert(name.to_string(), Content::random(&mut random, name));
            }
        }
        write(&dir, &tree);
        let before = look(&dir);
        let (mut now, mut taken, mut operations) = (tree, Vec::new(), Vec::new());
        for _ in 0..1 + random.below(5) {
            if let Some(made) = operation(&mut random, &now, &taken, round) {
                now.clone_from(&made.after);
                taken.extend(made.paths.clone());
                operations.push(made);
            }
        }
        let texts: Vec<&str> = operations.iter().map(|operation| operation.text.as_str()).collect();
        if texts.is_empty() {
            continue;
        }
        let whole = patch(&texts);
        let what = format!("round {round}:\n{whole}");
        let call = |text: &str, mode: &str| json!({ "patch": text, "cwd": dir, "mode": mode });

        // One that does not fit, anywhere among them: nothing, or exactly those before it.
        let at = random.below(texts.len() + 1);
        let misfit = "*** Update File: nowhere\n-x\n+y\n";
        let wrong = patch(&[&texts[..at], &[misfit], &texts[at..]].concat());
        d.refused(-32602, "invalid_params", "patch.apply", call(&wrong, "atomic"));
        assert_eq!(look(&dir), before, "{what}");
        if at == 0 {
            d.refused(-32602, "invalid_params", "patch.apply", call(&wrong, "sequential"));
        } else {
            let part = d.ok("patch.apply", call(&wrong, "sequential"));
            assert_eq!((&part["status"], &part["failed"]["path"]), (&json!("partial"), &json!("nowhere")), "{what}");
            assert_eq!(part["files"].as_array().unwrap().len(), at, "{part}: {what}");
            check(&dir, &operations[at - 1].after, &what);
            d.ok("patch.revert", json!({ "patch_id": part["patch_id"] }));
        }
        assert_eq!(look(&dir), before, "{what}");

        let mode = if random.one_in(2) { "atomic" } else { "sequential" };
        let checked = d.ok("patch.apply", json!({ "patch": whole, "cwd": dir, "mode": mode, "check": true }));
        assert_eq!((&checked["status"], look(&dir) == before), (&json!("checked"), true), "{what}");
        let applied = d.ok("patch.apply", call(&whole, mode));
        check(&dir, &now, &what);
        assert_eq!((&applied["files"], &applied["diff"]), (&checked["files"], &checked["diff"]), "{what}");
        d.ok("patch.revert", json!({ "patch_id": applied["patch_id"] }));
        assert_eq!(look(&dir), before, "{what}");
    }
}

#[test]
fn a_file_of_ten_megabytes_is_changed_in_one_place_and_undone() {
    let d = Daemon::start();
    let path = d.root().join("large");
    let line = |at: usize| format!("{at:07} {}\n", "x".repeat(92));
    let text: String = (0..100_000).map(line).collect();
    fs::write(&path, &text).unwrap();
    let (old, new) = (line(99_990), line(99_990).replace('x', "y"));
    let call = json!({ "patch": patch(&[&format!("*** Update File: large\n-{old}+{new}")]), "cwd": d.root() });
    let applied = d.ok("patch.apply", call);
    assert_eq!((&applied["files"][0]["added"], &applied["files"][0]["removed"]), (&json!(1), &json!(1)));
    assert!(fs::read_to_string(&path).unwrap() == text.replace(&old, &new), "only that line has changed");
    d.ok("patch.revert", json!({ "patch_id": applied["patch_id"] }));
    assert!(fs::read_to_string(&path).unwrap() == text, "the old bytes are back");
}

#[test]
fn a_mark_stays_and_every_line_of_a_changed_file_gets_an_end() {
    let d = Daemon::start();
    let path = d.root().join("f");
    let apply = |before: &str, chunk: &str| -> Value {
        fs::write(&path, before).unwrap();
        let text = patch(&[&format!("*** Update File: f\n{chunk}")]);
        d.ok("patch.apply", json!({ "patch": text, "cwd": d.root() }))
    };
    for (before, chunk, after) in [
        ("\u{feff}one\r\ntwo\r\n", "-one\n+1\n", "\u{feff}1\r\ntwo\r\n"),
        ("one\ntwo", "-one\n+1\n", "1\ntwo\n"),
        ("one\r\ntwo", " one\n+half\n two\n", "one\r\nhalf\r\ntwo\r\n"),
        ("\u{feff}one", " one\n+two\n", "\u{feff}one\ntwo\n"),
    ] {
        let applied = apply(before, chunk);
        assert_eq!(fs::read_to_string(&path).unwrap(), after, "{before:?}");
        d.ok("patch.revert", json!({ "patch_id": applied["patch_id"] }));
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
    }
}
