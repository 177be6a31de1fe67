//! The agents and editors that can be connected: where their files are, and what belongs there. Reads files and writes none.

use super::{embedded, merge, toml_reader};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// An agent or editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    ClaudeCode,
    Codex,
    Opencode,
    Gemini,
    Hermes,
    Nvim,
    Emacs,
}

/// A file as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    pub path: PathBuf,
    /// The text that is there now.
    pub old: Option<String>,
    pub new: String,
    pub kind: FileKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileKind {
    /// The whole file is ours.
    Own,
    /// A config of the user with parts of ours.
    Shared { kept: Vec<String>, added: Vec<String> },
}

/// A config that is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub path: PathBuf,
    pub why: String,
    /// The text to put there by hand.
    pub snippet: &'static str,
}

/// The directories of a user.
#[derive(Debug, Clone)]
pub struct UserDirs {
    home: PathBuf,
    config: PathBuf,
    data: PathBuf,
    claude: PathBuf,
    codex: PathBuf,
    hermes: PathBuf,
}

impl UserDirs {
    /// Finds them from an environment. None: there is no home directory.
    pub fn from_env(var: impl Fn(&str) -> Option<OsString>) -> Option<UserDirs> {
        let dir = |name: &str| var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
        let home = dir("HOME")?;
        let or = |name: &str, below: &str| dir(name).unwrap_or_else(|| home.join(below));
        Some(UserDirs {
            config: or("XDG_CONFIG_HOME", ".config"),
            data: or("XDG_DATA_HOME", ".local/share"),
            claude: or("CLAUDE_CONFIG_DIR", ".claude"),
            codex: or("CODEX_HOME", ".codex"),
            hermes: or("HERMES_HOME", ".hermes"),
            home,
        })
    }

    /// Returns the directory that Emacs takes as its own.
    fn emacs(&self) -> PathBuf {
        let (old, new) = (self.home.join(".emacs.d"), self.config.join("emacs"));
        if !old.exists() && !self.home.join(".emacs").exists() && new.exists() { new } else { old }
    }
}

impl Target {
    pub const ALL: [Target; 7] = [
        Target::ClaudeCode,
        Target::Codex,
        Target::Opencode,
        Target::Gemini,
        Target::Hermes,
        Target::Nvim,
        Target::Emacs,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Target::ClaudeCode => "claude-code",
            Target::Codex => "codex",
            Target::Opencode => "opencode",
            Target::Gemini => "gemini",
            Target::Hermes => "hermes",
            Target::Nvim => "nvim",
            Target::Emacs => "emacs",
        }
    }

    /// Returns the hook of this agent that ends a turn, with the name that it calls us by. None: it has no hooks.
    pub fn stop_hook(self) -> Option<(&'static str, &'static str)> {
        match self {
            Target::ClaudeCode => Some(("claude", "Stop")),
            Target::Codex => Some(("codex", "Stop")),
            Target::Gemini => Some(("gemini", "AfterAgent")),
            Target::Opencode | Target::Hermes | Target::Nvim | Target::Emacs => None,
        }
    }

    /// Returns what the user does next, a line each.
    pub fn next_steps(self) -> &'static [&'static str] {
        match self {
            Target::ClaudeCode => &["the next session of Claude Code loads it; the tools are those of toold:toold"],
            Target::Codex => &["Codex asks once whether you trust the hooks: /hooks shows them"],
            Target::Opencode => &["restart opencode"],
            Target::Gemini => &["restart Gemini CLI; its sessions share the session `gemini` of toold"],
            Target::Hermes => &["pip install mcp   # in the environment of Hermes", "restart Hermes"],
            Target::Nvim => &["restart Neovim, then :checkhealth toold"],
            Target::Emacs => &["restart Emacs, then M-x toold-list"],
        }
    }

    /// Returns the files as they should be. Nothing is written.
    pub fn plan(self, dirs: &UserDirs) -> Result<Vec<PlannedFile>, Refusal> {
        let shared = |path: PathBuf, file: &str, merge: Merge| share(path, embedded::file(file), merge);
        match self {
            Target::ClaudeCode => own_files("agents/claude-code", &dirs.claude.join("skills/toold")),
            Target::Codex => Ok(vec![shared(dirs.codex.join("config.toml"), "agents/codex/config.toml", merge_toml)?]),
            Target::Opencode => {
                let dir = dirs.config.join("opencode");
                let (plain, commented) = (dir.join("opencode.json"), dir.join("opencode.jsonc"));
                let config = if !plain.exists() && commented.exists() { commented } else { plain };
                let plugin =
                    own_file(dir.join("plugin/toold.js"), embedded::file("agents/opencode/toold.js").to_owned())?;
                Ok(vec![shared(config, "agents/opencode/opencode.json", merge::json)?, plugin])
            }
            Target::Gemini => {
                let path = dirs.home.join(".gemini/settings.json");
                Ok(vec![shared(path, "agents/gemini/settings.json", merge::json)?])
            }
            Target::Hermes => {
                Ok(vec![shared(dirs.hermes.join("config.yaml"), "agents/hermes/config.yaml", merge::yaml)?])
            }
            Target::Nvim => own_files("editors/nvim", &dirs.data.join("nvim/site/pack/toold/start/toold.nvim")),
            Target::Emacs => {
                let version = env!("CARGO_PKG_VERSION");
                let dir = dirs.emacs().join(format!("elpa/toold-{version}"));
                let mut files = own_files("editors/emacs", &dir)?;
                let source = embedded::file("editors/emacs/toold.el");
                files.push(own_file(dir.join("toold-pkg.el"), emacs_package(version))?);
                files.push(own_file(dir.join("toold-autoloads.el"), emacs_autoloads(source))?);
                Ok(files)
            }
        }
    }
}

