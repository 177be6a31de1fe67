//! Toolsets: tools that certain models know, run by the functions of this daemon. `toold_tools` has their names, their arguments
//! and the texts of their results.

mod answer;
mod codex;
mod hermes;
mod provider;

pub use answer::{AnswerError, ReadTo, error_for_model};
pub use codex::position::ReadDelivery;

use crate::script::Scripts;
use crate::tools::native::Native;
use crate::tools::provider::Provider;
use answer::ToolsetAnswer;
use codex::position::Positions;
use codex::sessions::CodexSessions;
use provider::ToolsetProvider;
use serde_json::Value;
use std::sync::Arc;
use toold_proto::tools::Toolset;

/// The functions behind the toolsets.
pub struct Toolsets {
    native: Arc<Native>,
    scripts: Arc<Scripts>,
    /// The numbers of the sessions of `exec_command`.
    sessions: CodexSessions,
    /// The output that `exec_command` and `write_stdin` have returned.
    positions: Arc<Positions>,
}

impl Toolsets {
    pub fn new(native: Arc<Native>, scripts: Arc<Scripts>) -> Arc<Toolsets> {
        Arc::new(Toolsets { native, scripts, sessions: CodexSessions::default(), positions: Arc::default() })
    }

    /// Returns a provider for each toolset.
    pub fn providers(self: &Arc<Self>) -> Vec<(Toolset, Arc<dyn Provider>)> {
        let provider = |toolset| Arc::new(ToolsetProvider::new(toolset, self.clone()));
        vec![(Toolset::Codex, provider(Toolset::Codex)), (Toolset::Hermes, provider(Toolset::Hermes))]
    }

    /// Opens the result of a call that the dispatcher returned: the result for the client, and what its delivery records.
    pub fn open(&self, result: &Value) -> Result<(Value, Option<ReadDelivery>), AnswerError> {
        let ToolsetAnswer { result, read, .. } = ToolsetAnswer::parse(result)?;
        let registry = &self.native.approvals.registry;
        let delivery = read.and_then(|read| {
            // A process that was forgotten has no reader any more.
            let proc = registry.find(&read.process.to_string()).ok()?;
            Some(ReadDelivery::new(self.positions.clone(), proc, read.position()))
        });
        Ok((result, delivery))
    }
}

/// Returns true if the name is of a tool that only the toolset has, so that its results are opened by `Toolsets::open`.
pub fn is_own(toolset: Toolset, name: &str) -> bool {
    toolset != Toolset::Toold && !name.contains('.')
}
