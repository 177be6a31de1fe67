//! The end of a `run`: its exit code, its message, and the record that `--rm` removes.

use super::{RecordFate, Role, Session};
use crate::blocking::parse;
use crate::error::{CliError, DENIED, TIMED_OUT};
use crate::render::poll::summary;
use crate::render::status::unusual_exit;
use toold_proto::api;
use toold_proto::params::ForgetParams;
use toold_proto::process::{Process, Reason};

impl Session<'_, '_> {
    /// Returns the exit code of a process that has ended: for `run` the one of timeout(1), if its time limit ended it.
    pub(super) fn exit_code(&self, process: &Process, own: u8) -> u8 {
        match (self.options.role, process.reason) {
            (Role::Owner, Some(Reason::Timeout)) => TIMED_OUT,
            (Role::Owner, Some(Reason::Denied)) => DENIED,
            (Role::Owner | Role::Attached, _) => own,
        }
    }

    /// Prints what the exit code does not express, except the effect of the user's Ctrl-C that kills.
    pub(super) fn report_end(&mut self, process: &Process) {
        let ours = self.has_killed() && process.reason == Some(Reason::Killed);
        match (unusual_exit(process, &self.options.exec).filter(|_| !ours), self.options.role) {
            (Some(end), _) => self.cx.console.message(&end),
            (None, Role::Attached) => self.cx.console.message(&summary(process)),
            (None, Role::Owner) => {}
        }
        self.report_retry(process);
    }

    /// Removes the record, if the user asked for that. A record that stays is reported.
    pub(super) fn remove_record(&mut self) {
        if self.options.record == RecordFate::Kept {
            return;
        }
        let id = self.id();
        let params = ForgetParams { ids: Some(vec![id.clone()]), ..Default::default() };
        let removed =
            self.cx.connection.call_raw::<api::Forget>(&params).and_then(|raw| Ok(parse::<api::Forget>(&raw)?));
        match removed {
            Ok(result) if result.skipped.is_empty() => {}
            Ok(_) => self.cx.console.message(&format!("--rm: descendants of {id} still run, so its record is kept")),
            Err(error) => self.report_kept(&id, &error),
        }
    }

    fn report_kept(&mut self, id: &str, error: &CliError) {
        self.cx.console.message(&format!("--rm: the record of {id} is kept: {error}"));
    }
}
