//! A path in a patch, with the line that names it.

use super::ApplyError;
use std::path::{Path, PathBuf};
use toold_proto::patch::PatchFailure;

/// The longest path, with its end: that of the kernel.
const MAX_PATH_LEN: usize = libc::PATH_MAX as usize;

/// A path in the patch.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    /// 0: the call names it, not the patch.
    pub line: usize,
    pub path: &'a str,
}

impl Named<'_> {
    /// Returns its absolute form. Refuses a path that no file can have, before directories are made for it one by one.
    pub fn absolute(self, cwd: Option<&Path>) -> Result<PathBuf, ApplyError> {
        let asked = match cwd {
            Some(cwd) => cwd.join(self.path),
            None if self.path.starts_with('/') => self.path.into(),
            None => return Err(self.invalid("it is relative; give cwd, or an absolute path")),
        };
        if asked.as_os_str().len() >= MAX_PATH_LEN {
            return Err(self.invalid("the path is too long for the file system"));
        }
        if self.path.ends_with('/') || self.path.ends_with("/.") {
            return Err(self.invalid("it names a directory"));
        }
        Ok(asked)
    }

    pub fn invalid(self, why: &str) -> ApplyError {
        ApplyError::Invalid(PatchFailure {
            message: format!("{}: {why}", self.path),
            line: (self.line > 0).then_some(self.line),
            path: Some(self.path.into()),
            nearest: Vec::new(),
        })
    }
}
