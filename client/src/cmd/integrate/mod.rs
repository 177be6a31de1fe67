//! `integrate`: connects a coding agent or an editor to toold, by its own files and by additions to the user's config.

mod embedded;
mod json_edit;
mod merge;
mod targets;
mod toml_reader;

pub use targets::{FileKind, PlannedFile, Refusal, Target, UserDirs};

use super::Context;
use crate::error::{CliError, DONE, FAILED};
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The permissions of a new file.
const NEW_FILE_MODE: u32 = 0o644;
/// The number of earlier versions of one file that are kept apart.
const MAX_BACKUPS: u32 = 1000;

const NOTES: &str = "Adds what is missing and keeps what is there: a second run changes nothing. A file of ours that was changed is \
first copied to NAME.bak-1, NAME.bak-2 and so on. A config that cannot be read safely, for example JSON with comments, stays as it is, \
and what belongs there is printed. A program that reaches the daemon runs commands outside of an agent's sandbox and without its \
questions: about the tools of `toolctl mcp` the agent can ask; `toolctl mcp --read-only` only looks.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The agent or editor
    #[arg(value_enum, hide_possible_values = false)]
    target: Target,
    /// Only show the files and what belongs there
    #[arg(long)]
    print: bool,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let dirs = UserDirs::from_env(|name| std::env::var_os(name))
        .ok_or_else(|| CliError::Unavailable("$HOME is not set, so there is no place for the files".into()))?;
    let planned = match args.target.plan(&dirs) {
        Ok(planned) => planned,
        Err(refusal) => return report_refusal(args.target, &refusal, cx),
    };
    if args.print {
        return print_plan(args.target, &planned, cx);
    }
    let mut done = Vec::new();
    for file in &planned {
        done.push((file, apply(file)?));
    }
    report(args.target, &done, cx)
}

/// The effect on one file.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    Unchanged,
    Written,
    /// The earlier file was copied to this.
    Replaced(PathBuf),
}

/// Writes one file, unless it is as it should be.
fn apply(file: &PlannedFile) -> Result<Effect, CliError> {
    match &file.old {
        Some(old) if *old == file.new => Ok(Effect::Unchanged),
        Some(_) if file.kind == FileKind::Own => {
            let backup = back_up(&file.path)?;
            write(&file.path, &file.new)?;
            Ok(Effect::Replaced(backup))
        }
        Some(_) | None => {
            write(&file.path, &file.new)?;
            Ok(Effect::Written)
        }
    }
}

/// Copies a file to the first free name beside it.
fn back_up(path: &Path) -> Result<PathBuf, CliError> {
    let text = std::fs::read(path).map_err(CliError::io("read the earlier file"))?;
    for number in 1..=MAX_BACKUPS {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".bak-{number}"));
        match std::fs::OpenOptions::new().write(true).create_new(true).open(&name) {
            Ok(mut file) => {
                file.write_all(&text).and_then(|()| file.sync_all()).map_err(CliError::io("keep the earlier file"))?;
                return Ok(name.into());
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(CliError::io("keep the earlier file")(e)),
        }
    }
    Err(CliError::Unavailable(format!("{} has too many earlier versions beside it; remove some", path.display())))
}

/// Replaces a file at once, with the permissions that it had. A link stays a link.
fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let dir = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(dir).map_err(CliError::io("make the directory"))?;
    let mode = std::fs::metadata(&path).map_or(NEW_FILE_MODE, |meta| meta.permissions().mode() & 0o777);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = dir.join(name);
    let create = || std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&new);
    let written = create().and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    let renamed = written.and_then(|()| std::fs::rename(&new, &path));
    if renamed.is_err() {
        // Nothing is left of a failed attempt; the error that counts is returned.
        let _ = std::fs::remove_file(&new);
    }
    renamed.map_err(CliError::io("write the file"))
}

fn describe(file: &PlannedFile, effect: &Effect) -> String {
    let path = file.path.display();
    match (effect, &file.kind) {
        (Effect::Unchanged, _) => format!("unchanged  {path}"),
        (Effect::Replaced(backup), _) => format!("replaced   {path}, the earlier one is {}", backup.display()),
        (Effect::Written, FileKind::Own) => format!("wrote      {path}"),
        (Effect::Written, FileKind::Shared { added, .. }) => format!("extended   {path}: {}", added.join(", ")),
    }
}

