//! A session with a script: its start, its cancellation, and its result as a document.

use super::{Request, Session};
use crate::blocking::{CallError, parse};
use crate::error::CliError;
use serde_json::value::RawValue;
use std::time::Duration;
use toold_proto::api;
use toold_proto::process::Process;
use toold_proto::script::{ScriptCancelParams, ScriptResultParams, ScriptStatus};

/// The time that one call for the result waits before it is made again.
const RESULT_WAIT_MS: u64 = 600_000;

impl Session<'_, '_> {
    /// Starts the program or the script.
    pub(super) fn start(&mut self) -> Result<(), CliError> {
        match self.options.script.clone() {
            Some(script) => self.ask::<api::ScriptRun>(Request::Exec, &script, Duration::ZERO),
            None => {
                let exec = self.options.exec.clone();
                self.ask::<api::Exec>(Request::Exec, &exec, Duration::ZERO)
            }
        }
    }

    /// Returns the process of an answer to `start`.
    pub(super) fn started_process(&self, result: &RawValue) -> Result<Process, CallError> {
        match self.options.script {
            Some(_) => Ok(parse::<api::ScriptRun>(result)?.process),
            None => Ok(parse::<api::Exec>(result)?.process),
        }
    }

    /// Cancels the script on the first Ctrl-C: its calls in flight end with it.
    pub(super) fn cancel_script(&mut self) -> Result<(), CliError> {
        let params = ScriptCancelParams { id: self.id(), call: None };
        self.ask::<api::ScriptCancel>(Request::Kill, &params, Duration::ZERO)
    }

    /// Reports whether a Ctrl-C of the user killed the process.
    pub(super) fn has_killed(&self) -> bool {
        let needed = if self.options.script.is_some() { 1 } else { 2 };
        self.interrupts >= needed
    }

    /// Waits for the end of a script, for `--json`.
    pub(super) fn wait_for_result(&mut self) -> Result<(), CliError> {
        let params = ScriptResultParams { id: self.id(), wait_ms: RESULT_WAIT_MS, ..Default::default() };
        self.ask::<api::ScriptResult>(Request::Wait, &params, Duration::from_millis(RESULT_WAIT_MS))
    }

    /// Prints the result of a script that has ended, and returns its exit code.
    pub(super) fn show_result(&mut self, raw: &RawValue) -> Result<Option<u8>, CliError> {
        let result = parse::<api::ScriptResult>(raw)?;
        if result.status == ScriptStatus::Running {
            return self.wait_for_result().map(|()| None);
        }
        self.cx.document(raw)?;
        let own = crate::cmd::wait::own_code(&result.process);
        Ok(Some(self.exit_code(&result.process, own)))
    }
}
