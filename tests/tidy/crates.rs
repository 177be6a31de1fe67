//! The crates that a shim links stay small: no async runtime, no serialisation framework, no HTTP.

use crate::none;
use crate::source::root;
use std::collections::BTreeSet;
use std::process::Command;

const SMALL: [&str; 2] = ["toold-format", "toold-shim"];
/// Beginnings of crate names.
const BANNED: [&str; 4] = ["tokio", "serde", "hyper", "toold-proto"];

/// Lists the names of a package's dependencies, direct and not, without those of its tests.
fn dependencies(package: &str) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = Command::new(cargo)
        .args([
            "tree",
            "--offline",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--package",
            package,
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = String::from_utf8(run.stdout).expect("names are text");
    text.lines().filter_map(|line| line.split(' ').next()).map(String::from).collect()
}

/// Crates that only the programs beside `toolctl` and `toold` link.
const HEAVY: [&str; 4] = ["ratatui", "crossterm", "toold-top", "toold-web"];
/// Crates that `toolctl` does not link either. The daemon has a WebSocket of its own.
const NOT_IN_CLIENT: [&str; 3] = ["tokio", "hyper", "tungstenite"];

#[test]
fn toolctl_and_toold_link_no_stack_of_the_programs_beside_them() {
    let mut broken = Vec::new();
    for package in ["toold-client", "toold-daemon"] {
        let found = dependencies(package);
        assert!(found.contains("serde"), "the dependencies are found: {found:?}");
        let is_heavy = |name: &str| HEAVY.contains(&name) || package == "toold-client" && NOT_IN_CLIENT.contains(&name);
        let heavy = found.iter().filter(|name| is_heavy(name));
        broken.extend(heavy.map(|name| format!("{package} links {name}")));
    }
    none("a screen and a web page are programs of their own", broken);
}

#[test]
fn the_crates_of_the_shim_link_no_runtime_and_no_serialiser() {
    let mut broken = Vec::new();
    for package in SMALL {
        let found = dependencies(package);
        assert!(found.contains("rustix"), "the dependencies are found: {found:?}");
        let banned = found.iter().filter(|name| BANNED.iter().any(|banned| name.starts_with(banned)));
        broken.extend(banned.map(|name| format!("{package} links {name}")));
    }
    none("the shim and its formats link neither of these", broken);
}
