//! `rpc.discover`: the document is what generators of clients take.

use serde_json::json;
use std::path::Path;
use std::process::Command;
use toold_test_support::rig::{Daemon, skip_unless};

const FILES: [(&str, &str); 3] = [
    ("package.json", include_str!("../openrpc/package.json")),
    ("check.cjs", include_str!("../openrpc/check.cjs")),
    ("use.ts", include_str!("../openrpc/use.ts")),
];

/// Runs a program in a directory. Returns all that it printed if it failed.
fn run(dir: &Path, program: &str, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(args).current_dir(dir).output().map_err(|e| format!("{program}: {e}"))?;
    let text = [output.stdout, output.stderr].concat();
    output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&text).into_owned())
}

/// The document was valid before, and of no use: no component had a title, so the generator joined the names of all fields
/// to names of up to 13,189 characters, and `tsc` found 12 errors in its output.
#[test]
fn the_generated_typescript_compiles_and_the_document_is_valid() {
    let d = Daemon::start();
    let document = d.ok("rpc.discover", json!({}));
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in FILES {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    std::fs::write(dir.path().join("openrpc.json"), document.to_string()).unwrap();
    if skip_unless(run(dir.path(), "npm", &["--version"]).is_ok(), "npm is not installed") {
        return;
    }
    let install = ["install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"];
    if let Err(why) = run(dir.path(), "npm", &install) {
        // A version that the registry does not have is a defect of this test.
        assert!(!why.contains("ETARGET") && !why.contains("E404"), "{why}");
        skip_unless(false, &format!("npm cannot install the generator: {why}"));
        return;
    }
    run(dir.path(), "node", &["check.cjs"]).unwrap_or_else(|why| panic!("{why}"));
    let tsc = "node_modules/typescript/bin/tsc";
    let compile = ["--noEmit", "--strict", "--target", "es2020", "use.ts"];
    run(dir.path(), "node", &[&[tsc][..], &compile].concat()).unwrap_or_else(|why| panic!("{why}"));
}
