//! The files that `service install` writes, and how it recognizes them.

use super::daemon_program;
use crate::cmd::completions::Shell;
use crate::cmd::man;
use crate::error::CliError;
use std::io;
use std::path::{Path, PathBuf};

/// The mark in every file that install writes, so that uninstall removes those and no others.
pub const MARK: &str = "Written by `toolctl service install`; `toolctl service uninstall` removes it.";

const SERVICE: &str = include_str!("../../../../systemd/toold.service");
const SOCKET: &str = include_str!("../../../../systemd/toold.socket");
/// The program that the package's unit starts, and ours does not.
const PACKAGED_EXEC: &str = "ExecStart=/usr/bin/toold\n";

/// A file to write.
#[derive(Debug, PartialEq, Eq)]
pub struct Planned {
    pub path: PathBuf,
    pub text: String,
}

/// The outcome for one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Written,
    Unchanged,
    /// Another program made it, so it stays.
    Foreign,
}

/// The user's directories.
#[derive(Debug, Clone)]
pub struct Dirs {
    pub config: PathBuf,
    pub data: PathBuf,
}

impl Dirs {
    pub fn find() -> Result<Dirs, CliError> {
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = set("HOME");
        let at = |name: &str, below: &str| set(name).or_else(|| Some(home.as_ref()?.join(below)));
        match (at("XDG_CONFIG_HOME", ".config"), at("XDG_DATA_HOME", ".local/share")) {
            (Some(config), Some(data)) => Ok(Dirs { config, data }),
            _ => Err(CliError::Unavailable("there is no home directory to install into; set HOME".into())),
        }
    }

    pub fn units(&self) -> PathBuf {
        self.config.join("systemd/user")
    }

    fn man(&self) -> PathBuf {
        self.data.join("man/man1")
    }

    pub fn completions(&self, shell: Shell) -> PathBuf {
        self.data.join(match shell {
            Shell::Bash => "bash-completion/completions/toolctl",
            Shell::Zsh => "zsh/site-functions/_toolctl",
            Shell::Fish => "fish/vendor_completions.d/toolctl.fish",
        })
    }
}

/// Returns the two units.
pub fn units(dirs: &Dirs) -> Result<Vec<Planned>, CliError> {
    let start = format!("ExecStart={}\n", quoted(&daemon_program()?)?);
    let service = SERVICE.replace(PACKAGED_EXEC, &start);
    let planned = |name: &str, text: &str| Planned { path: dirs.units().join(name), text: format!("# {MARK}\n{text}") };
    Ok(vec![planned(super::SERVICE, &service), planned(super::SOCKET, SOCKET)])
}

/// Returns completions and manual pages.
pub fn extras(dirs: &Dirs) -> Result<Vec<Planned>, CliError> {
    let scripts = Shell::ALL.map(|shell| Planned { path: dirs.completions(shell), text: marked(shell.script()) });
    let pages = man::pages()?.into_iter();
    let pages =
        pages.map(|page| Planned { path: dirs.man().join(page.file), text: format!(".\\\" {MARK}\n{}", page.text) });
    Ok(scripts.into_iter().chain(pages).collect())
}

/// Returns every file of ours that exists, also those of an older version that made others.
pub fn present(dirs: &Dirs) -> Vec<PathBuf> {
    let units = [super::SERVICE, super::SOCKET].map(|name| dirs.units().join(name));
    let scripts = Shell::ALL.map(|shell| dirs.completions(shell));
    let pages = std::fs::read_dir(dirs.man()).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"tool"));
    units.into_iter().chain(scripts).chain(pages.filter(named)).filter(|path| ours(path)).collect()
}

/// Returns a script with the mark on its second line: zsh needs its own line first.
fn marked(script: &str) -> String {
    let (first, rest) = script.split_once('\n').unwrap_or((script, ""));
    format!("{first}\n# {MARK}\n{rest}")
}

/// Quotes a path for ExecStart.
fn quoted(path: &Path) -> Result<String, CliError> {
    let text = path.to_str().filter(|text| !text.chars().any(char::is_control)).ok_or_else(|| {
        CliError::Unavailable(format!("{} cannot stand in a unit; put toold into another directory", path.display()))
    })?;
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    let plain = escaped.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+".contains(&b));
    Ok(if plain { escaped } else { format!("\"{escaped}\"") })
}

/// Reports whether it is one of the many manual pages.
pub fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|section| section == "1")
}

/// Reports whether we made the existing file.
pub fn ours(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text.contains(MARK))
}

impl Planned {
    /// Reports whether a file that is not ours is in its place.
    pub fn blocked(&self) -> bool {
        self.path.symlink_metadata().is_ok() && !ours(&self.path)
    }

    /// Writes the file if it is missing or different. Never over a file that is not ours.
    pub fn write(&self) -> Result<Outcome, CliError> {
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            return Ok(Outcome::Unchanged);
        }
        if self.blocked() {
            return Ok(Outcome::Foreign);
        }
        self.put().map_err(|source| {
            CliError::Unavailable(format!("write {}: {source}; what was written before it stays", self.path.display()))
        })?;
        Ok(Outcome::Written)
    }

    /// Writes a new file and moves it into place: a reader sees the old or the new one.
    fn put(&self) -> io::Result<()> {
        if let Some(dir) = self.path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        std::fs::write(&new, &self.text)?;
        std::fs::rename(&new, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_so_that_systemd_reads_the_same() {
        let read = |path: &str| quoted(Path::new(path)).expect("it can stand there");
        assert_eq!(read("/home/me/.cargo/bin/toold"), "/home/me/.cargo/bin/toold");
        assert_eq!(read("/my tools/100%/a\"b\\c"), r#""/my tools/100%%/a\"b\\c""#);
        assert!(quoted(Path::new("/a\nExecStart=/bin/evil")).is_err());
    }

    #[test]
    fn the_unit_has_the_line_that_is_replaced() {
        assert_eq!(SERVICE.matches(PACKAGED_EXEC).count(), 1);
    }

    #[test]
    fn a_file_is_written_once_and_a_file_of_others_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let planned = Planned { path: dir.path().join("a/b"), text: format!("# {MARK}\nx\n") };
        let outcomes = [planned.write(), planned.write()].map(|outcome| outcome.expect("it can be written"));
        assert_eq!(outcomes, [Outcome::Written, Outcome::Unchanged]);
        std::fs::write(&planned.path, "my own\n").expect("it can be written");
        assert_eq!((planned.blocked(), planned.write().expect("it is looked at")), (true, Outcome::Foreign));
        assert_eq!(std::fs::read_to_string(&planned.path).expect("it is there"), "my own\n");
    }

    #[test]
    fn scripts_keep_their_first_line() {
        assert!(marked(Shell::Zsh.script()).starts_with("#compdef toolctl\n# Written by"));
    }
}
