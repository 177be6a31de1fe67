//! The tools of codex.

mod exec;
mod files;
pub(super) mod position;
pub(super) mod sessions;
mod shell;

use super::Toolsets;
use super::answer::ToolsetAnswer;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::proc::view::Outcome;
use crate::tools::provider::Invocation;
use std::time::Duration;
use toold_proto::RpcError;
use toold_tools::toolset::codex::{CodexCall, End};

impl Toolsets {
    pub(super) async fn codex(&self, call: CodexCall, invocation: &Invocation) -> Result<ToolsetAnswer, RpcError> {
        match call {
            CodexCall::ExecCommand(call) => self.exec_command(call, invocation).await,
            CodexCall::WriteStdin(call) => self.write_stdin(call, invocation).await,
            CodexCall::Shell(call) => self.shell(call, invocation).await,
            CodexCall::ApplyPatch { patch } => self.apply_patch(patch, invocation).await,
            CodexCall::ReadFile { path, offset, limit } => self.read_lines(path, (offset, limit), invocation).await,
            CodexCall::ListDir { path, offset, limit, depth } => {
                self.list_dir(path, (offset, limit), depth, invocation).await
            }
            CodexCall::GrepFiles { pattern, glob, path, limit } => {
                self.grep_files(pattern, (path, glob), limit, invocation).await
            }
        }
    }
}

/// Waits for the exit, and not for the close: a descendant may hold a pipe open.
async fn wait_ended(proc: &Proc, ms: u64) {
    let _ = tokio::time::timeout(Duration::from_millis(ms), proc.subscribe().wait_for(State::has_ended)).await;
}

fn end(outcome: &Outcome) -> End<'_> {
    End { exit_code: outcome.exit_code, signal: outcome.signal.as_deref() }
}
