//! Files by their names, all of them counted: the pages of `fs.list` as one answer.

use super::{FileCalls, blocking};
use crate::files::list::{MAX_DEPTH, MAX_ENTRIES, MAX_UNREADABLE};
use crate::files::search::{DEFAULT_RESULTS, DEFAULT_TIMEOUT_MS, MAX_RESULTS};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toold_proto::RpcError;
use toold_proto::files::{EntryType, FsListParams, FsSearchParams, FsSearchResult, SearchMatch};

impl FileCalls {
    /// Returns the regular files that `fs.list` lists, in its order, without the first `offset` ones; `limit` counts files, and
    /// the depth is the largest if the call has none. `total` counts all of them.
    pub async fn find_files(self: &Arc<Self>, call: FsListParams, offset: u64) -> Result<FsSearchResult, RpcError> {
        let limit = call.limit.unwrap_or(DEFAULT_RESULTS);
        if !(1..=MAX_RESULTS).contains(&limit) {
            return Err(RpcError::param("limit", format!("must be 1 to {MAX_RESULTS}, not {limit}")));
        }
        let deadline = Instant::now() + Duration::from_millis(DEFAULT_TIMEOUT_MS);
        let depth = call.depth.unwrap_or(MAX_DEPTH);
        let mut page_call = FsListParams { limit: Some(MAX_ENTRIES), depth: Some(depth), ..call };
        let (mut total, mut matches, mut unreadable) = (0, Vec::new(), Vec::new());
        let is_cut = loop {
            let page = self.list(page_call.clone()).await?;
            for file in page.entries.into_iter().filter(|entry| entry.kind == EntryType::File) {
                if total >= offset && (matches.len() as u64) < limit {
                    matches.push(SearchMatch::of_file(file.path, None));
                }
                total += 1;
            }
            unreadable.extend(page.unreadable);
            unreadable.truncate(MAX_UNREADABLE);
            match page.next {
                None => break false,
                Some(_) if Instant::now() >= deadline => break true,
                Some(next) => page_call.after = Some(next),
            }
        };
        let reason = match (is_cut, unreadable.is_empty()) {
            (true, _) => Some(format!("timed out after {DEFAULT_TIMEOUT_MS} ms; give a deeper path")),
            (false, false) => Some("some directories could not be read".to_owned()),
            (false, true) => None,
        };
        let complete = reason.is_none();
        Ok(FsSearchResult { matches, total, files: total, complete, reason, next: None, unreadable })
    }
}

/// Files with a match.
#[derive(Debug)]
pub struct NewestMatches {
    /// Absolute, the newest first.
    pub paths: Vec<String>,
    /// The reason why there may be more. None: these are all, up to the limit.
    pub reason: Option<String>,
}

impl FileCalls {
    /// Returns the files that `fs.search` finds with mode `files`, those that were changed last first. Up to `MAX_RESULTS` are
    /// compared, and `limit` of them are returned.
    pub async fn newest_matches(self: &Arc<Self>, mut call: FsSearchParams) -> Result<NewestMatches, RpcError> {
        let limit = call.limit.unwrap_or(DEFAULT_RESULTS) as usize;
        // The directory of the session, if the call has none: paths of the result are meant from there.
        self.plan(call.sandbox.as_ref(), &mut call.cwd, call.session_key.as_deref())?;
        let cwd = call.cwd.clone();
        let found = self.search(FsSearchParams { limit: Some(MAX_RESULTS), ..call }).await?;
        let sorted = blocking(move || {
            let modified = |path: &PathBuf| std::fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
            let absolute = |found: SearchMatch| Path::new(cwd.as_deref().unwrap_or("/")).join(found.path);
            let paths = found.matches.into_iter().map(absolute);
            let mut dated: Vec<_> = paths.map(|path| (modified(&path), path)).collect();
            dated.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            Ok(dated.into_iter().take(limit).map(|(_, path)| path.to_string_lossy().into_owned()).collect())
        });
        Ok(NewestMatches { paths: sorted.await?, reason: found.reason.filter(|_| !found.complete) })
    }
}
