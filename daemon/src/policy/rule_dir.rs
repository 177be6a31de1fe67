//! The directory of rule files: which files are read, in which order, and which are refused unread.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use toold_policy::{APPROVED_FILE, BadFile, Rule, RuleError, RuleFile, Rules};

/// The longest rule file.
const MAX_FILE_LEN: u64 = 1 << 20;
/// The most rule files.
const MAX_FILES: usize = 1000;

/// The files as they were found: those that hold, and the errors of the others.
pub struct LoadedRules {
    pub rules: Rules,
    pub errors: Vec<RuleError>,
}

/// Reads all rule files of the directory, in the order of their names. A directory that does not exist has none.
pub fn load(dir: &Path) -> LoadedRules {
    let mut loaded = LoadedRules { rules: Rules::default(), errors: Vec::new() };
    let names = match names(dir) {
        Ok(names) => names,
        Err(error) => {
            loaded.rules.bad.push(BadFile::new(&error, None));
            loaded.errors.push(error);
            return loaded;
        }
    };
    for name in names {
        let text = match read(dir, &name) {
            Ok(text) => text,
            Err(error) => {
                loaded.rules.bad.push(BadFile::new(&error, None));
                loaded.errors.push(error);
                continue;
            }
        };
        match RuleFile::parse(&name, &text) {
            Ok(file) => loaded.rules.files.push(file),
            Err(error) => {
                loaded.rules.bad.push(BadFile::new(&error, Some(&text)));
                loaded.errors.push(error);
            }
        }
    }
    loaded
}

fn refused(file: &str, why: impl Into<String>) -> RuleError {
    RuleError { file: file.into(), index: None, example: None, why: why.into() }
}

/// The names that end in `.toml`, sorted.
fn names(dir: &Path) -> Result<Vec<String>, RuleError> {
    let failed = |e: io::Error| refused(&dir.display().to_string(), e.to_string());
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        if let Some(name) = name.to_str().filter(|name| name.ends_with(".toml") && !name.starts_with('.')) {
            names.push(name.to_string());
        }
        if names.len() > MAX_FILES {
            return Err(refused(&dir.display().to_string(), format!("has more than {MAX_FILES} rule files")));
        }
    }
    names.sort();
    Ok(names)
}

/// Reads a file that only its owner can write, and that is not a link.
fn read(dir: &Path, name: &str) -> Result<String, RuleError> {
    let path = dir.join(name);
    let failed = |e: io::Error| refused(name, e.to_string());
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(rustix::io::Errno::LOOP) => return Err(refused(name, "is a symbolic link; put the file itself here")),
        Err(e) => return Err(failed(e.into())),
    };
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(refused(name, "is not a regular file"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(refused(name, "can be written by others; run chmod go-w on it"));
    }
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own && found.uid() != 0 {
        return Err(refused(name, format!("belongs to user {}; it must be yours or root's", found.uid())));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_LEN + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_LEN {
        return Err(refused(name, format!("is longer than {MAX_FILE_LEN} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| refused(name, "is not UTF-8"))
}

/// Appends rules to `approved.toml`, as far as it does not have them. The file is durable when this returns.
pub fn append_approved(dir: &Path, rules: &[Rule]) -> Result<(), RuleError> {
    let path = dir.join(APPROVED_FILE);
    let failed = |e: io::Error| refused(APPROVED_FILE, e.to_string());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let mut text = match path.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        _ => read(dir, APPROVED_FILE)?,
    };
    let known = RuleFile::parse(APPROVED_FILE, &text)?;
    for rule in rules.iter().filter(|rule| !known.rules.contains(rule)) {
        if !text.is_empty() && !text.ends_with("\n\n") {
            text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
        }
        text.push_str(&rule.to_toml());
    }
    RuleFile::parse(APPROVED_FILE, &text)?;
    replace(&path, text.as_bytes()).map_err(failed)
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("tmp");
    let _ = std::fs::remove_file(&fresh);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let replaced = written.and_then(|()| std::fs::rename(&fresh, path));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    replaced?;
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_read_by_name_and_unsafe_ones_are_refused() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let write = |name: &str, text: &str, mode| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).expect("writable");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("own file");
        };
        let rule = "[[rule]]\nprefix = ['ls']\nverdict = 'allow'\n";
        write("20.toml", rule, 0o644);
        write("10.toml", rule, 0o600);
        write("readme.md", "x", 0o666);
        write("30.toml", rule, 0o664);
        write("50.toml", "[[rule]]\nprefix = ['bash']\nverdict = 'allow'\n", 0o644);
        std::os::unix::fs::symlink("10.toml", dir.path().join("40.toml")).expect("a link");
        let loaded = load(dir.path());
        assert_eq!(
            loaded.rules.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(),
            ["10.toml", "20.toml"]
        );
        let errors: Vec<String> = loaded.errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 3, "{errors:?}");
        for (error, part) in errors.iter().zip(["30.toml: can be written", "40.toml: is a symbolic", "50.toml: rule 0"])
        {
            assert!(error.starts_with(part), "{error}");
        }
        let missing = load(&dir.path().join("none"));
        assert!(missing.rules.is_empty() && missing.errors.is_empty());
    }

    #[test]
    fn approved_rules_are_appended_once() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let rules = dir.path().join("rules");
        let of = |text: &str| {
            let commands = [text.split(' ').map(String::from).collect()];
            toold_policy::proposed_rules(&commands, None).expect("a rule")
        };
        for text in ["git push", "make install", "git push"] {
            append_approved(&rules, &of(text)).expect("written");
        }
        let loaded = load(&rules);
        assert_eq!(loaded.errors, []);
        assert_eq!(loaded.rules.files[0].rules, [of("git push"), of("make install")].concat());
    }
}
