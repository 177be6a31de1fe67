//! The native tools: thin views of `exec`, `fs.*` and `patch.*`, and the web tools, which a helper program runs.

pub mod command;
mod files;
mod terminal;
pub mod web;

use super::provider::{Invocation, Provider};
use crate::approvals::Approvals;
use crate::file_calls::FileCalls;
use crate::patch::Patches;
use crate::policy::Judge;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use toold_proto::params::StdinMode;
use toold_proto::tools::{Tool, ToolState};
use toold_proto::{ErrorKind, RpcError};
use toold_tools::NATIVE_PROVIDER;

/// The provider of the native tools.
pub struct Native {
    pub approvals: Arc<Approvals>,
    judge: Arc<Judge>,
    patches: Arc<Patches>,
    pub file_calls: Arc<FileCalls>,
    /// Made at the first use.
    tools: OnceLock<Vec<Arc<Tool>>>,
}

impl Native {
    pub fn new(
        approvals: Arc<Approvals>,
        judge: Arc<Judge>,
        patches: Arc<Patches>,
        file_calls: Arc<FileCalls>,
    ) -> Arc<Native> {
        Arc::new(Native { approvals, judge, patches, file_calls, tools: OnceLock::new() })
    }

    fn listed(&self) -> &[Arc<Tool>] {
        let with_state = |mut tool: Tool| {
            if tool.name == "web_search"
                && let Err(missing) = self.approvals.registry.config.web.search.resolve()
            {
                (tool.state, tool.why) = (ToolState::Unavailable, Some(missing.message));
            }
            Arc::new(tool)
        };
        self.tools.get_or_init(|| toold_tools::native().into_iter().map(with_state).collect())
    }
}

impl Provider for Native {
    fn name(&self) -> &str {
        NATIVE_PROVIDER
    }

    fn tools(&self) -> Vec<Arc<Tool>> {
        self.listed().to_vec()
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.listed().iter().find(|tool| tool.name == name).cloned()
    }

    fn invoke(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, Result<Value, RpcError>> {
        async move {
            let done = match invocation.tool.as_str() {
                "terminal" => self.terminal(&invocation, StdinMode::Null).await,
                "read_file" => self.read_file(&invocation).await,
                "write_file" => self.write_file(&invocation).await,
                "search_files" => self.search_files(&invocation).await,
                "patch" => self.patch(&invocation).await,
                "web_search" => self.web_search(&invocation).await,
                "web_extract" => self.web_extract(&invocation).await,
                other => Err(RpcError::new(ErrorKind::Unavailable, format!("{other} is not available"))),
            };
            done.map_err(|error| with_pointer(error, &invocation))
        }
        .boxed()
    }

    fn cancel(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, ()> {
        async move {
            if invocation.tool == "terminal" {
                self.cancel_terminal(&invocation).await;
            }
        }
        .boxed()
    }
}

/// Adds the place of the argument that what runs the tool refuses: a pattern that does not parse, a file that is a directory.
fn with_pointer(error: RpcError, invocation: &Invocation) -> RpcError {
    if error.kind() != Some(ErrorKind::InvalidParams) || error.data.contains_key("pointer") {
        return error;
    }
    let argument = match (invocation.tool.as_str(), error.data.get("param").and_then(Value::as_str)) {
        ("terminal", Some("cwd")) => "workdir",
        ("patch", Some("old")) => "old_string",
        ("patch", Some("new")) => "new_string",
        ("search_files", Some("glob")) => "file_glob",
        (_, Some(param)) => param,
        (_, None) => return error,
    };
    let pointer = invocation.args.get(argument).is_some().then(|| format!("/{argument}"));
    match pointer {
        Some(pointer) => error.with("pointer", pointer),
        None => error,
    }
}

/// Reads arguments that fit their schema.
fn parse<T: DeserializeOwned>(args: &Value) -> Result<T, RpcError> {
    T::deserialize(args).map_err(|e| RpcError::param("args", e))
}