fn report(target: Target, done: &[(&PlannedFile, Effect)], cx: &mut Context<'_>) -> Result<u8, CliError> {
    if cx.json {
        let files: Vec<Value> = done.iter().map(|(file, effect)| document(file, effect)).collect();
        cx.print_json(&json!({"target": target.name(), "files": files, "next": target.next_steps()}))?;
        return Ok(DONE);
    }
    let mut text: String = done.iter().map(|(file, effect)| describe(file, effect) + "\n").collect();
    if done.iter().any(|(_, effect)| *effect != Effect::Unchanged) {
        text.extend(target.next_steps().iter().map(|step| format!("next: {step}\n")));
    }
    cx.console.print(&text)?;
    Ok(DONE)
}

fn document(file: &PlannedFile, effect: &Effect) -> Value {
    let (effect, backup) = match effect {
        Effect::Unchanged => ("unchanged", None),
        Effect::Written => ("written", None),
        Effect::Replaced(backup) => ("replaced", Some(backup)),
    };
    json!({"path": file.path, "effect": effect, "backup": backup})
}

/// Shows each file with its text; of the user's config only what would be added.
fn print_plan(target: Target, planned: &[PlannedFile], cx: &mut Context<'_>) -> Result<u8, CliError> {
    if cx.json {
        let files: Vec<Value> = planned.iter().map(|file| json!({"path": file.path, "text": file.new})).collect();
        cx.print_json(&json!({"target": target.name(), "files": files, "next": target.next_steps()}))?;
        return Ok(DONE);
    }
    let mut text = String::new();
    for file in planned {
        text.push_str(&format!("==> {}\n{}\n", file.path.display(), file.new.trim_end()));
    }
    cx.console.print(&text)?;
    Ok(DONE)
}

fn report_refusal(target: Target, refusal: &Refusal, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let path = refusal.path.display();
    if cx.json {
        let document =
            json!({"target": target.name(), "path": refusal.path, "error": refusal.why, "paste": refusal.snippet});
        cx.print_json(&document)?;
        return Ok(FAILED);
    }
    cx.console.message(&format!("{path} stays as it is: {}", refusal.why));
    if !refusal.snippet.is_empty() {
        cx.console.message("put this there by hand:");
        cx.console.print(refusal.snippet)?;
    }
    Ok(FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(path: PathBuf, new: &str, kind: FileKind) -> PlannedFile {
        PlannedFile { old: std::fs::read_to_string(&path).ok(), path, new: new.into(), kind }
    }

    #[test]
    fn a_changed_file_of_ours_is_kept_beside_the_new_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("new/toold.js");
        assert_eq!(apply(&planned(path.clone(), "1", FileKind::Own)).expect("it is written"), Effect::Written);
        assert_eq!(apply(&planned(path.clone(), "1", FileKind::Own)).expect("it is there"), Effect::Unchanged);
        for (number, text) in [(1, "2"), (2, "3")] {
            let backup = dir.path().join(format!("new/toold.js.bak-{number}"));
            let effect = apply(&planned(path.clone(), text, FileKind::Own)).expect("it is written");
            assert_eq!(effect, Effect::Replaced(backup.clone()));
            assert_eq!(std::fs::read_to_string(backup).expect("kept"), number.to_string());
        }
        assert_eq!(std::fs::read_dir(dir.path().join("new")).expect("a directory").count(), 3, "nothing else is left");
    }

    #[test]
    fn a_config_keeps_its_permissions_and_its_link() {
        let dir = tempfile::tempdir().expect("a directory");
        let (real, link) = (dir.path().join("dotfiles"), dir.path().join("config"));
        std::fs::write(&real, "old").expect("written");
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).expect("ours");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        let kind = FileKind::Shared { kept: Vec::new(), added: vec!["x".into()] };
        assert_eq!(apply(&planned(link.clone(), "new", kind)).expect("it is written"), Effect::Written);
        assert!(link.symlink_metadata().expect("there").is_symlink());
        assert_eq!(std::fs::read_to_string(&real).expect("there"), "new");
        assert_eq!(std::fs::metadata(&real).expect("there").permissions().mode() & 0o777, 0o600);
    }
}
