//! Publishes `tool_provider`: in the order of the changes, one after the other, again if the disk refuses.

use super::ClientProviders;
use crate::disk::on_disk;
use crate::events::{Journal, NewEvent};
use crate::proc::event_sink::{self, RETRY_DELAY};
use std::io;
use std::sync::Arc;
use toold_proto::event::ToolProvider;

/// The change of a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderEvent {
    pub fields: ToolProvider,
    /// The session that the provider serves. None: every session.
    pub session_key: Option<String>,
}

impl ClientProviders {
    /// Writes events to the journal as long as the daemon runs.
    pub async fn publish_events(self: Arc<Self>, journal: Arc<Journal>) {
        let mut changes = self.changes.subscribe();
        on_disk(async {
            loop {
                while let Some(event) = self.next_event() {
                    if let Err(e) = publish(&journal, &event) {
                        tracing::error!(provider = event.fields.provider, %e, "failed to store an event; trying again");
                        tokio::time::sleep(RETRY_DELAY).await;
                        continue;
                    }
                    self.on_published();
                }
                // The sender lives as long as `self`.
                let _ = changes.changed().await;
            }
        })
        .await
    }

    /// Returns the first event that is not published.
    fn next_event(&self) -> Option<ProviderEvent> {
        self.lock().events.front().cloned()
    }

    fn on_published(&self) {
        self.lock().events.pop_front();
        self.on_change();
    }
}

fn publish(journal: &Journal, event: &ProviderEvent) -> io::Result<u64> {
    let session_key = event.session_key.as_deref();
    let event = NewEvent { fields: &event.fields, id: None, session_key, task_id: None, state: &[], cancelled: false };
    journal.publish(&event, event_sink::now(), |_| {})
}
