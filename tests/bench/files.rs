//! `fs.search` over a tree of 50,000 files, beside ripgrep with the same options on the same tree.

use crate::Bench;
use crate::client::{Client, call};
use crate::report::Target::TimesFloor;
use crate::report::{Figure, Unit};
use crate::sample::ms;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use toold_test_support::rig::Daemon;

const FILES: usize = 50_000;
const FILES_IN_A_DIR: usize = 100;
/// One file of this number has the line that is searched for.
const FILES_TO_A_MATCH: usize = 500;

/// Writes the tree: text of some kilobytes in each file, in directories two levels deep.
fn tree(root: &Path) {
    let text = "fn some_name(argument: u32) -> u32 {\n    argument.wrapping_mul(31)\n}\n\n".repeat(30);
    for n in 0..FILES {
        let dir = n / FILES_IN_A_DIR;
        let dir = root.join(format!("d{}/e{dir}", dir % 20));
        if n % FILES_IN_A_DIR == 0 {
            fs::create_dir_all(&dir).unwrap();
        }
        let end = if n % FILES_TO_A_MATCH == 0 { "let needle = 42;\n" } else { "" };
        fs::write(dir.join(format!("f{n}.rs")), format!("{text}{end}")).unwrap();
    }
    fs::write(root.join(".ignore"), "*.log\n/target/\n").unwrap();
}

pub fn search(bench: &mut Bench) {
    if Command::new("rg").arg("--version").output().is_err() {
        return bench.report.skip("fs.search", "rg is not installed");
    }
    let daemon = Daemon::start();
    let root = daemon.root().join("tree");
    tree(&root);
    let found = FILES / FILES_TO_A_MATCH;
    let patterns = [("literal", "needle"), ("regex", r"let \w+edle = [0-9]+;")];
    let mut client = Client::open(&daemon.socket());
    for (name, pattern) in patterns {
        let question =
            call("fs.search", json!({ "pattern": pattern, "path": root, "limit": 1000, "timeout_ms": 100_000 }));
        let mut rg = Command::new("rg");
        rg.args(["--no-config", "--line-number", "--no-heading", "--color=never", pattern]).arg(&root);
        let (mut ours, mut floor) = (Vec::new(), Vec::new());
        for repetition in 0..bench.pick(7, 15) {
            let mut lines = 0;
            let theirs = ms(|| lines = rg.output().unwrap().stdout.split(|b| *b == b'\n').count() - 1);
            let mine = client.ask(&question) / 1e3;
            let answer: serde_json::Value = serde_json::from_slice(client.last()).unwrap();
            assert_eq!((&answer["result"]["total"], lines), (&json!(found), found), "{}", answer["error"]);
            // The first one reads the directories into the cache.
            if repetition > 0 {
                floor.push(theirs);
                ours.push(mine);
            }
        }
        let figure = Figure::new(format!("fs.search.{name}"), Unit::Ms, &ours).floor("rg", &floor);
        bench.report.add(figure.target(TimesFloor(1.3)).note(format!("{FILES} files, {found} matches")));
    }
}
