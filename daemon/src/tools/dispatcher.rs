//! The dispatcher: every call of a tool goes through it, of scripts, kernels and clients of the socket. Allow-list, budget,
//! verdict, journal, provider, journal, answer.

use super::call_events::{CallEvents, EndedScriptCall};
use super::journal::CallOutcome;
use super::owner::{AllowedTools, Begin, Owner, OwnerFacts};
use super::provider::{Invocation, Provider, Resumed};
use super::providers::Providers;
use super::running_call::{Cancel, Running};
use super::verdict::Verdicts;
use crate::call_clock::{CallClock, ScriptCall};
use crate::disk::on_disk;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;
use toold_proto::script::ResultFile;
use toold_proto::tools::{Effect, Tool, ToolState, Toolset};
use toold_proto::{ErrorKind, RpcError};

/// One call, as its caller makes it.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The caller's own id of the call. The same one again is the same call.
    pub id: String,
    pub name: String,
    /// The toolset of the name.
    pub toolset: Toolset,
    pub args: Value,
    pub timeout_ms: Option<u64>,
    /// The cell of a kernel. 0: none.
    pub cell: u64,
}

impl CallRequest {
    /// Returns the tool for the journal. A tool of a toolset is not the native one of the same name.
    fn journal_name(&self) -> Cow<'_, str> {
        match self.toolset {
            Toolset::Toold => self.name.as_str().into(),
            Toolset::Hermes => format!("hermes/{}", self.name).into(),
            Toolset::Codex => format!("codex/{}", self.name).into(),
        }
    }
}

/// Dispatches calls to providers.
pub struct Dispatcher {
    pub providers: Arc<Providers>,
    /// The tools that a script gets which asks for none.
    pub script_tools: Vec<String>,
    /// The time of a call whose tool has none of its own. None: no limit.
    pub call_timeout_ms: Option<u64>,
    pub verdicts: Arc<Verdicts>,
    pub call_events: Arc<CallEvents>,
}

impl Dispatcher {
    /// Makes a call and waits for its outcome. A call goes on if its caller stops waiting.
    pub async fn call(self: &Arc<Self>, owner: &Arc<Owner>, request: CallRequest) -> Arc<CallOutcome> {
        match self.start(owner, request).await {
            Ok(Begin::Answered(outcome)) => outcome,
            Ok(Begin::Attach(running)) => finished(running.done).await,
            // `start` runs it itself.
            Ok(Begin::Run { .. }) => Arc::new(CallOutcome::Error(lost())),
            Err(error) => Arc::new(CallOutcome::Error(error)),
        }
    }

    /// Starts a call, or finds it: its answer, or the run that will answer it.
    pub async fn start(self: &Arc<Self>, owner: &Arc<Owner>, mut request: CallRequest) -> Result<Begin, RpcError> {
        let refuse = |error: RpcError, owner: &Owner, request: &CallRequest| {
            let kind = error.kind().map_or("internal", ErrorKind::name);
            owner.note_refusal(&request.journal_name(), kind, request.cell);
            error
        };
        if let Some(known) = owner.known(&request.id, &request.journal_name(), &request.args)? {
            return Ok(known);
        }
        let checked = self.check(owner, &mut request).await;
        let (provider, tool) = checked.map_err(|error| refuse(error, owner, &request))?;
        let accepted = owner.accept(&request.id, &request.journal_name(), &request.args, request.cell);
        match accepted.map_err(|error| refuse(error, owner, &request))? {
            Begin::Run { resumed, done, cancel } => {
                let running = Running { done: done.subscribe(), cancel: cancel.clone() };
                let (verdicts, call_events) = (self.verdicts.clone(), self.call_events.clone());
                let run = Run { owner: owner.clone(), provider, verdicts, call_events, tool, request, resumed, cancel };
                let reads = run.tool.effect == Effect::Read;
                let mut finish = Box::pin(on_disk(run.finish(done)));
                // A read that waits for nothing ends here: to hand it to a task would cost more than it does.
                let is_done = reads && poll_fn(|context| Poll::Ready(finish.as_mut().poll(context).is_ready())).await;
                if !is_done {
                    tokio::spawn(finish);
                }
                Ok(Begin::Attach(running))
            }
            known => Ok(known),
        }
    }

