//! `shell` and `shell_command`: a command that is waited for. At its timeout the whole tree ends.

use super::exec::labels;
use super::{end, wait_ended};
use crate::proc::unread::{StreamHead, read_stream_head};
use crate::proc::view;
use crate::tools::native::command::request_id;
use crate::tools::provider::Invocation;
use crate::toolsets::Toolsets;
use crate::toolsets::answer::ToolsetAnswer;
use toold_format::Stream;
use toold_proto::RpcError;
use toold_proto::params::ExecParams;
use toold_proto::process::Reason;
use toold_tools::toolset::codex::{Program, Shell, ShellOutcome, StreamText, shell};
use toold_tools::toolset::text::omission_marker;

/// The text of a stream that is counted in characters. What follows is counted in bytes.
const MAX_COUNTED_BYTES: u64 = 1 << 20;

impl Toolsets {
    pub(super) async fn shell(&self, call: Shell, invocation: &Invocation) -> Result<ToolsetAnswer, RpcError> {
        let scope = &invocation.scope;
        let (command, argv, login) = match call.program {
            Program::Argv(argv) => (None, Some(argv), None),
            Program::Script { command, login } => (Some(command), None, Some(login)),
        };
        let mut start = ExecParams {
            command,
            argv,
            login,
            cwd: self.native.working_dir(invocation, call.workdir.as_deref()),
            timeout_ms: Some(call.timeout_ms.min(i64::MAX as u64) as i64),
            session_key: scope.session_key.clone(),
            task_id: scope.task_id.clone(),
            sandbox: scope.sandbox.clone(),
            labels: labels(invocation, None),
            request_id: Some(request_id(&invocation.call)),
            ..ExecParams::default()
        };
        let proc = self.native.start_command(&mut start, invocation).await?;
        wait_ended(&proc, u64::MAX).await;
        if let Some(refusal) = self.native.refusal(&proc) {
            return Err(refusal);
        }
        let state = proc.state();
        let read = |stream| read_stream_head(&proc, &state, stream, MAX_COUNTED_BYTES).map(text);
        let (stdout, stderr) = (read(Stream::Stdout)?, read(Stream::Stderr)?);
        let ended = view::outcome(&proc.spec, &state);
        let has_timed_out = ended.reason == Some(Reason::Timeout);
        let text = shell(&ShellOutcome {
            cwd: &proc.spec.cwd,
            end: (!has_timed_out).then(|| end(&ended)),
            timeout_ms: call.timeout_ms,
            stdout: StreamText { text: &stdout.0, more_bytes: stdout.1 },
            stderr: StreamText { text: &stderr.0, more_bytes: stderr.1 },
        });
        Ok(ToolsetAnswer { process: Some(proc.spec.id.to_string().into()), ..ToolsetAnswer::new(text) })
    }
}

/// Returns the text of a stream, with the number of bytes that the log dropped before it, and the number of those after it.
fn text(head: StreamHead) -> (String, u64) {
    match head.dropped {
        0 => (head.text, head.more),
        dropped => (format!("{}\n{}", omission_marker(dropped), head.text), head.more),
    }
}
