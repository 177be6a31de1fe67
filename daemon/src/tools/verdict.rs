//! The verdict on a call of a tool that nothing else judges: the tools of clients and MCP servers, which run outside the sandbox
//! of their caller, and the web tools. Commands, files and patches are judged where they are run.

use super::dispatcher::CallRequest;
use super::owner::Owner;
use super::providers::NATIVE;
use crate::approvals::{Approvals, ToolQuestion, ToolRefused};
use crate::call_error::not_approved;
use crate::config::policy::Profile;
use crate::policy::{Judge, JudgedCaller, RefusedCall};
use crate::sandbox::SandboxError;
use crate::sandbox::profile::{ProfileError, choose};
use std::sync::Arc;
use toold_policy::ApprovalMode;
use toold_proto::approval::{ApprovalKind, Why};
use toold_proto::params::ExecParams;
use toold_proto::sandbox::{Network, ProfileMode};
use toold_proto::tools::{Effect, Tool};
use toold_proto::{ErrorKind, RpcError};
use toold_shim::hooks;

/// Judges calls of tools, and asks a person about those that need one.
pub struct Verdicts {
    approvals: Arc<Approvals>,
    judge: Arc<Judge>,
}

/// A question that a call needs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ask {
    kind: ApprovalKind,
    why: Vec<Why>,
}

/// Judges a call of a tool. None: it is allowed, or judged by what runs it.
fn judge(tool: &Tool, mode: ApprovalMode, profile: &Profile) -> Option<Ask> {
    let is_native = tool.provider == NATIVE;
    let is_judged_here = if is_native { tool.effect == Effect::Network } else { tool.effect != Effect::Read };
    if !is_judged_here {
        return None;
    }
    let is_confined = profile.mode != ProfileMode::Full;
    let why = |label: &str, text: String| Why { label: label.into(), text };
    let mut reasons = Vec::new();
    if is_native && is_confined && profile.network != Network::Full {
        let network = if profile.network == Network::Off { "off" } else { "loopback" };
        reasons.push(why("right", format!("{} uses the network, which is {network} in its profile", tool.name)));
    } else if !is_native && is_confined {
        reasons.push(why("right", format!("{} runs outside the sandbox of its caller", tool.name)));
    }
    if mode == ApprovalMode::Untrusted {
        reasons.push(why("policy", format!("the policy `untrusted` asks about {}", tool.name)));
    }
    let kind = if is_native { ApprovalKind::Network } else { ApprovalKind::Tool };
    (!reasons.is_empty()).then_some(Ask { kind, why: reasons })
}

impl Verdicts {
    pub fn new(approvals: Arc<Approvals>, judge: Arc<Judge>) -> Verdicts {
        Verdicts { approvals, judge }
    }

    /// Refuses a call that would need a person where no person is asked. Nothing is recorded but the event.
    pub fn refuse(&self, owner: &Owner, tool: &Tool, request: &CallRequest) -> Result<(), RpcError> {
        let Some(ask) = self.question(owner, tool)? else { return Ok(()) };
        let (config, key) = (&self.approvals.registry.config, owner.scope.session_key.as_deref());
        let no_person = if self.judge.approval_mode(key, config) == ApprovalMode::Never {
            "approval is never, so a question is a refusal"
        } else if config.policy.approval_timeout_ms == 0 {
            "policy.approval_timeout_ms is 0, so a question is a refusal"
        } else {
            return Ok(());
        };
        let because = ask.why.iter().map(|why| why.text.as_str()).collect::<Vec<_>>().join("; ");
        let reason = format!("{because}; {no_person}");
        let caller = JudgedCaller { uid: owner.by.uid, pid: owner.by.pid };
        let what = format!("{} {}", tool.name, request.args);
        let (cwd, task_id) = (owner.scope.cwd.as_deref(), owner.scope.task_id.as_deref());
        self.judge.refuse_tool(&RefusedCall { what: &what, cwd, session_key: key, task_id }, &reason, caller);
        let message = format!("{} is denied: {reason}", tool.name);
        Err(RpcError::new(ErrorKind::Denied, message).with("reason", reason).with("tool", tool.name.as_str()))
    }

