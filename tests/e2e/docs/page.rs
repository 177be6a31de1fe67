//! Parses a page of the documentation: sessions to type, files to save, and other blocks.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

/// One command of a session, and its shown output.
#[derive(Debug, Clone)]
pub struct Typed {
    /// The command with its continuation lines.
    pub command: String,
    pub shown: Vec<String>,
    /// The lines of `shown` in the page.
    pub lines: Range<usize>,
}

/// A fenced block.
#[derive(Debug)]
pub enum Block {
    /// ```` ```console ````: `$ ` and a command, `> ` and its next line, then its output.
    Session(Vec<Typed>),
    /// ```` ```sh ````: lines about building this repository.
    Building(Vec<String>),
    /// Any other language: its text, which names its file in a comment at the top, or is a config.
    Text { language: String, text: String },
}

#[derive(Debug)]
pub struct Page {
    /// Path below the repository's root.
    pub name: String,
    pub text: String,
    pub blocks: Vec<Block>,
}

impl Page {
    pub fn path(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(&self.name)
    }

    /// Every command of its sessions, in order.
    pub fn typed(&self) -> Vec<&Typed> {
        let sessions = self.blocks.iter().filter_map(|block| match block {
            Block::Session(typed) => Some(typed),
            Block::Building(_) | Block::Text { .. } => None,
        });
        sessions.flatten().collect()
    }

    /// The lines that are in no fenced block.
    pub fn prose(&self) -> Vec<&str> {
        let mut fenced = false;
        let outside = self.text.lines().filter(|line| {
            let fence = line.starts_with("```");
            fenced ^= fence;
            !fenced && !fence
        });
        outside.collect()
    }
}

/// README, CONTRIBUTING and all of `docs/`.
pub fn all() -> Vec<Page> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let docs = docs.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}"));
    let mut names: Vec<String> = docs.chain(["README.md".into(), "CONTRIBUTING.md".into()]).collect();
    names.sort();
    names.into_iter().map(|name| read(&fs::read_to_string(root.join(&name)).unwrap(), name)).collect()
}

fn read(text: &str, name: String) -> Page {
    let lines: Vec<&str> = text.lines().collect();
    let (mut blocks, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let Some(language) = lines[at].strip_prefix("```") else {
            at += 1;
            continue;
        };
        let end = (at + 1..lines.len()).find(|i| lines[*i] == "```").unwrap_or_else(|| panic!("{name}:{at}: no end"));
        let inside = at + 1..end;
        blocks.push(match language {
            "console" => Block::Session(session(&name, &lines, inside)),
            "sh" => Block::Building(lines[inside].iter().map(|line| line.to_string()).collect()),
            "" => panic!("{name}:{}: name the language of this block: console, sh, toml, …", at + 1),
            other => Block::Text { language: other.into(), text: lines[inside].join("\n") + "\n" },
        });
        at = end + 1;
    }
    Page { name, text: text.into(), blocks }
}

fn session(name: &str, lines: &[&str], inside: Range<usize>) -> Vec<Typed> {
    let mut all: Vec<Typed> = Vec::new();
    for i in inside {
        let line = lines[i];
        if let Some(command) = line.strip_prefix("$ ") {
            all.push(Typed { command: command.into(), shown: Vec::new(), lines: i + 1..i + 1 });
            continue;
        }
        let last = all.last_mut().unwrap_or_else(|| panic!("{name}:{}: a session begins with a command", i + 1));
        match line.strip_prefix("> ").filter(|_| last.shown.is_empty()) {
            Some(more) => {
                last.command = format!("{}\n{more}", last.command);
                last.lines = i + 1..i + 1;
            }
            None => {
                last.shown.push(line.into());
                last.lines.end = i + 1;
            }
        }
    }
    all
}
