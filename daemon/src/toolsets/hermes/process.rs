//! `process`: an action on a process, as the methods of the same names do it.

use crate::call_error::{find_error, stdin_error};
use crate::clock::wall_ms;
use crate::log::LineQuery;
use crate::proc::Proc;
use crate::proc::handle::Kill;
use crate::proc::kill::GRACE_MS;
use crate::proc::output::{self, read_lines, read_tail};
use crate::proc::readers::Reader;
use crate::proc::state::State;
use crate::proc::stdin::{self, WRITE_TIMEOUT_MS};
use crate::registry::Selector;
use crate::text::{TailBound, TextForm};
use crate::tools::native::command::{BACKGROUND_LABEL, is_of_call};
use crate::tools::provider::Invocation;
use crate::toolsets::Toolsets;
use crate::toolsets::answer::ToolsetAnswer;
use crate::toolsets::codex::sessions::number_of;
use std::sync::Arc;
use std::time::{Duration, Instant};
use toold_format::slots::Cause;
use toold_proto::RpcError;
use toold_proto::process::Process;
use toold_proto::results::KillStatus;
use toold_tools::toolset::hermes::{self, LogLines, ProcessCall, WaitEnd};

/// Processes of one `list`, the newest.
const MAX_LISTED: usize = 200;
/// Lines of one `log`, as of the method.
const MAX_LOG_LINES: u64 = 100_000;
/// The end of the output that is read for `poll` and `wait`, in characters. The renderers show as much or less.
const TAIL_CHARS: usize = 2000;

impl Toolsets {
    pub(in super::super) async fn process(
        &self,
        call: ProcessCall,
        invocation: &Invocation,
    ) -> Result<ToolsetAnswer, RpcError> {
        let result = match call {
            ProcessCall::List => self.list_processes(invocation),
            ProcessCall::Poll { id } => {
                let (process, output) = shown(&self.find(&id)?)?;
                hermes::poll(&process, &output)
            }
            ProcessCall::Log { id, lines, limit } => self.log(&self.find(&id)?, lines, limit)?,
            ProcessCall::Wait { id, timeout_seconds } => self.wait(&self.find(&id)?, timeout_seconds).await?,
            ProcessCall::Kill { id } => self.kill(&self.find(&id)?, invocation).await,
            ProcessCall::Write { id, data } => self.write(&self.find(&id)?, data, invocation).await?,
            ProcessCall::Submit { id, data } => self.write(&self.find(&id)?, format!("{data}\n"), invocation).await?,
            ProcessCall::Close { id } => {
                let proc = self.find(&id)?;
                stdin::close(&proc).await.map_err(|e| stdin_error(&proc, e))?;
                hermes::close(proc.spec.pty.is_some())
            }
        };
        Ok(ToolsetAnswer::new(result))
    }

    fn find(&self, id: &str) -> Result<Reader, RpcError> {
        let found = self.native.approvals.registry.find(id);
        found.map(|proc| proc.add_reader()).map_err(|e| find_error("session_id", e))
    }

    /// Lists the processes of the session, except those that a call waits for, or has waited for.
    fn list_processes(&self, invocation: &Invocation) -> serde_json::Value {
        let selector = Selector { session_key: invocation.scope.session_key.clone(), ..Selector::default() };
        let procs = self.native.approvals.registry.newest_first().into_iter();
        let selected = procs.filter(|proc| selector.matches(proc) && !is_in_foreground(proc)).take(MAX_LISTED);
        let one = |proc: Arc<Proc>| {
            let state = proc.state();
            (proc.listed_view(&state, wall_ms()), output::preview(&proc, &state).to_string())
        };
        hermes::list(&selected.map(one).collect::<Vec<_>>())
    }

    fn log(&self, proc: &Reader, lines: LogLines, limit: u64) -> Result<serde_json::Value, RpcError> {
        let offset = match lines {
            LogLines::Last => None,
            LogLines::From(line) => Some(line),
        };
        let query = LineQuery { offset, limit: limit.min(MAX_LOG_LINES), ..LineQuery::default() };
        let (page, text) = read_lines(proc, &query, TextForm::COLLAPSED)?;
        Ok(hermes::log(&view(proc), &text, page.total_lines))
    }

    async fn wait(&self, proc: &Reader, timeout_seconds: Option<u64>) -> Result<serde_json::Value, RpcError> {
        let max = Duration::from_millis(self.native.approvals.registry.config.max_wait_ms);
        let asked = timeout_seconds.map(Duration::from_secs);
        let clamped = asked.filter(|asked| *asked > max).map(|asked| (asked.as_secs(), max.as_secs()));
        let began = Instant::now();
        let timeout = asked.unwrap_or(max).min(max);
        let mut state = proc.subscribe();
        let has_ended = tokio::time::timeout(timeout, state.wait_for(State::has_ended)).await.is_ok();
        let end = if has_ended { WaitEnd::Exited } else { WaitEnd::Timeout { waited: began.elapsed() } };
        let (process, output) = shown(proc)?;
        Ok(hermes::wait(&process, &output, end, clamped))
    }

    async fn kill(&self, proc: &Reader, invocation: &Invocation) -> serde_json::Value {
        let (uid, pid) = (invocation.by.uid, invocation.by.pid);
        let kill = Kill { signal: libc::SIGTERM, grace_ms: GRACE_MS, cause: Cause::Client, uid, pid };
        let killed = self.native.approvals.kill(vec![(**proc).clone()], kill).await;
        let survivors: Vec<i32> = killed.iter().flat_map(|one| one.survivors.iter().map(|member| member.pid)).collect();
        let status = killed.iter().map(|one| one.status).max().unwrap_or(KillStatus::AlreadyExited);
        hermes::kill(&view(proc), status, &survivors)
    }

    async fn write(&self, proc: &Reader, data: String, invocation: &Invocation) -> Result<serde_json::Value, RpcError> {
        // The id of the call makes a write that is repeated after a crash harmless.
        let written = stdin::write(proc, Some(&invocation.call), data.into_bytes(), WRITE_TIMEOUT_MS).await;
        Ok(hermes::write(written.map_err(|e| stdin_error(proc, e))?.bytes))
    }
}

/// Returns true for the process of a call that answers when it has ended.
fn is_in_foreground(proc: &Proc) -> bool {
    is_of_call(proc) && !proc.spec.labels.contains_key(BACKGROUND_LABEL) && number_of(proc).is_none()
}

fn view(proc: &Reader) -> Process {
    proc.view_of(&proc.state(), wall_ms())
}

/// Returns a process with the end of its output.
fn shown(proc: &Reader) -> Result<(Process, String), RpcError> {
    let state = proc.state();
    let bound = TailBound { chars: TAIL_CHARS, ..TailBound::NONE };
    let (text, _) = read_tail(proc, &state, bound, TextForm::COLLAPSED)?;
    Ok((proc.view_of(&state, wall_ms()), text))
}
