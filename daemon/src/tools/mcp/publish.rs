//! Publishes `tool_provider` when a server is ready, and when it is gone.

use super::McpServer;
use crate::events::NewEvent;
use crate::proc::event_sink;
use toold_proto::event::ToolProvider;
use toold_proto::tools::ProviderState;

impl McpServer {
    /// Publishes the state of the server. `why`: the reason of a state other than `ready`.
    pub(super) fn publish(&self, state: ProviderState, why: Option<String>) {
        let tools = self.tools().len() as u64;
        let fields = ToolProvider { provider: self.name.clone(), state, tools, why };
        let event =
            NewEvent { fields: &fields, id: None, session_key: None, task_id: None, state: &[], cancelled: false };
        if let Err(e) = self.shared.journal.publish(&event, event_sink::now(), |_| {}) {
            // The next change is published again; nothing waits for this one.
            tracing::error!(server = self.name, %e, "failed to store an event");
        }
    }
}
