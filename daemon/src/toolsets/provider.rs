//! The provider of a toolset: checks and runs its calls.

use super::Toolsets;
use super::answer::{ToolsetAnswer, error_for_model, is_result};
use crate::tools::provider::{Invocation, Provider};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};
use toold_proto::RpcError;
use toold_proto::params::StdinMode;
use toold_proto::tools::{Tool, Toolset};
use toold_tools::toolset::hermes::{self, HermesCall};
use toold_tools::{CallError, Mismatch, NATIVE_PROVIDER, ToolsetCall, parse, schema, toolset};

pub(super) struct ToolsetProvider {
    toolset: Toolset,
    toolsets: Arc<Toolsets>,
    /// Made at the first use.
    tools: OnceLock<Vec<Arc<Tool>>>,
}

impl ToolsetProvider {
    pub fn new(toolset: Toolset, toolsets: Arc<Toolsets>) -> ToolsetProvider {
        ToolsetProvider { toolset, toolsets, tools: OnceLock::new() }
    }

    fn listed(&self) -> &[Arc<Tool>] {
        self.tools.get_or_init(|| {
            let native: Vec<Tool> = self.toolsets.native.tools().iter().map(|tool| (**tool).clone()).collect();
            // The tools of scripts are only in a description, and `tools.list` makes its own.
            toolset(self.toolset, &native, &[]).into_iter().map(Arc::new).collect()
        })
    }

    async fn run(&self, invocation: &Invocation) -> Result<ToolsetAnswer, RpcError> {
        let args = object(&invocation.args);
        let call = parse(self.toolset, &invocation.tool, args).map_err(|e| RpcError::param("args", e))?;
        match call {
            ToolsetCall::Codex(call) => self.toolsets.codex(call, invocation).await,
            ToolsetCall::Hermes(HermesCall::Process(call)) => self.toolsets.process(call, invocation).await,
            ToolsetCall::Hermes(HermesCall::ExecuteCode { code }) => self.toolsets.execute_code(code, invocation).await,
            ToolsetCall::Tool { name, args } => {
                let is_terminal = name == "terminal";
                let call = Invocation { tool: name, args: args.into(), ..invocation.clone() };
                let native = self.toolsets.native.clone();
                Ok(ToolsetAnswer::new(match is_terminal {
                    // `process` can write to what runs in the background.
                    true => hermes::terminal(&native.terminal(&call, StdinMode::Pipe).await?),
                    false => native.invoke(call).await?,
                }))
            }
        }
    }
}

impl Provider for ToolsetProvider {
    fn name(&self) -> &str {
        NATIVE_PROVIDER
    }

    fn tools(&self) -> Vec<Arc<Tool>> {
        self.listed().to_vec()
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        let listed = self.listed().iter().find(|tool| tool.name == name)?;
        // One that is native is as ready as it is now.
        let native = self.toolsets.native.tool(name).filter(|_| self.toolset == Toolset::Hermes);
        Some(native.unwrap_or_else(|| listed.clone()))
    }

    fn check(&self, tool: &Tool, args: &Value) -> Result<(), Mismatch> {
        match parse(self.toolset, &tool.name, object(args)) {
            Ok(ToolsetCall::Tool { .. }) => schema::check(&tool.input_schema, args),
            // A tool that is listed is known.
            Ok(ToolsetCall::Codex(_) | ToolsetCall::Hermes(_)) | Err(CallError::UnknownTool) => Ok(()),
            Err(CallError::Arguments(mismatch)) => Err(mismatch),
        }
    }

    fn ends_itself(&self, tool: &str) -> bool {
        // The others are native, and have their limits.
        self.toolset == Toolset::Codex || matches!(tool, "process" | "execute_code")
    }

    fn invoke(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, Result<Value, RpcError>> {
        async move {
            let answer = match self.run(&invocation).await {
                Err(error) if is_result(&error) => {
                    ToolsetAnswer::new(error_for_model(self.toolset, &invocation.tool, &error))
                }
                other => other?,
            };
            answer.print()
        }
        .boxed()
    }

    fn cancel(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, ()> {
        async move {
            match (self.toolset, invocation.tool.as_str()) {
                // Its caller has no number of the session, so no caller could end it.
                (Toolset::Codex, "exec_command" | "shell" | "shell_command") => {
                    self.toolsets.native.cancel_command(&invocation).await;
                }
                (Toolset::Hermes, "execute_code") => self.toolsets.cancel_code(&invocation).await,
                (Toolset::Hermes, "process") | (Toolset::Codex, _) => {}
                (Toolset::Hermes | Toolset::Toold, _) => self.toolsets.native.clone().cancel(invocation).await,
            }
        }
        .boxed()
    }
}

fn object(args: &Value) -> Map<String, Value> {
    args.as_object().cloned().unwrap_or_default()
}
