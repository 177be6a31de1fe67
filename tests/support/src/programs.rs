//! Paths of the programs under test. Only test targets of the root package know them at compile time, this crate does not.

use std::path::PathBuf;

pub fn toold() -> PathBuf {
    program("CARGO_BIN_EXE_toold", "toold")
}

pub fn toolctl() -> PathBuf {
    program("CARGO_BIN_EXE_toolctl", "toolctl")
}

/// Cargo 1.94 and later set the variable for a test that they run. Without it the program is one directory above the
/// test's own, `target/<profile>/deps`.
fn program(variable: &str, name: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        return path.into();
    }
    let test = std::env::current_exe().expect("the path of the running test");
    let path = test.parent().and_then(|deps| deps.parent()).expect("target/<profile>/deps").join(name);
    assert!(path.exists(), "{} is missing: build the root package first", path.display());
    path
}