    /// Finds the tool of a call, and checks that the caller may use it and that the arguments fit.
    async fn check(
        &self,
        owner: &Owner,
        request: &mut CallRequest,
    ) -> Result<(Arc<dyn Provider>, Arc<Tool>), RpcError> {
        if owner.is_retired() {
            return Err(super::owner::retired());
        }
        if let AllowedTools::Only(names) = &owner.tools
            && !names.contains(&request.name)
        {
            return Err(not_allowed(&request.name, names));
        }
        let session_key = owner.scope.session_key.as_deref();
        let found = match self.providers.find_in(request.toolset, &request.name, session_key).await {
            Some(found) => Some(found),
            None => match self.returning(owner, request).await? {
                Returning::Resumed(provider, tool) => return Ok((provider, tool)),
                Returning::Back(provider, tool) => Some((provider, tool)),
                Returning::Unknown => None,
            },
        };
        let Some((provider, tool)) = found else {
            return Err(match self.providers.trouble(&request.name, session_key) {
                Some(why) => RpcError::new(ErrorKind::Unavailable, format!("{} is not available: {why}", request.name)),
                None => no_tool(request),
            });
        };
        if tool.state == ToolState::Unavailable && !provider.waits() {
            let why = tool.why.clone().unwrap_or_else(|| "its provider is gone".into());
            return Err(RpcError::new(ErrorKind::Unavailable, format!("{} is not available: {why}", tool.name)));
        }
        provider.check(&tool, &request.args).map_err(|wrong| {
            let place = if wrong.pointer.is_empty() { "args".to_owned() } else { format!("args{}", wrong.pointer) };
            RpcError::param(&place, &wrong.problem).with("pointer", wrong.pointer.clone())
        })?;
        // One that an earlier daemon accepted may have its answer.
        if !owner.has_accepted(&request.id) {
            self.verdicts.refuse(owner, &tool, request)?;
        }
        Ok((provider, tool))
    }

    /// Finds the provider of a tool that the caller was given before and that is not there now.
    async fn returning(&self, owner: &Owner, request: &CallRequest) -> Result<Returning, RpcError> {
        let Some(provider) = self.providers.expect(&request.name, owner.scope.session_key.as_deref()) else {
            return Ok(Returning::Unknown);
        };
        if owner.has_accepted(&request.id) {
            // Its arguments were checked when it was accepted, and its provider decides by the facts of the call.
            let tool = expected_tool(&request.name, provider.name());
            return Ok(Returning::Resumed(provider, Arc::new(tool)));
        }
        if !matches!(&owner.tools, AllowedTools::Only(_)) {
            return Ok(Returning::Unknown);
        }
        provider.clone().load().await;
        match provider.tool(&request.name) {
            Some(tool) => Ok(Returning::Back(provider, tool)),
            None => {
                let message = format!("{} is not available: no client serves it now; nothing was sent", request.name);
                Err(RpcError::new(ErrorKind::Unavailable, message).with("tool", request.name.as_str()))
            }
        }
    }

    /// Cancels one call of an owner, and waits until it has ended. Returns false if it does not run.
    pub async fn cancel(&self, owner: &Owner, call: &str, reason: RpcError) -> bool {
        let Some(running) = owner.running(call) else { return false };
        running.cancel.request(reason);
        finished(running.done).await;
        true
    }
}

/// A provider that was not there.
enum Returning {
    /// It may come back for this call, which an earlier daemon accepted. The tool has only its name.
    Resumed(Arc<dyn Provider>, Arc<Tool>),
    Back(Arc<dyn Provider>, Arc<Tool>),
    Unknown,
}

/// Describes a tool of which only the name is known.
fn expected_tool(name: &str, provider: &str) -> Tool {
    Tool {
        name: name.into(),
        provider: provider.into(),
        description: String::new(),
        input_schema: Value::Bool(true),
        output_schema: None,
        effect: Effect::Write,
        idempotent: false,
        parallel: true,
        timeout_ms: None,
        state: ToolState::Unavailable,
        why: None,
    }
}

