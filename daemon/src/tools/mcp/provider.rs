//! A server as a provider of tools.

use super::McpServer;
use crate::tools::provider::{Invocation, Provider};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use toold_proto::RpcError;
use toold_proto::tools::Tool;

impl Provider for McpServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn tools(&self) -> Vec<Arc<Tool>> {
        McpServer::tools(self)
    }

    fn load(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if !self.knows_tools() {
                let _ = self.session().await;
            }
        })
    }

    fn refresh(self: Arc<Self>) -> BoxFuture<'static, Result<(), RpcError>> {
        Box::pin(async move {
            let was_up = self.running().is_some_and(|session| session.is_open());
            let session = self.session().await?;
            // A start lists them.
            if was_up { self.list_again(&session).await } else { Ok(()) }
        })
    }

    fn trouble(&self) -> Option<String> {
        McpServer::trouble(self)
    }

    fn invoke(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, Result<Value, RpcError>> {
        Box::pin(self.call(invocation))
    }

    fn cancel(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, ()> {
        self.cancel_call(&invocation.call);
        Box::pin(std::future::ready(()))
    }
}
