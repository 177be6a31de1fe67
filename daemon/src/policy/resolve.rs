//! Finds the program that a job would execute for a name.

use crate::spec::DEFAULT_PATH;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use toold_policy::Program;

/// The PATH and the working directory of a job.
pub struct JobPath<'a> {
    pub path: Option<&'a [u8]>,
    pub cwd: &'a Path,
}

impl JobPath<'_> {
    /// Returns the program for a name, or for a path.
    pub fn resolve(&self, name: &str) -> Option<Program> {
        if name.contains('/') {
            return program(self.cwd.join(name), false);
        }
        let mut replaceable = false;
        for dir in self.path.unwrap_or(DEFAULT_PATH.as_bytes()).split(|byte| *byte == b':') {
            let dir = Path::new(OsStr::from_bytes(dir));
            // Relative to the directory that the shell is in when it looks.
            replaceable |= !dir.is_absolute();
            if let Some(found) = program(self.cwd.join(dir).join(name), replaceable) {
                return Some(found);
            }
        }
        None
    }
}

fn program(found: PathBuf, replaceable: bool) -> Option<Program> {
    let metadata = std::fs::metadata(&found).ok()?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return None;
    }
    let real = found.canonicalize().ok()?;
    // The directory without links: a root is compared with it.
    let dir = found.parent()?.canonicalize().ok()?;
    let found = dir.join(found.file_name()?);
    Some(Program { found, real, replaceable })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_as_the_shell_does() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = dir.path().canonicalize().expect("it exists");
        let bin = root.join("bin");
        std::fs::create_dir(&bin).expect("a directory");
        std::fs::write(bin.join("tool"), "").expect("writable");
        let at = |path: &'static str| JobPath { path: Some(path.as_bytes()), cwd: &root };
        assert_eq!(at("/none:bin").resolve("tool"), None, "it is not executable");
        std::fs::set_permissions(bin.join("tool"), std::fs::Permissions::from_mode(0o755)).expect("own file");
        let own = Program { found: bin.join("tool"), real: bin.join("tool"), replaceable: true };
        assert_eq!(at("/none:bin").resolve("tool"), Some(own.clone()));
        assert_eq!(at("").resolve("./bin/tool"), Some(Program { replaceable: false, ..own }));
        std::os::unix::fs::symlink("/bin/sh", bin.join("link")).expect("a link");
        let linked = at("bin").resolve("link").expect("found");
        assert_eq!(linked.found, bin.join("link"));
        assert_ne!(linked.real, linked.found);
    }
}
