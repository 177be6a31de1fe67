//! `terminal`: a command in a process of its own. The process carries the id of the call, so that a call that is made again
//! after a crash finds it: the command runs once.

use super::command::{BACKGROUND_LABEL, CALL_LABEL, request_id};
use super::{Native, parse};
use crate::proc::Proc;
use crate::proc::control::Control;
use crate::proc::output::{FittedOutput, read_fitted};
use crate::proc::state::State;
use crate::proc::stdin;
use crate::proc::view;
use crate::text::TextForm;
use crate::tools::provider::Invocation;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use toold_proto::params::{ExecParams, StdinMode};
use toold_proto::process::Reason;
use toold_proto::{ErrorKind, RpcError};

/// The most output in a result, in tokens of about 4 bytes: a script reads all of what most commands print.
const MAX_OUTPUT_TOKENS: u64 = 1 << 20;
/// The longest time that the text for stdin takes: as long as a call may.
const MAX_FEED_MS: u64 = 24 * 3600 * 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    command: String,
    /// Seconds.
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    workdir: Option<String>,
    #[serde(default)]
    background: bool,
    #[serde(default)]
    stdin: Option<String>,
    #[serde(default)]
    check: bool,
}

impl Native {
    /// Runs `terminal`. `background_stdin`: the stdin of a command in the background that is given no text for it.
    pub async fn terminal(&self, invocation: &Invocation, background_stdin: StdinMode) -> Result<Value, RpcError> {
        let args: Args = parse(&invocation.args)?;
        if args.background && invocation.script.is_some() && !self.approvals.registry.config.script.background {
            let message = "background commands are denied to scripts (config key `script.background`)";
            return Err(RpcError::new(ErrorKind::Denied, message).with("reason", "background"));
        }
        let mut call = exec_params(self, &args, invocation)?;
        if args.background && args.stdin.is_none() {
            call.stdin = background_stdin;
        }
        let proc = self.start_command(&mut call, invocation).await?;
        if let Some(text) = &args.stdin {
            feed(&proc, invocation, text).await;
        }
        if args.background {
            return Ok(json!({ "process": proc.spec.id.to_string() }));
        }
        let mut state = proc.subscribe();
        // The exit, and not the close: a descendant may hold a pipe open.
        let _ = state.wait_for(State::has_ended).await;
        self.outcome(&proc, args.check)
    }

    /// Kills the tree of a call that is cancelled.
    pub(super) async fn cancel_terminal(&self, invocation: &Invocation) {
        let in_background = invocation.args.get("background").and_then(Value::as_bool) == Some(true);
        let proc = self.approvals.registry.started_by_request(&request_id(&invocation.call));
        if in_background && proc.is_some_and(|proc| !proc.published_state().asking) {
            return;
        }
        self.cancel_command(invocation).await;
    }

    /// Returns the result of a command that has ended.
    fn outcome(&self, proc: &Arc<Proc>, check: bool) -> Result<Value, RpcError> {
        let state = proc.state();
        let ended = view::outcome(&proc.spec, &state);
        if let Some(refusal) = self.refusal(proc) {
            return Err(refusal);
        }
        let fitted = read_fitted(proc, &state, MAX_OUTPUT_TOKENS, None, TextForm::COLLAPSED).map_err(RpcError::from)?;
        let FittedOutput { output, truncated, gap, .. } = fitted;
        let mut result = json!({
            "output": output,
            "exit_code": ended.exit_code,
            "timed_out": ended.reason == Some(Reason::Timeout),
            "process": proc.spec.id.to_string(),
        });
        if let Some(signal) = &ended.signal {
            result["signal"] = json!(signal);
        }
        if let Some(truncated) = truncated {
            result["truncated"] = json!(truncated);
        } else if let Some(gap) = gap {
            result["truncated"] = json!({ "from": gap.from, "to": gap.to });
        }
        if ended.exit_code.is_none() {
            result["reason"] = json!(ended.reason);
        }
        if check && ended.exit_code != Some(0) {
            let how = match (ended.exit_code, &ended.signal) {
                (_, Some(signal)) => format!("was ended by {signal}"),
                (Some(code), None) => format!("exited with code {code}"),
                (None, None) => "did not end well".into(),
            };
            return Err(RpcError::new(ErrorKind::ToolFailed, format!("the command {how}")).with("result", result));
        }
        Ok(result)
    }
}

fn exec_params(native: &Native, args: &Args, invocation: &Invocation) -> Result<ExecParams, RpcError> {
    let timeout_ms = match args.timeout {
        Some(seconds) if seconds > 0.0 => Some((seconds * 1000.0).clamp(1.0, 1e15) as i64),
        Some(_) => return Err(RpcError::param("args/timeout", "must be more than 0").with("pointer", "/timeout")),
        None => None,
    };
    let scope = &invocation.scope;
    Ok(ExecParams {
        command: Some(args.command.clone()),
        cwd: native.working_dir(invocation, args.workdir.as_deref()),
        timeout_ms,
        stdin: if args.stdin.is_some() { StdinMode::Pipe } else { StdinMode::Null },
        session_key: scope.session_key.clone(),
        task_id: scope.task_id.clone(),
        sandbox: scope.sandbox.clone(),
        labels: labels(args, invocation),
        request_id: Some(request_id(&invocation.call)),
        ..ExecParams::default()
    })
}

fn labels(args: &Args, invocation: &Invocation) -> BTreeMap<String, String> {
    let background = args.background.then(|| (BACKGROUND_LABEL.to_owned(), "true".to_owned()));
    std::iter::once((CALL_LABEL.to_owned(), invocation.call.to_string())).chain(background).collect()
}

/// Writes the text to stdin, once however often the call is made, and closes it.
async fn feed(proc: &Arc<Proc>, invocation: &Invocation, text: &str) {
    if !text.is_empty() {
        // A program that does not read holds up the call, not this write; it ends with the program.
        let _ = stdin::write(proc, Some(&invocation.call), text.as_bytes().to_vec(), MAX_FEED_MS).await;
    }
    let _ = proc.control(Control::Close).await;
}