    /// Returns when a call may run. Waits for a person, if one must decide.
    pub async fn admit(&self, owner: &Owner, tool: &Tool, request: &CallRequest) -> Result<(), RpcError> {
        let Some(Ask { kind, why }) = self.question(owner, tool)? else { return Ok(()) };
        hooks::at("call.judged");
        let question = ToolQuestion {
            kind,
            why,
            tool: &tool.name,
            args: &request.args,
            session_key: owner.scope.session_key.clone(),
            task_id: owner.scope.task_id.clone(),
            request_id: request_id(&owner.unique(&request.id)),
            by: owner.by.clone(),
        };
        let allowed = self.approvals.ask_for_tool(question).await;
        let allowed = allowed.map_err(|refused| match refused {
            ToolRefused::Denied(approval) => {
                not_approved(&tool.name, &approval, "nothing was run").with("tool", tool.name.as_str())
            }
            ToolRefused::Lost => RpcError::new(ErrorKind::Denied, format!("the answer about {} is lost", tool.name)),
            ToolRefused::Ask(error) => error.into(),
        });
        hooks::at("call.admitted");
        allowed
    }

    /// Withdraws the question of a call that was ended.
    pub async fn withdraw(&self, owner: &Owner, call: &str) {
        self.approvals.withdraw_call(&request_id(&owner.unique(call))).await;
    }

    fn question(&self, owner: &Owner, tool: &Tool) -> Result<Option<Ask>, RpcError> {
        // Most calls are not judged here, and need no look at a profile.
        if tool.effect == Effect::Read || (tool.provider == NATIVE && tool.effect != Effect::Network) {
            return Ok(None);
        }
        let key = owner.scope.session_key.as_deref();
        let mode = self.judge.approval_mode(key, &self.approvals.registry.config);
        Ok(judge(tool, mode, &self.profile(owner)?))
    }

    /// Returns the profile of a caller, never wider than that of its session.
    fn profile(&self, owner: &Owner) -> Result<Profile, SandboxError> {
        let (config, scope) = (&self.approvals.registry.config, &owner.scope);
        let (session_key, sandbox) = (scope.session_key.clone(), scope.sandbox.clone());
        let mut call = ExecParams { session_key, sandbox, ..ExecParams::default() };
        let session = self.judge.apply_session(&mut call, config)?;
        match (choose(call.sandbox.as_ref(), config, session.ceiling.as_ref()), session.ceiling) {
            (Ok(chosen), _) => Ok(chosen.profile),
            // A rule gave the caller more than its session has. That was for commands.
            (Err(ProfileError::Wider { .. }), Some(ceiling)) => Ok(ceiling.profile),
            (Err(error), _) => Err(SandboxError::Profile(error)),
        }
    }
}

/// Returns the `request_id` of the question about a call.
fn request_id(call: &str) -> String {
    super::native::command::request_id(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(provider: &str, effect: Effect) -> Tool {
        let mut tool = toold_tools::native().into_iter().next().expect("a tool");
        (tool.provider, tool.effect) = (provider.into(), effect);
        tool
    }

    fn kind(provider: &str, effect: Effect, mode: ApprovalMode, profile: &Profile) -> Option<ApprovalKind> {
        judge(&tool(provider, effect), mode, profile).map(|ask| ask.kind)
    }

    #[test]
    fn tools_that_run_outside_a_sandbox_ask_and_readers_do_not() {
        let (free, confined) = (Profile::of_mode(ProfileMode::Full), Profile::of_mode(ProfileMode::ReadOnly));
        for effect in [Effect::Write, Effect::Exec, Effect::Network] {
            assert_eq!(kind("editor", effect, ApprovalMode::OnRequest, &free), None);
            assert_eq!(kind("editor", effect, ApprovalMode::OnRequest, &confined), Some(ApprovalKind::Tool));
            assert_eq!(kind("editor", effect, ApprovalMode::Untrusted, &free), Some(ApprovalKind::Tool));
        }
        for mode in [ApprovalMode::OnRequest, ApprovalMode::Untrusted] {
            assert_eq!(kind("editor", Effect::Read, mode, &confined), None);
            for effect in [Effect::Read, Effect::Write, Effect::Exec] {
                assert_eq!(kind(NATIVE, effect, mode, &confined), None, "it is judged by what runs it");
            }
        }
    }

    #[test]
    fn web_tools_ask_where_the_profile_has_no_network() {
        let network = |network| Profile { network, ..Profile::of_mode(ProfileMode::WorkspaceWrite) };
        let asks = |profile: &Profile, mode| kind(NATIVE, Effect::Network, mode, profile);
        assert_eq!(asks(&network(Network::Off), ApprovalMode::OnRequest), Some(ApprovalKind::Network));
        assert_eq!(asks(&network(Network::Loopback), ApprovalMode::OnFailure), Some(ApprovalKind::Network));
        assert_eq!(asks(&network(Network::Full), ApprovalMode::OnRequest), None);
        assert_eq!(asks(&network(Network::Full), ApprovalMode::Untrusted), Some(ApprovalKind::Network));
        assert_eq!(asks(&Profile::of_mode(ProfileMode::Full), ApprovalMode::Never), None);
    }
}
