//! The event `script_call`: a call of a script has ended.

use super::journal::CallOutcome;
use crate::registry::Registry;
use std::sync::Arc;
use toold_proto::ProcId;
use toold_proto::event::ScriptCall;

/// Publishes the events, which are off unless `events.calls` is set.
pub struct CallEvents {
    /// None: off.
    registry: Option<Arc<Registry>>,
}

/// A call that has ended.
pub struct EndedScriptCall<'a> {
    pub script: ProcId,
    pub call: &'a str,
    pub tool: &'a str,
    pub ms: u64,
    pub outcome: &'a CallOutcome,
}

impl CallEvents {
    pub fn new(registry: &Arc<Registry>) -> CallEvents {
        CallEvents { registry: registry.config.events.calls.then(|| registry.clone()) }
    }

    pub fn publish(&self, ended: &EndedScriptCall<'_>) {
        let Some(registry) = &self.registry else { return };
        let Ok(proc) = registry.find(&ended.script.to_string()) else { return };
        let event = ScriptCall {
            call: ended.call.into(),
            tool: ended.tool.into(),
            status: ended.outcome.status(),
            ms: ended.ms,
            bytes: ended.outcome.bytes(),
            error: ended.outcome.error().and_then(|error| error.kind()).map(|kind| kind.name().to_owned()),
        };
        if let Err(e) = proc.publish_event(&event, |_| {}) {
            tracing::error!(id = %ended.script, %e, "failed to store an event");
        }
    }
}