/// Cancels calls, and waits until all have ended. Returns their ids.
pub async fn cancel_all(calls: Vec<(String, Running)>, reason: &RpcError) -> Vec<String> {
    calls.iter().for_each(|(_, running)| running.cancel.request(reason.clone()));
    let mut ids = Vec::with_capacity(calls.len());
    for (id, running) in calls {
        finished(running.done).await;
        ids.push(id);
    }
    ids
}

/// Waits for the outcome of a call.
pub async fn finished(mut done: watch::Receiver<Option<Arc<CallOutcome>>>) -> Arc<CallOutcome> {
    match done.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone().unwrap_or_else(|| Arc::new(CallOutcome::Error(lost()))),
        Err(_) => Arc::new(CallOutcome::Error(lost())),
    }
}

fn lost() -> RpcError {
    RpcError::new(ErrorKind::Internal, "the call failed inside toold; its log has the reason")
}

fn no_tool(request: &CallRequest) -> RpcError {
    let place = match request.toolset {
        Toolset::Toold => "",
        Toolset::Hermes => " in the toolset hermes",
        Toolset::Codex => " in the toolset codex",
    };
    RpcError::param("name", format!("there is no tool {:?}{place}; tools.list lists them", request.name))
}

fn not_allowed(name: &str, names: &[String]) -> RpcError {
    let list = if names.is_empty() { "it may use none".to_owned() } else { format!("it may use {}", names.join(", ")) };
    let message = format!("{name} is denied: the script may not use it; {list}");
    RpcError::new(ErrorKind::Denied, message).with("reason", "not_allowed").with("tool", name)
}

/// A call that was accepted.
struct Run {
    owner: Arc<Owner>,
    provider: Arc<dyn Provider>,
    verdicts: Arc<Verdicts>,
    call_events: Arc<CallEvents>,
    tool: Arc<Tool>,
    request: CallRequest,
    resumed: Option<Resumed>,
    cancel: Arc<Cancel>,
}

impl Run {
    /// Runs the call, records its end, then publishes the outcome.
    async fn finish(self, done: watch::Sender<Option<Arc<CallOutcome>>>) {
        let outcome = Arc::new(match self.run().await {
            Ok(result) => self.bounded(result),
            Err(error) if self.is_refusal(&error) => CallOutcome::Refused(error),
            Err(error) => CallOutcome::Error(error),
        });
        let process = process_of(&outcome);
        let ms = self.owner.end(&self.request.id, &outcome, process);
        if let Some(script) = self.owner.script {
            let (call, tool) = (self.request.id.as_str(), self.tool.name.as_str());
            self.call_events.publish(&EndedScriptCall { script, call, tool, ms, outcome: &outcome });
        }
        done.send_replace(Some(outcome));
    }

    /// Returns true if a verdict refused the call: what runs a native tool judges it. Neither the answer of a person nor
    /// a file that the kernel denies counts.
    fn is_refusal(&self, error: &RpcError) -> bool {
        let is_judged = self.tool.provider == toold_tools::NATIVE_PROVIDER && self.tool.effect != Effect::Network;
        let has = |key: &str| error.data.contains_key(key);
        is_judged
            && error.kind() == Some(ErrorKind::Denied)
            && has("reason")
            && !has("approval")
            && !has("errno")
            && error.data["reason"] != "retired"
    }

