//! `fs.edit`: a text in a file is replaced by another.

use super::content::{hex_sha256, is_binary};
use super::edit::{Edit, EditError, Edited, edit};
use super::error::FsError;
use super::replace::{Before, NewContent, Writers, appeared, changed, check_links, replace};
use super::resolve::{absolute, resolve};
use super::roots::{Access, Limits};
use super::write::{diff, expectation, read_whole};
use crate::config::policy::Fs;
use toold_proto::files::{FsEditParams, FsEditResult};

/// Edits a file. Without `apply` it only checks, and returns what would happen.
pub fn edit_file(
    call: &FsEditParams,
    limits: Option<&Limits>,
    config: &Fs,
    writers: &Writers,
    apply: bool,
) -> Result<FsEditResult, FsError> {
    let expected = call.expect.as_deref().map(expectation).transpose()?;
    let asked = absolute(&call.path, call.cwd.as_deref())?;
    let target = resolve(limits, &asked, Access::Write)?;
    let _turn = writers.turn(&target.path);
    // It may have been replaced by the call whose turn was before.
    let target = resolve(limits, &asked, Access::Write)?;
    let old = read_whole(&target, config)?;
    let sha256 = hex_sha256(&old);
    match expected {
        Some(Before::Sha256(expected)) if expected != sha256 => return Err(changed(&target, Some(sha256))),
        Some(Before::Absent) => return Err(appeared(&target)),
        Some(Before::Sha256(_) | Before::Any) | None => {}
    }
    check_links(&target, call.hard_links)?;
    if is_binary(&old) {
        return Err(FsError::WrongType { path: target.path, found: "a binary file", hint: "; fs.write writes bytes" });
    }
    let request = Edit { old: &call.old, new: &call.new, replace_all: call.replace_all, fuzzy: call.fuzzy };
    let path = target.path.to_string_lossy().into_owned();
    let (strategy, count, new) = match edit(&old, &request) {
        Ok(Edited::Changed { strategy, count, content }) => (strategy, count, content),
        Ok(Edited::Unchanged) => {
            return Ok(FsEditResult {
                path,
                strategy: None,
                count: 0,
                diff: Some(String::new()),
                sha256: sha256.clone(),
                before_sha256: sha256,
                no_change: true,
                not_kept: Vec::new(),
            });
        }
        Err(EditError::Param { param, why }) => return Err(FsError::param(param, why)),
        Err(EditError::NoMatch { nearest, why }) => {
            return Err(FsError::NoMatch { path: target.path, sha256, nearest, why });
        }
        Err(EditError::Ambiguous { strategy, count, places }) => {
            return Err(FsError::Ambiguous { path: target.path, strategy, count, places });
        }
    };
    let content = NewContent { bytes: &new, mode: None, before: Before::Sha256(sha256.clone()), create_dirs: false };
    let not_kept = if new == old || !apply { Vec::new() } else { replace(&target, &content)? };
    Ok(FsEditResult {
        path,
        strategy: Some(strategy),
        count,
        diff: diff(&target, call.cwd.as_deref(), Some(&old), &new),
        sha256: hex_sha256(&new),
        before_sha256: sha256,
        no_change: new == old,
        not_kept,
    })
}