fn merge_toml(old: &str, snippet: &str) -> Result<merge::Merged, String> {
    merge::toml(old, snippet, toml_reader::read)
}

type Merge = fn(&str, &str) -> Result<merge::Merged, String>;

fn share(path: PathBuf, snippet: &'static str, merge: Merge) -> Result<PlannedFile, Refusal> {
    let refuse = |why: String| Refusal { path: path.clone(), why, snippet };
    let old = read(&path).map_err(refuse)?;
    let merged = merge(old.as_deref().unwrap_or_default(), snippet).map_err(refuse)?;
    let kind = FileKind::Shared { kept: merged.kept, added: merged.added };
    Ok(PlannedFile { path, old, new: merged.text, kind })
}

fn own_files(dir: &str, place: &Path) -> Result<Vec<PlannedFile>, Refusal> {
    if embedded::files(dir).next().is_none() {
        return Err(Refusal {
            path: place.to_owned(),
            why: "this toolctl was built without the files for it".into(),
            snippet: "",
        });
    }
    embedded::files(dir).map(|(below, text)| own_file(place.join(below), text.to_owned())).collect()
}

fn own_file(path: PathBuf, new: String) -> Result<PlannedFile, Refusal> {
    let old = read(&path).map_err(|why| Refusal { path: path.clone(), why, snippet: "" })?;
    Ok(PlannedFile { path, old, new, kind: FileKind::Own })
}

/// Reads a file. None: there is none.
fn read(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".to_owned()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(format!("it cannot be read: {e}")),
    }
}

/// The description by which Emacs activates a package at its start.
fn emacs_package(version: &str) -> String {
    let summary = "Background processes of the daemon toold";
    format!(
        ";;; -*- no-byte-compile: t -*-\n(define-package \"toold\" \"{version}\" \"{summary}\" '((emacs \"28.1\")))\n"
    )
}

/// The commands of a package, for Emacs to load it on first use: those below the mark that Emacs itself looks for.
fn emacs_autoloads(source: &str) -> String {
    let dir =
        "(add-to-list 'load-path (directory-file-name (or (file-name-directory load-file-name) default-directory)))";
    let mut text = format!(";;; toold-autoloads.el --- commands of toold -*- lexical-binding: t -*-\n{dir}\n");
    let mut is_marked = false;
    for line in source.lines() {
        let defined =
            ["(defun ", "(define-minor-mode ", "(define-derived-mode "].iter().find_map(|form| line.strip_prefix(form));
        if let Some(name) = defined.and_then(|rest| rest.split_whitespace().next()).filter(|_| is_marked) {
            text.push_str(&format!("(autoload '{name} \"toold\" nil t)\n"));
        }
        is_marked = line.trim() == ";;;###autoload";
    }
    text + "(provide 'toold-autoloads)\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_with_the_mark_are_loaded_on_first_use() {
        let source = ";;;###autoload\n(defun toold-list ()\n  x)\n(defun toold--inner ()\n;;;###autoload\n(define-minor-mode toold-mode-line\n";
        let text = emacs_autoloads(source);
        let loads: Vec<&str> = text.lines().filter(|line| line.starts_with("(autoload")).collect();
        assert_eq!(loads, ["(autoload 'toold-list \"toold\" nil t)", "(autoload 'toold-mode-line \"toold\" nil t)"]);
    }

    #[test]
    fn every_file_has_a_place_below_the_home() {
        let home = tempfile::tempdir().expect("a directory");
        let dirs = UserDirs::from_env(|name| (name == "HOME").then(|| home.path().into())).expect("a home");
        for target in Target::ALL {
            // Without its files in the source this program was built without the target.
            let Ok(files) = target.plan(&dirs) else { continue };
            assert!(!files.is_empty(), "{target:?}");
            assert!(files.iter().all(|file| file.path.starts_with(home.path()) && !file.new.is_empty()), "{files:?}");
        }
    }
}
