//! Ordinary code: the sources of this repository and a few fixtures hold no secret, so nothing in them is replaced.

use crate::samples::redactor;
use std::path::{Path, PathBuf};
use toold_redact::KnownValues;

const FIXTURES: [(&str, &str); 5] = [
    ("client.py", include_str!("../fixtures/client.py.txt")),
    ("workflow.yml", include_str!("../fixtures/workflow.yml.txt")),
    ("server.ts", include_str!("../fixtures/server.ts.txt")),
    ("deploy.sh", include_str!("../fixtures/deploy.sh.txt")),
    ("readme.md", include_str!("../fixtures/readme.md.txt")),
];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && !matches!(&*name, "target" | "corpus" | "node_modules") {
                sources(&path, found);
            }
        } else if [".rs", ".md", ".toml", ".json", ".py", ".sh", ".txt", ".lock"].iter().any(|end| name.ends_with(end))
        {
            found.push(path);
        }
    }
}

#[test]
fn nothing_in_this_repository_is_replaced() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    assert!(paths.len() > 100, "the sources are found");
    let redactor = redactor();
    let mut wrong = Vec::new();
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let redacted = redactor.redact(&text, &KnownValues::new());
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        wrong.extend(redacted.counts.iter().map(|one| format!("{name}: {} {}", one.count, one.rule)));
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn nothing_in_ordinary_code_is_replaced() {
    for (name, text) in FIXTURES {
        let redacted = redactor().redact(text, &KnownValues::new());
        assert_eq!((name, redacted.counts), (name, vec![]));
        assert_eq!(redacted.text, text);
    }
}
