//! `apply_patch`, `read_file`, `list_dir` and `grep_files`: views of `patch.apply` and `fs.*`.

use crate::tools::native::command::request_id;
use crate::tools::provider::Invocation;
use crate::toolsets::Toolsets;
use crate::toolsets::answer::ToolsetAnswer;
use std::time::Instant;
use toold_proto::RpcError;
use toold_proto::files::{EntryType, FsListParams, FsReadParams, FsSearchParams, SearchMode};
use toold_proto::patch::PatchApplyParams;
use toold_tools::toolset::codex::{failure, grep_files, list_dir, patch, read_file};

/// Entries of one page of `fs.list`.
const MAX_PAGE_ENTRIES: u64 = 10_000;

impl Toolsets {
    /// Applies a patch. The same call again, after a crash, has the same `request_id`: it is applied once.
    pub(super) async fn apply_patch(&self, text: String, invocation: &Invocation) -> Result<ToolsetAnswer, RpcError> {
        let began = Instant::now();
        let scope = invocation.scope.clone();
        let call = PatchApplyParams {
            patch: text,
            cwd: scope.cwd,
            sandbox: scope.sandbox,
            session_key: scope.session_key,
            task_id: scope.task_id,
            request_id: Some(request_id(&invocation.call)),
            ..PatchApplyParams::default()
        };
        let applied = self.native.file_calls.patch_apply(call, || invocation.by.clone()).await?;
        Ok(ToolsetAnswer::new(patch(&applied.files, began.elapsed())))
    }

    pub(super) async fn read_lines(
        &self,
        path: String,
        (offset, limit): (u64, u64),
        invocation: &Invocation,
    ) -> Result<ToolsetAnswer, RpcError> {
        let scope = invocation.scope.clone();
        let call = FsReadParams {
            path,
            cwd: scope.cwd,
            offset: Some(offset),
            limit: Some(limit),
            sandbox: scope.sandbox,
            session_key: scope.session_key,
            task_id: scope.task_id,
            ..FsReadParams::default()
        };
        let found = self.native.file_calls.read(call).await?;
        if found.binary {
            return Ok(ToolsetAnswer::new(failure("read_file", &format!("{} is not a text", found.path))));
        }
        Ok(ToolsetAnswer::new(read_file(&found.content, offset)))
    }

    pub(super) async fn list_dir(
        &self,
        path: String,
        (offset, limit): (u64, u64),
        depth: u64,
        invocation: &Invocation,
    ) -> Result<ToolsetAnswer, RpcError> {
        let scope = invocation.scope.clone();
        let wanted = offset.saturating_sub(1).saturating_add(limit);
        let mut call = FsListParams {
            path: path.clone(),
            cwd: scope.cwd,
            depth: Some(depth),
            hidden: true,
            ignore: Some(false),
            sandbox: scope.sandbox,
            session_key: scope.session_key,
            task_id: scope.task_id,
            ..FsListParams::default()
        };
        let mut entries: Vec<(String, EntryType)> = Vec::new();
        let mut seen = 0;
        let (listed, has_more) = loop {
            call.limit = Some((wanted - seen).clamp(1, MAX_PAGE_ENTRIES));
            let page = self.native.file_calls.list(call.clone()).await?;
            let base = format!("{}/", path.trim_end_matches('/'));
            for entry in page.entries {
                seen += 1;
                if seen >= offset {
                    let relative = entry.path.strip_prefix(&base).unwrap_or(&entry.path);
                    entries.push((relative.to_owned(), entry.kind));
                }
            }
            match page.next {
                Some(next) if seen < wanted => call.after = Some(next),
                next => break (page.path, next.is_some()),
            }
        };
        if entries.is_empty() && offset > 1 {
            return Ok(ToolsetAnswer::new(failure("list_dir", "offset exceeds directory entry count")));
        }
        Ok(ToolsetAnswer::new(list_dir(&listed, &entries, has_more)))
    }

    pub(super) async fn grep_files(
        &self,
        pattern: String,
        (path, glob): (Option<String>, Option<String>),
        limit: u64,
        invocation: &Invocation,
    ) -> Result<ToolsetAnswer, RpcError> {
        let scope = invocation.scope.clone();
        let call = FsSearchParams {
            pattern,
            path: path.unwrap_or_else(|| ".".into()),
            cwd: scope.cwd,
            glob,
            mode: SearchMode::Files,
            limit: Some(limit),
            sandbox: scope.sandbox,
            session_key: scope.session_key,
            task_id: scope.task_id,
            ..FsSearchParams::default()
        };
        let found = self.native.file_calls.newest_matches(call).await?;
        let text = grep_files(&found.paths);
        Ok(ToolsetAnswer::new(match found.reason {
            None => text,
            Some(reason) => format!("{text}\nThe search is not complete: {reason}"),
        }))
    }
}
