//! Calls on the daemon's own socket by processes of a script. Without a sandbox nothing keeps them from connecting, so they have
//! the authority of the script there too: its tools, its budget, its journal. That stops accidents; a wall is only a sandbox.

use super::Scripts;
use crate::proc::Proc;
use crate::tools::direct::DirectCall;
use crate::tools::dispatcher::CallRequest;
use crate::tools::journal::CallOutcome;
use crate::tools::owner::{AllowedTools, Begin, Owner, retired};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use toold_proto::tools::{ToolsCallParams, Toolset};
use toold_proto::{ErrorKind, RpcError};

/// Numbers the calls that have no id of their own.
#[derive(Default)]
pub struct InsideCalls(AtomicU64);

/// The right that a script needs for a method.
#[derive(Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Tool(&'static str),
    /// No script has it.
    Denied,
}

/// Returns the right that a method needs. A method that is not listed here is refused, so that a new one is not open by accident.
fn needs(method: &str) -> Needs {
    match method {
        "exec" | "restart" | "write" | "submit" | "close" | "resize" | "signal" | "kill" | "pause" | "resume" => {
            Needs::Tool("terminal")
        }
        "fs.read" => Needs::Tool("read_file"),
        "fs.write" => Needs::Tool("write_file"),
        "fs.edit" | "patch.apply" | "patch.revert" => Needs::Tool("patch"),
        "fs.list" | "fs.search" => Needs::Tool("search_files"),
        "poll" | "log" | "wait" | "list" | "inspect" | "screen" | "session.active" | "session.get" | "daemon.info"
        | "rpc.discover" | "tools.list" | "tools.call" | "script.result" | "script.calls" | "queues.list"
        | "policy.check" | "policy.suggest" | "sandbox.probe" | "stage.diff" => Needs::Nothing,
        _ if method.starts_with("events.") => Needs::Nothing,
        _ => Needs::Denied,
    }
}

/// Refuses a toolset: its texts are for models, and a script has the tools under their own names.
pub fn check_toolset(toolset: Toolset) -> Result<(), RpcError> {
    if toolset == Toolset::Toold {
        return Ok(());
    }
    let message = "denied: a script has the tools under their own names; leave `toolset` out";
    Err(RpcError::new(ErrorKind::Denied, message).with("reason", "inside_script"))
}

impl Scripts {
    /// Prepares a call of a tool that a process of a script makes on the socket.
    pub fn prepare_call(&self, proc: &Proc, call: ToolsCallParams) -> Result<DirectCall, RpcError> {
        let Some(live) = self.live(proc.spec.id) else { return Err(retired()) };
        check_toolset(call.toolset)?;
        let id = match &call.request_id {
            // Plain, and distinct from the ids of the channel.
            Some(id) => format!("socket-{:016x}", toold_format::fnv1a(id.as_bytes())),
            None => format!("socket-{}-{}", std::process::id(), self.inside.0.fetch_add(1, Relaxed)),
        };
        let (args, cell) = (serde_json::Value::Object(call.args), live.owner.present_cell());
        let request =
            CallRequest { id, name: call.name, toolset: Toolset::Toold, args, timeout_ms: call.timeout_ms, cell };
        Ok(DirectCall { owner: live.owner.clone(), request })
    }

    /// Refuses a call of a method by a process of this script, if that may not make it. A call that needs a tool counts as one.
    pub fn authorize(&self, proc: &Proc, method: &str) -> Result<(), RpcError> {
        let tool = match needs(method) {
            Needs::Nothing => return Ok(()),
            Needs::Tool(tool) => tool,
            Needs::Denied => {
                let message = format!("{method} is denied: a script may not call it");
                let error = RpcError::new(ErrorKind::Denied, message).with("reason", "inside_script");
                return Err(error.with("process", proc.spec.id.to_string()));
            }
        };
        let Some(live) = self.live(proc.spec.id) else { return Err(retired()) };
        let owner: &Owner = &live.owner;
        if let AllowedTools::Only(names) = &owner.tools
            && !names.iter().any(|name| name == tool)
        {
            owner.note_refusal(tool, "denied", 0);
            let message = format!("{method} is denied: the script may not use {tool}");
            return Err(RpcError::new(ErrorKind::Denied, message).with("reason", "not_allowed").with("tool", tool));
        }
        let call = format!("socket-{}-{}", std::process::id(), self.inside.0.fetch_add(1, Relaxed));
        let accepted = owner.accept(&call, tool, &json!({ "method": method }), owner.present_cell());
        match accepted {
            Ok(Begin::Run { .. }) => {
                owner.end(&call, &Arc::new(CallOutcome::Result(json!({ "method": method }))), None);
                Ok(())
            }
            Ok(Begin::Attach(_) | Begin::Answered(_)) => Ok(()),
            Err(error) => {
                owner.note_refusal(tool, error.kind().map_or("internal", ErrorKind::name), 0);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toold_proto::api::METHODS;

    #[test]
    fn a_script_may_not_start_scripts_decide_or_serve_tools() {
        for method in METHODS.iter().map(|method| method.name) {
            let is_denied = needs(method) == Needs::Denied;
            let is_reserved =
                ["script.run", "script.cancel", "kernel.", "agent.", "approvals.", "grants.", "tools.register"];
            if is_reserved.iter().any(|start| method.starts_with(start)) {
                assert!(is_denied, "{method}");
            }
        }
        assert_eq!(needs("exec"), Needs::Tool("terminal"));
        assert_eq!(needs("daemon.shutdown"), Needs::Denied);
        assert_eq!(needs("a.method.of.tomorrow"), Needs::Denied);
    }
}
