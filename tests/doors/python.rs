//! The Python client: its own tests under every Python of this machine, and two type checkers over its types.

use std::path::{Path, PathBuf};
use std::process::Command;
use toold_test_support::programs;

/// The oldest minor version of Python 3 that the client supports.
const MIN_MINOR: u32 = 9;
/// Seconds that the tests under one Python may take.
const SUITE_TIMEOUT: &str = "900";
/// Seconds that an installation or a type checker may take.
const CHECK_TIMEOUT: &str = "300";
/// Tests that are run under the versions between the oldest and the newest too: what differs there is the language.
const EVERYWHERE: [&str; 3] = ["test_examples.py", "test_methods.py", "test_readme.py"];

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("client/python")
}

/// Runs a program below a time limit. Returns its output, as an error if it fails.
fn run(timeout: &str, dir: &Path, program: &Path, args: &[&str]) -> Result<String, String> {
    let bin = programs::toold().parent().expect("a directory").to_path_buf();
    let output = Command::new("timeout")
        .args(["-k", "10", timeout])
        .arg(program)
        .args(args)
        .current_dir(dir)
        .env("TOOLD_BIN_DIR", bin)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONPATH", package())
        .output()
        .map_err(|error| error.to_string())?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(text) } else { Err(format!("{} {args:?}: {text}", program.display())) }
}

/// Returns the Pythons that the client supports, the oldest first, one of each version: those of PATH, and those of pyenv.
fn pythons() -> Vec<(u32, PathBuf)> {
    let mut candidates: Vec<PathBuf> = vec!["python3".into()];
    candidates.extend((MIN_MINOR..MIN_MINOR + 10).map(|minor| PathBuf::from(format!("python3.{minor}"))));
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let versions = root.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    candidates.extend(versions.into_iter().flatten().flatten().map(|entry| entry.path().join("bin/python")));
    let mut found: Vec<(u32, PathBuf)> =
        candidates.into_iter().filter_map(|path| Some((minor(&path)?, path))).collect();
    found.sort();
    found.dedup_by_key(|(minor, _)| *minor);
    found
}

/// Returns the minor version of a Python 3 that works and is new enough.
fn minor(python: &Path) -> Option<u32> {
    let script = "import sys; print(sys.version_info[0], sys.version_info[1])";
    let printed = run("20", Path::new("/"), python, &["-c", script]).ok()?;
    let minor = printed.trim().strip_prefix("3 ")?.parse().ok()?;
    (minor >= MIN_MINOR).then_some(minor)
}

#[test]
fn the_tests_of_the_client_pass_under_every_python() {
    let pythons = pythons();
    if pythons.is_empty() {
        println!("skipped: no Python 3.{MIN_MINOR} or later is installed");
    }
    let tests = package().join("tests");
    for (at, (minor, python)) in pythons.iter().enumerate() {
        let is_edge = at == 0 || at + 1 == pythons.len();
        let mut files: Vec<String> = std::fs::read_dir(&tests)
            .expect("the tests of the client")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("test_") && (is_edge || EVERYWHERE.contains(&name.as_str())))
            .collect();
        files.sort();
        assert!(files.len() >= if is_edge { 6 } else { EVERYWHERE.len() }, "{files:?}");
        let args: Vec<&str> =
            ["-X", "dev", "-m", "unittest"].into_iter().chain(files.iter().map(String::as_str)).collect();
        let report = run(SUITE_TIMEOUT, &tests, python, &args).unwrap_or_else(|why| panic!("3.{minor}: {why}"));
        assert!(!report.contains("ResourceWarning"), "3.{minor}: {report}");
    }
}

#[test]
fn type_checkers_accept_the_client_and_report_mistakes() {
    let Some((_, python)) = pythons().pop() else {
        println!("skipped: no Python 3.{MIN_MINOR} or later is installed");
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let venv = dir.path().join("venv");
    let made = run(CHECK_TIMEOUT, dir.path(), &python, &["-m", "venv", "venv"]);
    let install = ["-m", "pip", "install", "-q", "mypy", "pyright"];
    let installed = made.and_then(|_| run(CHECK_TIMEOUT, dir.path(), &venv.join("bin/python"), &install));
    if let Err(why) = installed {
        println!("skipped: mypy and pyright cannot be installed: {why}");
        return;
    }
    copy(&package().join("toold"), &dir.path().join("toold"));
    copy(&package().join("tests"), &dir.path().join("tests"));
    let mypy =
        |args: &[&str]| run(CHECK_TIMEOUT, dir.path(), &venv.join("bin/mypy"), &[&["--strict"][..], args].concat());
    mypy(&["-p", "toold"]).unwrap_or_else(|why| panic!("{why}"));
    mypy(&["tests/use.py"]).unwrap_or_else(|why| panic!("{why}"));
    let report = mypy(&["tests/mistakes.py"]).expect_err("the file has mistakes");
    let mistakes = std::fs::read_to_string(dir.path().join("tests/mistakes.py")).expect("the file");
    for (at, line) in mistakes.lines().enumerate() {
        let is_reported = report.contains(&format!("mistakes.py:{}: error", at + 1));
        assert_eq!(is_reported, line.ends_with("# error"), "line {}: {line}\n{report}", at + 1);
    }
    let config = r#"{"include": ["toold", "tests/use.py"], "pythonVersion": "3.9"}"#;
    std::fs::write(dir.path().join("pyrightconfig.json"), config).expect("a config");
    match run(CHECK_TIMEOUT, dir.path(), &venv.join("bin/pyright"), &["--version"]) {
        Err(why) => println!("skipped: pyright cannot fetch its program: {why}"),
        Ok(_) => {
            let checked = run(CHECK_TIMEOUT, dir.path(), &venv.join("bin/pyright"), &["-p", "."]);
            checked.unwrap_or_else(|why| panic!("{why}"));
        }
    }
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
