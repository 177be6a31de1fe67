//! `exec_command` and `write_stdin`: a command that goes on as a session.

use super::sessions::{self, SESSION_LABEL};
use super::{end, wait_ended};
use crate::proc::Proc;
use crate::proc::control::Control;
use crate::proc::readers::Reader;
use crate::proc::stdin::{self, StdinError, WRITE_TIMEOUT_MS, Written};
use crate::proc::unread::{Unread, read_unread};
use crate::proc::view;
use crate::tools::native::command::{CALL_LABEL, request_id};
use crate::tools::provider::Invocation;
use crate::toolsets::Toolsets;
use crate::toolsets::answer::{ReadTo, ToolsetAnswer};
use std::sync::Arc;
use std::time::Instant;
use toold_format::fnv1a;
use toold_proto::params::ExecParams;
use toold_proto::pty::Pty;
use toold_proto::{ErrorKind, RpcError};
use toold_tools::toolset::codex::{
    Exec, ExecCommand, ExecState, MAX_UNREAD_BYTES, Output, WriteStdin, Yield, chunk_id, exec, failure, unknown_session,
};

const WRITE_STDIN: &str = "write_stdin";
/// The text of codex, by which its models know what to do.
const NO_STDIN: &str = "stdin is closed for this session; rerun exec_command with tty=true to keep stdin open";

/// The form of the text that a call returns.
struct ShownOutput {
    began: Instant,
    from: u64,
    max_output_tokens: usize,
    note: Option<String>,
}

impl Toolsets {
    pub(super) async fn exec_command(
        &self,
        call: ExecCommand,
        invocation: &Invocation,
    ) -> Result<ToolsetAnswer, RpcError> {
        let began = Instant::now();
        let registry = &self.native.approvals.registry;
        let scope = &invocation.scope;
        let request = request_id(&invocation.call);
        // A call that is made again after a crash finds its process, with its number.
        let started = registry.started_by_request(&request).and_then(|proc| sessions::number_of(&proc));
        let reserved = started.is_none().then(|| self.sessions.reserve(registry, scope.session_key.as_deref()));
        let number = started.or(reserved.as_ref().map(|reserved| reserved.number)).unwrap_or_default();
        let mut start = ExecParams {
            command: Some(call.cmd),
            cwd: self.native.working_dir(invocation, call.workdir.as_deref()),
            shell: call.shell,
            login: Some(call.login),
            // Without a terminal it has no stdin: many programs read from a pipe that no one writes to.
            pty: if call.tty { Pty::Default } else { Pty::No },
            // One text, in the order in which it was written.
            merge: !call.tty,
            session_key: scope.session_key.clone(),
            task_id: scope.task_id.clone(),
            sandbox: scope.sandbox.clone(),
            labels: labels(invocation, Some(number)),
            request_id: Some(request),
            ..ExecParams::default()
        };
        let proc = self.native.start_command(&mut start, invocation).await?;
        drop(reserved);
        wait_ended(&proc, call.wait.ms).await;
        if let Some(refusal) = self.native.refusal(&proc) {
            return Err(refusal);
        }
        let Yield { note, .. } = call.wait;
        let shown = ShownOutput { began, from: 0, max_output_tokens: call.max_output_tokens, note };
        self.session_answer(&proc, shown, invocation).await
    }

    pub(super) async fn write_stdin(
        &self,
        call: WriteStdin,
        invocation: &Invocation,
    ) -> Result<ToolsetAnswer, RpcError> {
        let began = Instant::now();
        let key = invocation.scope.session_key.as_deref();
        let found = sessions::find(&self.native.approvals.registry, key, call.session_id);
        let Some(proc) = found.map(|proc| proc.add_reader()) else {
            return Ok(ToolsetAnswer::new(unknown_session(call.session_id)));
        };
        if self.positions.get(&proc).is_reported {
            return Ok(ToolsetAnswer::new(unknown_session(call.session_id)));
        }
        if let Some(problem) = self.give(&proc, &call, invocation).await? {
            return Ok(ToolsetAnswer::new(failure(WRITE_STDIN, &problem)));
        }
        wait_ended(&proc, call.wait.ms).await;
        let Yield { note, .. } = call.wait;
        // Another call may have returned some meanwhile.
        let from = self.positions.get(&proc).cursor;
        let shown = ShownOutput { began, from, max_output_tokens: call.max_output_tokens, note };
        self.session_answer(&proc, shown, invocation).await
    }

