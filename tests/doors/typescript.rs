//! The TypeScript client: its own tests under Node, and the strict compiler over its types.

use std::path::{Path, PathBuf};
use std::process::Command;
use toold_test_support::programs;

/// The oldest major version of Node that the client supports.
const MIN_NODE: u32 = 18;
/// Seconds that the tests may take.
const SUITE_TIMEOUT: &str = "900";
/// Seconds that an installation or the compiler may take.
const CHECK_TIMEOUT: &str = "300";

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("client/typescript")
}

/// Runs a program below a time limit. Returns its output, as an error if it fails.
fn run(timeout: &str, dir: &Path, program: &str, args: &[&str]) -> Result<String, String> {
    let bin = programs::toold().parent().expect("a directory").to_path_buf();
    let output = Command::new("timeout")
        .args(["-k", "10", timeout, program])
        .args(args)
        .current_dir(dir)
        .env("TOOLD_BIN_DIR", bin)
        .output()
        .map_err(|error| error.to_string())?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(text) } else { Err(format!("{program} {args:?}: {text}")) }
}

/// Returns true if Node is there and new enough. Prints the reason if not.
fn has_node() -> bool {
    let version = run("20", Path::new("/"), "node", &["--version"]).unwrap_or_default();
    let major: u32 = version.trim().trim_start_matches('v').split('.').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    if major < MIN_NODE {
        println!("skipped: Node {MIN_NODE} or later is not installed (found {:?})", version.trim());
    }
    major >= MIN_NODE
}

/// Returns the oldest Node that the client supports, which `tests/door-programs` installs.
fn oldest_node() -> Option<String> {
    let test = std::env::current_exe().expect("the path of this program");
    let path = test.ancestors().nth(3)?.join("door-programs/node-oldest/node_modules/.bin/node");
    let version = run("20", Path::new("/"), path.to_str()?, &["--version"]).unwrap_or_default();
    let is_oldest = version.starts_with(&format!("v{MIN_NODE}."));
    if !is_oldest {
        println!("skipped: Node {MIN_NODE} is not installed (tests/door-programs)");
    }
    is_oldest.then(|| path.display().to_string())
}

#[test]
fn the_tests_of_the_client_pass_under_node() {
    if !has_node() {
        return;
    }
    for node in ["node".to_owned()].into_iter().chain(oldest_node()) {
        for file in ["examples.test.js", "survive.test.js", "readme.test.js"] {
            let path = format!("test/{file}");
            run(SUITE_TIMEOUT, &package(), &node, &["--test", &path]).unwrap_or_else(|why| panic!("{why}"));
        }
    }
}

#[test]
fn the_strict_compiler_accepts_the_client_and_a_program_that_installs_it() {
    if !has_node() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for part in ["src", "test"] {
        copy(&package().join(part), &dir.path().join(part));
    }
    for file in ["package.json", "tsconfig.json", "README.md"] {
        std::fs::copy(package().join(file), dir.path().join(file)).expect("a copy");
    }
    let install = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"];
    if let Err(why) = run(CHECK_TIMEOUT, dir.path(), "npm", &install) {
        println!("skipped: npm cannot install the compiler: {why}");
        return;
    }
    let tsc = dir.path().join("node_modules/typescript/bin/tsc");
    let compiled = run(CHECK_TIMEOUT, dir.path(), "node", &[&tsc.to_string_lossy(), "-p", "tsconfig.json"]);
    compiled.unwrap_or_else(|why| panic!("{why}"));
    let packed = run(CHECK_TIMEOUT, dir.path(), "npm", &["pack", "--dry-run"]).unwrap_or_else(|why| panic!("{why}"));
    for file in ["src/index.js", "src/index.mjs", "src/index.d.ts", "src/methods.js", "src/types.d.ts", "README.md"] {
        assert!(packed.contains(file), "{file} is not in the package: {packed}");
    }
    assert!(!packed.contains("test/"), "{packed}");
}

/// Copies the files of a directory, without those below.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a new directory");
    for entry in std::fs::read_dir(from).expect("a directory").map(|entry| entry.expect("an entry")) {
        if entry.file_type().expect("its type").is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
    }
}