    async fn run(&self) -> Result<Value, RpcError> {
        let clock = CallClock::new(Some(self.owner.asking.clone()), self.script_call());
        let invocation = self.invocation();
        let permit = tokio::select! {
            permit = self.owner.parallel.acquire() => permit,
            () = self.cancel.notify.notified() => return Err(self.cancel.reason()),
        };
        let limit = invocation.timeout_ms.map(Duration::from_millis);
        let expired = async {
            match limit {
                Some(limit) => clock.expired(limit).await,
                None => std::future::pending().await,
            }
        };
        let call = clock.clone().scope(async {
            // What was sent was allowed: its grant may have ended since.
            if self.resumed.as_ref().is_none_or(|resumed| resumed.facts.is_none()) {
                self.verdicts.admit(&self.owner, &self.tool, &self.request).await?;
            }
            self.provider.clone().invoke(invocation.clone()).await
        });
        let stopped = tokio::select! {
            biased;
            result = call => return result,
            () = self.cancel.notify.notified() => self.cancel.reason(),
            () = expired => self.expired_error(invocation.timeout_ms.unwrap_or(0)),
        };
        // The effect ends before it is answered.
        self.verdicts.withdraw(&self.owner, &self.request.id).await;
        self.provider.clone().cancel(invocation.clone()).await;
        drop(permit);
        Err(stopped)
    }

    fn script_call(&self) -> Option<ScriptCall> {
        let script = self.owner.script?;
        let call = self.owner.unique(&self.request.id);
        Some(ScriptCall { script, call, tool: self.tool.name.clone(), args: self.request.args.clone() })
    }

    fn expired_error(&self, timeout_ms: u64) -> RpcError {
        let name = &self.tool.name;
        let message = format!("{name} took longer than {timeout_ms} ms and was ended; give it a longer timeout");
        RpcError::new(ErrorKind::Timeout, message)
            .with("timeout_ms", timeout_ms)
            .with("tool", name.as_str())
            .with("call", self.request.id.as_str())
    }

    fn invocation(&self) -> Invocation {
        let prefix = format!("{}.", self.tool.provider);
        let facts = OwnerFacts { owner: self.owner.clone(), call: self.request.id.clone() };
        Invocation {
            call: self.owner.unique(&self.request.id),
            tool: self.tool.name.strip_prefix(&prefix).unwrap_or(&self.tool.name).to_owned(),
            args: self.request.args.clone(),
            scope: self.owner.scope.clone(),
            script: self.owner.script,
            files_dir: self.owner.result_dir.clone(),
            by: self.owner.by.clone(),
            timeout_ms: self.timeout_ms(),
            resumed: self.resumed.clone(),
            facts: Arc::new(facts),
        }
    }

    fn timeout_ms(&self) -> Option<u64> {
        let ends_itself = self.provider.ends_itself(&self.tool.name);
        let default_ms = self.owner.bounds.call_timeout_ms.filter(|_| !ends_itself);
        self.request.timeout_ms.or(self.tool.timeout_ms).or(default_ms)
    }

    /// Returns a result that fits, or the file that has it.
    fn bounded(&self, result: Value) -> CallOutcome {
        let max = self.owner.bounds.max_result_bytes;
        let text = match serde_json::to_vec(&result) {
            Ok(text) if text.len() as u64 <= max => return CallOutcome::Result(result),
            Ok(text) => text,
            Err(e) => return CallOutcome::Error(RpcError::new(ErrorKind::Internal, format!("print the result: {e}"))),
        };
        let too_long = |more: String| {
            let message = format!("the result of {} has {} bytes, more than {max}{more}", self.tool.name, text.len());
            CallOutcome::Error(RpcError::limit("script.max_result_bytes", message).with("bytes", text.len()))
        };
        let Some(dir) = &self.owner.result_dir else { return too_long(String::new()) };
        let path = dir.join(format!("{}.json", self.request.id));
        if let Err(e) = std::fs::create_dir_all(dir).and_then(|()| std::fs::write(&path, &text)) {
            return too_long(format!(", and cannot be written to {}: {e}", path.display()));
        }
        let sha256 = format!("{:x}", Sha256::digest(&text));
        CallOutcome::File(ResultFile { path: path.to_string_lossy().into_owned(), bytes: text.len() as u64, sha256 })
    }
}

/// Returns the process that a call has started.
fn process_of(outcome: &CallOutcome) -> Option<String> {
    let process = match outcome {
        CallOutcome::Result(result) => result.get("process")?,
        CallOutcome::Error(error) => error.data.get("process")?,
        CallOutcome::File(_) | CallOutcome::Refused(_) => return None,
    };
    process.as_str().map(String::from)
}
