//! A client as a provider of tools. It has no state of its own: the table has it.

use super::ClientProviders;
use super::call::ClientCall;
use super::registration::DEFAULT_RECONNECT_MS;
use crate::tools::provider::{Invocation, Provider};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::RpcError;
use toold_proto::tools::Tool;

/// The provider of a name, whichever connection serves it.
pub(super) struct ClientProvider {
    providers: Arc<ClientProviders>,
    name: String,
    /// The session that calls.
    session_key: Option<String>,
}

impl ClientProvider {
    pub fn new(providers: Arc<ClientProviders>, name: &str, session_key: Option<&str>) -> ClientProvider {
        ClientProvider { providers, name: name.into(), session_key: session_key.map(Into::into) }
    }
}

impl Provider for ClientProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn tools(&self) -> Vec<Arc<Tool>> {
        self.providers.tools(&self.name, self.session_key.as_deref())
    }

    fn waits(&self) -> bool {
        true
    }

    /// Waits for a client that has not registered: after a restart of the daemon it comes back a moment later.
    fn load(self: Arc<Self>) -> BoxFuture<'static, ()> {
        async move {
            let wait = Duration::from_millis(DEFAULT_RECONNECT_MS);
            let registered = self.providers.until_live(&self.name, self.session_key.as_deref());
            let _ = tokio::time::timeout(wait, registered).await;
        }
        .boxed()
    }

    fn invoke(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, Result<Value, RpcError>> {
        ClientCall::new(self.providers.clone(), &self.name, invocation).run().boxed()
    }

    /// The link has sent `$/cancelRequest` when the future was dropped.
    fn cancel(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, ()> {
        match self.providers.live(&self.name, invocation.scope.session_key.as_deref()) {
            Some(live) => live.link.settled(invocation.call),
            None => std::future::ready(()).boxed(),
        }
    }
}
