//! The providers of tools: what runs a call. The dispatcher has judged, counted and journalled it before.

use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use toold_proto::RpcError;
use toold_proto::approval::Caller;
use toold_proto::sandbox::SandboxSetting;
use toold_proto::tools::Tool;
use toold_tools::{Mismatch, schema};

/// The owner of a call, for whom it is judged.
#[derive(Debug, Clone, Default)]
pub struct CallScope {
    pub session_key: Option<String>,
    pub task_id: Option<String>,
    /// Relative paths in arguments begin here.
    pub cwd: Option<String>,
    /// The profile of the script that calls. None: that of the session.
    pub sandbox: Option<SandboxSetting>,
}

/// Facts about a call that outlive the daemon, in its journal. Written with `write(2)`, not synced: a power cut ends the
/// caller too.
pub trait CallFacts: Send + Sync {
    /// Records facts before an effect. A later daemon finds the last ones in `Invocation::resumed`.
    fn record(&self, facts: Value) -> std::io::Result<()>;
}

/// One call of a tool, as its provider gets it.
#[derive(Clone)]
pub struct Invocation {
    /// Unique for ever and for all callers: `proc_0123456789ab/5f3a0c12-7`. The same call has the same one after a restart.
    pub call: Arc<str>,
    /// The name of the tool, without the name of its provider.
    pub tool: String,
    /// Checked against the schema.
    pub args: Value,
    pub scope: CallScope,
    /// The script that calls. None: a client of the socket.
    pub script: Option<toold_proto::ProcId>,
    /// The directory for files that belong to the caller. None: it has none.
    pub files_dir: Option<std::path::PathBuf>,
    /// The client on whose behalf it is made.
    pub by: Caller,
    /// The time that is left for it. None: no limit. The dispatcher enforces it, and calls `cancel`.
    pub timeout_ms: Option<u64>,
    /// The facts that an earlier daemon recorded before it ended without an answer. None: the call is new.
    pub resumed: Option<Resumed>,
    pub facts: Arc<dyn CallFacts>,
}

/// A call that an earlier daemon accepted and did not answer.
#[derive(Debug, Clone)]
pub struct Resumed {
    /// The time of its acceptance, in milliseconds since 1970.
    pub accepted_ms: u64,
    /// The last facts that the provider recorded. None: it recorded none, so that nothing was sent.
    pub facts: Option<Value>,
}

/// A source of tools.
pub trait Provider: Send + Sync {
    /// Returns `native`, or the name before the dot in the names of its tools.
    fn name(&self) -> &str;

    /// Returns its tools with their full names.
    fn tools(&self) -> Vec<Arc<Tool>>;

    /// Returns one of its tools by its full name.
    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    /// Checks the arguments of a call.
    fn check(&self, tool: &Tool, args: &Value) -> Result<(), Mismatch> {
        schema::check(&tool.input_schema, args)
    }

    /// Returns true if calls of this tool end by themselves: they have no time limit but one that their caller gives.
    fn ends_itself(&self, _tool: &str) -> bool {
        false
    }

    /// Returns true if a call of a tool that is not available waits for its provider to come back.
    fn waits(&self) -> bool {
        false
    }

    /// Learns its tools, if they are not known: starts a server that starts at its first use. A failure shows in `tools`.
    fn load(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Lists its tools again, if they are listed by another program.
    fn refresh(self: Arc<Self>) -> BoxFuture<'static, Result<(), RpcError>> {
        let message =
            format!("the tools of {} are those that it has registered; only MCP servers list them again", self.name());
        Box::pin(std::future::ready(Err(RpcError::param("provider", message))))
    }

    /// Returns the reason why its tools are not known.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Runs a call. The future may be dropped at any time; `cancel` follows then.
    fn invoke(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, Result<Value, RpcError>>;

    /// Ends a call whose future was dropped. Returns when its effect has ended, as far as that can be known.
    fn cancel(self: Arc<Self>, invocation: Invocation) -> BoxFuture<'static, ()>;
}
