//! The commands, one file each: arguments in, one call or a few, formatted output out.

pub mod approvals;
pub mod approve;
pub mod attach;
pub mod close;
pub mod complete;
pub mod completions;
pub mod deny;
pub mod doctor;
pub mod events;
pub mod exec;
pub mod forget;
pub mod grants;
pub mod help;
pub mod hook;
pub mod info;
pub mod inspect;
pub mod integrate;
pub mod kernel;
pub mod keys;
pub mod kill;
pub mod list;
pub mod log;
pub mod man;
pub mod mcp;
pub mod notify;
pub mod options;
pub mod patch;
pub mod pause;
pub mod policy;
pub mod poll;
pub mod queue;
pub mod resize;
pub mod restart;
pub mod resume;
pub mod revoke;
pub mod run;
pub mod sandbox;
pub mod screen;
pub mod script;
pub mod service;
pub mod shutdown;
pub mod signal;
pub mod stage;
pub mod tool;
pub mod tools;
pub mod top;
pub mod wait;
pub mod web;
pub mod why;
pub mod write;

use crate::blocking::parse;
use crate::connect::Connection;
use crate::console::Console;
use crate::error::{CliError, DONE};
use crate::render::Style;
use crate::{agent_events, agent_session};
use serde_json::value::RawValue;
use toold_proto::api::Method;

/// The arguments of a command that takes none.
#[derive(Debug, clap::Args)]
pub struct NoArgs {}

/// The connection, the output and the format that every command works with.
pub struct Context<'a> {
    pub connection: Connection,
    pub console: Console<'a>,
    pub json: bool,
}

impl Context<'_> {
    /// Returns the session that an option names, else that of the agent that runs this program. An empty option names none.
    pub fn session_or_agents(&self, given: Option<String>) -> Option<String> {
        agent_session::or_current(given, || if self.console.is_real { agent_session::current() } else { None })
    }

    /// Returns the consumer that an option names, else that of the agent that runs this program: an exit that a command reports
    /// to the agent is not reported to it again.
    pub fn consumer_or_agents(&self, given: Option<String>) -> Option<String> {
        given.or_else(|| self.session_or_agents(None).map(|session| agent_events::consumer_name(&session)))
    }

    /// Calls a method once and shows its result.
    pub fn call_once<M: Method>(
        &mut self,
        params: &M::Params,
        format: impl FnOnce(&M::Result, Style) -> String,
    ) -> Result<u8, CliError> {
        let raw = self.connection.call_raw::<M>(params)?;
        self.show_only::<M>(&raw, format)
    }

    /// Calls a read-only method, again if the connection is lost, and shows its result.
    pub fn query<M: Method>(
        &mut self,
        params: &M::Params,
        format: impl FnOnce(&M::Result, Style) -> String,
    ) -> Result<u8, CliError>
    where
        M::Params: Clone,
    {
        let raw = self.connection.call_raw_with_retry::<M>(|_| params.clone())?;
        self.show_only::<M>(&raw, format)
    }

    /// Prints a result: its bytes with `--json`, else formatted. Returns the result, for an exit code.
    pub fn show<M: Method>(
        &mut self,
        raw: &RawValue,
        format: impl FnOnce(&M::Result, Style) -> String,
    ) -> Result<M::Result, CliError> {
        if self.json {
            self.document(raw)?;
        }
        let result = parse::<M>(raw)?;
        if !self.json {
            self.console.print(&format(&result, self.console.style))?;
        }
        Ok(result)
    }

    /// Prints a result that decides no exit code: with `--json` it need not be parsed, so the fields of a newer daemon
    /// pass through.
    fn show_only<M: Method>(
        &mut self,
        raw: &RawValue,
        format: impl FnOnce(&M::Result, Style) -> String,
    ) -> Result<u8, CliError> {
        if self.json {
            self.document(raw)?
        } else {
            drop(self.show::<M>(raw, format)?)
        }
        Ok(DONE)
    }

    /// Prints a value of our own as one JSON document.
    pub fn print_json(&mut self, value: &impl serde::Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string(value).map_err(|e| CliError::Io { doing: "write JSON", source: e.into() })?;
        self.console.print_json(&text)
    }

    /// Prints one JSON document unchanged.
    pub fn document(&mut self, raw: &RawValue) -> Result<(), CliError> {
        self.console.print_json(raw.get())
    }
}