    /// Gives a session its input, once however often the call is made. Returns the problem for the model, if there is one.
    async fn give(
        &self,
        proc: &Arc<Proc>,
        call: &WriteStdin,
        invocation: &Invocation,
    ) -> Result<Option<String>, RpcError> {
        if call.is_poll() || proc.published_state().has_ended() {
            return Ok(None);
        }
        if proc.spec.pty.is_none() {
            return match call.is_interrupt() {
                true => interrupt(proc, invocation).await,
                false => Ok(Some(NO_STDIN.into())),
            };
        }
        let data = call.chars.clone().into_bytes();
        let total = data.len();
        match stdin::write(proc, Some(&invocation.call), data, WRITE_TIMEOUT_MS).await {
            Ok(Written { complete: true, .. }) | Err(StdinError::Ended { .. }) => Ok(None),
            Ok(Written { bytes, .. }) => Ok(Some(format!("the program has taken only {bytes} of {total} bytes"))),
            Err(e) => Ok(Some(crate::call_error::stdin_error(proc, e).message)),
        }
    }

    /// Returns the text about a session, with its output from a cursor on.
    async fn session_answer(
        &self,
        proc: &Reader,
        shown: ShownOutput,
        invocation: &Invocation,
    ) -> Result<ToolsetAnswer, RpcError> {
        let state = proc.state();
        let unread = read_unread(proc, &state, shown.from, MAX_UNREAD_BYTES)?;
        let Unread { head, omitted, tail, next } = unread;
        let ended = view::outcome(&proc.spec, &state);
        let is_reported = state.has_ended();
        let text = exec(&Exec {
            chunk_id: &chunk_id(fnv1a(invocation.call.as_bytes())),
            wall: shown.began.elapsed(),
            state: match is_reported {
                true => ExecState::Ended(end(&ended)),
                false => ExecState::Running { session_id: sessions::number_of(proc).unwrap_or_default() },
            },
            output: Output { head: &head, omitted_bytes: omitted, tail: &tail },
            max_output_tokens: shown.max_output_tokens,
            yield_note: shown.note.as_deref(),
        });
        let id = proc.spec.id;
        let read = Some(ReadTo { process: id, to: next, is_reported });
        Ok(ToolsetAnswer { process: Some(id.to_string().into()), read, ..ToolsetAnswer::new(text) })
    }
}

/// Sends SIGINT to the group of a session that has no terminal. After a crash it is not sent again: the program may have got it.
async fn interrupt(proc: &Proc, invocation: &Invocation) -> Result<Option<String>, RpcError> {
    if invocation.resumed.as_ref().is_some_and(|resumed| resumed.facts.is_some()) {
        return Ok(None);
    }
    let recorded = invocation.facts.record("interrupt".into());
    recorded.map_err(|e| RpcError::new(ErrorKind::Unavailable, format!("record the signal before it is sent: {e}")))?;
    match proc.control(Control::Signal(libc::SIGINT)).await {
        // It has ended meanwhile.
        Ok(0 | libc::ESRCH) => Ok(None),
        Ok(errno) => Ok(Some(format!("the signal was not sent: {}", std::io::Error::from_raw_os_error(errno)))),
        Err(e) => Ok(Some(crate::call_error::no_reply(proc, e).message)),
    }
}

/// Returns the labels of a command.
pub(super) fn labels(invocation: &Invocation, session: Option<u64>) -> std::collections::BTreeMap<String, String> {
    let session = session.map(|number| (SESSION_LABEL.to_owned(), number.to_string()));
    std::iter::once((CALL_LABEL.to_owned(), invocation.call.to_string())).chain(session).collect()
}
