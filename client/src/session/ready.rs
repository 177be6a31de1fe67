//! Reports beside the output: readiness to the user, and the exit to the consumer.

use super::{Request, Session};
use crate::blocking::parse;
use crate::cmd::options::ready;
use crate::cmd::wait::signed;
use crate::error::CliError;
use serde_json::value::RawValue;
use toold_proto::api;
use toold_proto::params;
use toold_proto::results::{self, WaitStatus};

impl Session<'_, '_> {
    /// Waits for readiness beside everything else: the output does not wait for it.
    pub(super) fn ask_ready(&mut self) -> Result<(), CliError> {
        let Some((until, time)) = self.options.readiness.as_ref().map(|ready| (ready.until.clone(), ready.time()))
        else {
            return Ok(());
        };
        let timeout_ms = Some(signed(time.as_millis() as u64));
        let params = params::WaitParams { id: Some(self.id()), until, timeout_ms, ..Default::default() };
        self.ask::<api::Wait>(Request::Ready, &params, time)
    }

    /// Reports that it is ready, or is not yet. An exit is reported by the end of `run`.
    pub(super) fn ready(&mut self, result: &RawValue) -> Result<(), CliError> {
        let result = parse::<api::Wait>(result)?;
        let ready = match result.status {
            WaitStatus::Matched | WaitStatus::Input => results::Ready::Ready,
            WaitStatus::Timeout => results::Ready::Timeout,
            WaitStatus::Exited => return Ok(()),
        };
        if self.cx.console.err_style.terminal()
            && let (Some(waited), Some(asked)) = (result.processes.first(), &self.options.readiness)
        {
            let sentence = ready::sentence(ready, &waited.process, asked);
            self.message(&sentence);
        }
        Ok(())
    }

    /// Acknowledges the exit for the consumer. If that fails the consumer gets it again, which does no harm.
    pub(super) fn acknowledge(&mut self) {
        if let Some(consumer) = self.options.exec.consumer.clone() {
            let params = params::WaitParams {
                id: Some(self.id()),
                timeout_ms: Some(1),
                consumer: Some(consumer),
                ..Default::default()
            };
            let _ = self.cx.connection.call_raw::<api::Wait>(&params);
        }
    }
}
