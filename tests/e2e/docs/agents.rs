//! The block of `docs/agents.md` for an AGENTS.md: it is short, and its commands work as an agent runs them, in a pipe.

use super::home::Home;
use super::page::{self, Block};
use std::process::Command;

/// The longest block.
const MAX_LINES: usize = 15;

/// Commands that need something first.
const FIRST: &[(&str, &str)] = &[
    (
        "toolctl exec --name web",
        "printf '#!/bin/sh\\nexec python3 -m http.server 8080 --bind 127.0.0.1\\n' > server; chmod +x server",
    ),
    ("toolctl wait ID --input", "toolctl exec --stdin --name ID -- cat"),
    ("toolctl submit", "toolctl exec --if-running return --stdin --name ID -- cat"),
];

fn block() -> String {
    let page = page::all().into_iter().find(|page| page.name == "docs/agents.md").unwrap();
    let blocks = page.blocks.iter().filter_map(|block| match block {
        Block::Text { language, text } if language == "markdown" => Some(text.clone()),
        Block::Text { .. } | Block::Session(_) | Block::Building(_) => None,
    });
    let blocks: Vec<String> = blocks.collect();
    assert_eq!(blocks.len(), 1, "there is one block to paste");
    blocks[0].clone()
}

#[test]
fn the_block_for_agents_is_short_and_its_commands_work() {
    let block = block();
    assert!(block.trim_end().lines().count() <= MAX_LINES, "{} lines", block.trim_end().lines().count());
    let inline = regex::Regex::new("`(toolctl [^`]+)`").unwrap();
    let commands: Vec<String> = inline.captures_iter(&block).map(|found| found[1].to_owned()).collect();
    assert!(commands.len() >= 10, "{commands:?}");
    let home = Home::new();
    for command in commands {
        let first = FIRST.iter().find(|(start, _)| command.starts_with(start)).map_or("true", |(_, first)| first);
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(home.localized(&format!("{first} >&2; {command}")));
        shell.env_clear().envs(home.environment()).current_dir(home.project());
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        assert!(!output.stdout.contains(&0x1b), "{command} prints an escape sequence: {output:?}");
    }
}
