//! `run --json`: waits for the end, and prints one document.

use super::{Request, Session};
use crate::blocking::{CallError, parse};
use crate::cmd::wait::{has_ended, own_code};
use crate::error::{CliError, DONE};
use serde_json::value::RawValue;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;

/// The time that one `wait` of `run --json` lasts before it is called again.
const WAIT_STEP_MS: u32 = 600_000;

impl Session<'_, '_> {
    /// Waits for the end, without a timeout.
    pub(super) fn wait_for_end(&mut self) -> Result<(), CliError> {
        match self.options.script {
            Some(_) => self.wait_for_result(),
            None => self.wait(Request::Wait, WAIT_STEP_MS),
        }
    }

    pub(super) fn wait(&mut self, what: Request, timeout_ms: u32) -> Result<(), CliError> {
        let consumer = self.options.exec.consumer.clone();
        let params = params::WaitParams {
            id: Some(self.id()),
            timeout_ms: Some(timeout_ms.into()),
            consumer,
            ..Default::default()
        };
        self.ask::<api::Wait>(what, &params, Duration::from_millis(timeout_ms.into()))
    }

    pub(super) fn waited(&mut self, what: Request, result: &RawValue) -> Result<Option<u8>, CliError> {
        if what == Request::Wait && self.options.script.is_some() {
            return self.show_result(result);
        }
        #[derive(serde::Deserialize)]
        struct Raw<'a> {
            #[serde(borrow)]
            processes: Vec<&'a RawValue>,
        }
        let typed = parse::<api::Wait>(result)?;
        let ended = typed.processes.first().filter(|waited| has_ended(&waited.process));
        if ended.is_none() && what == Request::Wait {
            return self.wait_for_end().map(|()| None);
        }
        let raw: Raw<'_> = serde_json::from_str(result.get())
            .map_err(|e| CallError::Protocol(format!("cannot read the result of wait: {e}")))?;
        if let Some(document) = raw.processes.first() {
            self.cx.document(document)?;
        }
        let Some(waited) = ended else { return Ok(Some(DONE)) };
        self.remove_record();
        Ok(Some(self.exit_code(&waited.process, own_code(&waited.process))))
    }
}
