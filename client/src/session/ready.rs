//! What is told beside the output: that the process is ready, and to its consumer that it ended.

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
    /// Waits for readiness beside everything else: the output is not held up for it.
    pub(super) fn ask_ready(&mut self) -> Result<(), CliError> {
        let Some((until, time)) = self.plan.readiness.as_ref().map(|ready| (ready.until.clone(), ready.time())) else {
            return Ok(());
        };
        let timeout_ms = Some(signed(time.as_millis() as u64));
        let params = params::WaitParams { id: Some(self.id()), until, timeout_ms, ..Default::default() };
        self.ask::<api::Wait>(Request::Ready, &params, time)
    }

    /// Tells a person that it is ready, or is not yet. An end is told by the end of `run`.
    pub(super) fn ready(&mut self, result: &RawValue) -> Result<(), CliError> {
        let result = parse::<api::Wait>(result)?;
        let ready = match result.status {
            WaitStatus::Matched => results::Ready::Ready,
            WaitStatus::Timeout => results::Ready::Timeout,
            WaitStatus::Exited => return Ok(()),
        };
        if self.cx.console.err_style.terminal()
            && let (Some(waited), Some(asked)) = (result.processes.first(), &self.plan.readiness)
        {
            let sentence = ready::sentence(ready, &waited.process, asked);
            self.message(&sentence);
        }
        Ok(())
    }

    /// The consumer has seen the end now. If that cannot be told, it is told again, which does no harm.
    pub(super) fn acknowledge(&mut self) {
        if let Some(consumer) = self.plan.exec.consumer.clone() {
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
