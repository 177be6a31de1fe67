//! One call of a client's tool: sent, and sent again only if that cannot have another effect. It ends with an answer, with
//! `unavailable` if nothing was sent, or with `outcome_unknown`.

use super::answer::read_answer;
use super::link::{LinkRequest, SendError};
use super::registration::DEFAULT_RECONNECT_MS;
use super::{ClientProviders, LiveProvider};
use crate::clock::wall_ms;
use crate::disk::on_disk;
use crate::tools::provider::Invocation;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use toold_proto::time::rfc3339;
use toold_proto::tools::{TOOLS_INVOKE, ToolsInvokeParams};
use toold_proto::{ErrorKind, RpcError};

/// The most times that a call is given to a client. A tool that ends its client each time would be repeated for ever.
const MAX_ATTEMPTS: usize = 5;

/// The facts about a call that was sent. A later daemon finds them in the call's journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SentFacts {
    /// The time of the first sending.
    sent_at: String,
    /// The tool was idempotent then. None: facts without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotent: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reconnect_ms: Option<u64>,
}

/// The result of one attempt.
enum Attempt {
    Ended(Result<Value, RpcError>),
    /// The client had gone before the call was sent.
    NotSent,
    /// The client went after that.
    Lost(SentFacts),
}

/// A call on its way.
pub(super) struct ClientCall {
    providers: Arc<ClientProviders>,
    provider: String,
    invocation: Invocation,
    /// The time at which the dispatcher ends it, in milliseconds since 1970.
    deadline_ms: Option<u64>,
    /// None: it was never sent.
    sent: Option<SentFacts>,
}

impl ClientCall {
    pub fn new(providers: Arc<ClientProviders>, provider: &str, invocation: Invocation) -> ClientCall {
        let deadline_ms = invocation.timeout_ms.map(|left| wall_ms().saturating_add(left));
        let facts = invocation.resumed.as_ref().and_then(|resumed| resumed.facts.as_ref());
        let sent = facts.map(|facts| {
            // Facts that cannot be read were written all the same: it was sent.
            let unreadable = || SentFacts { sent_at: String::new(), idempotent: Some(false), reconnect_ms: None };
            SentFacts::deserialize(facts).unwrap_or_else(|_| unreadable())
        });
        ClientCall { providers, provider: provider.into(), invocation, deadline_ms, sent }
    }

    pub async fn run(mut self) -> Result<Value, RpcError> {
        for _ in 0..MAX_ATTEMPTS {
            if let Some(SentFacts { idempotent: Some(false), .. }) = self.sent {
                return Err(self.unknown("its client went before it answered"));
            }
            let live = self.wait_for_client().await?;
            let Some(tool) = live.registration.tool(&self.invocation.tool) else {
                return Err(self.without_tool());
            };
            let (idempotent, parallel) = (tool.idempotent, tool.parallel);
            if self.sent.is_some() && !idempotent {
                return Err(self.unknown("its client went before it answered"));
            }
            let turn = self.turn(&live, parallel).await;
            match self.attempt(&live, idempotent).await {
                Attempt::Ended(result) => return result,
                Attempt::NotSent => {}
                Attempt::Lost(sent) => self.sent = Some(sent),
            }
            drop(turn);
        }
        let why = format!("its client went {MAX_ATTEMPTS} times while it had the call");
        Err(match self.sent {
            Some(_) => self.unknown(&why),
            None => self.unavailable(&format!("the client went {MAX_ATTEMPTS} times before the call could be sent")),
        })
    }

    /// Waits until the client is connected, for a bounded time.
    async fn wait_for_client(&self) -> Result<LiveProvider, RpcError> {
        let wait = self.reconnect();
        let back = self.providers.until_live(&self.provider, self.session_key());
        if let Ok(live) = tokio::time::timeout(wait, back).await {
            return Ok(live);
        }
        let why = format!("its client is not connected and did not come back within {} ms", wait.as_millis());
        Err(match self.sent {
            Some(_) => self.unknown(&why),
            None => self.unavailable(&why),
        })
    }

    /// Returns the time for which the call waits for its client.
    fn reconnect(&self) -> Duration {
        let sent = self.sent.as_ref().and_then(|sent| sent.reconnect_ms).map(Duration::from_millis);
        let registered = || self.providers.registration(&self.provider).map(|registration| registration.reconnect);
        sent.or_else(registered).unwrap_or(Duration::from_millis(DEFAULT_RECONNECT_MS))
    }

    /// Waits until no other call of the tool runs, if its calls run one after the other. The end of the client ends those too.
    async fn turn(&self, live: &LiveProvider, parallel: bool) -> Option<OwnedSemaphorePermit> {
        if parallel {
            return None;
        }
        let turn = self.providers.turn(&self.provider, live.generation, &self.invocation.tool)?;
        tokio::select! {
            biased;
            permit = turn.acquire_owned() => permit.ok(),
            () = self.providers.left(&self.provider, live.generation) => None,
        }
    }

    /// Sends the call and waits for its answer, or for the end of the client.
    async fn attempt(&self, live: &LiveProvider, idempotent: bool) -> Attempt {
        let sent_at = Arc::new(OnceLock::new());
        let request = self.request(live, idempotent, sent_at.clone());
        let gone = || self.providers.left(&self.provider, live.generation);
        // The facts are written to a file.
        let sent = tokio::select! {
            biased;
            sent = on_disk(live.link.send(request)) => sent,
            () = gone() => return Attempt::NotSent,
        };
        let pending = match sent {
            Ok(pending) => pending,
            Err(SendError::Closed) => {
                self.providers.on_closed(&self.provider, live.generation);
                return Attempt::NotSent;
            }
            Err(SendError::Refused(e)) if self.sent.is_some() => {
                return Attempt::Ended(Err(self.unknown(&format!("it cannot be sent again: {e}"))));
            }
            Err(SendError::Refused(e)) => {
                let message = format!("record the call before it is sent: {e}; nothing was sent");
                return Attempt::Ended(Err(RpcError::new(ErrorKind::Internal, message)));
            }
        };
        let _counted = live.in_flight.enter();
        let answer = tokio::select! {
            biased;
            answer = pending => answer.ok(),
            () = gone() => None,
        };
        match answer {
            Some(answer) => Attempt::Ended(read_answer(answer, &self.provider, &self.invocation.tool)),
            None => {
                self.providers.on_closed(&self.provider, live.generation);
                Attempt::Lost(SentFacts {
                    sent_at: sent_at.get().cloned().unwrap_or_default(),
                    idempotent: Some(idempotent),
                    reconnect_ms: Some(live.registration.reconnect.as_millis() as u64),
                })
            }
        }
    }

    fn request(&self, live: &LiveProvider, idempotent: bool, sent_at: Arc<OnceLock<String>>) -> LinkRequest {
        let Invocation { call, tool, args, scope, facts, .. } = &self.invocation;
        let params = ToolsInvokeParams {
            call: call.to_string(),
            name: tool.clone(),
            args: args.as_object().cloned().unwrap_or_default(),
            session_key: scope.session_key.clone(),
            task_id: scope.task_id.clone(),
            deadline: self.deadline_ms.map(rfc3339),
        };
        let (facts, first) = (facts.clone(), self.sent.as_ref().map(|sent| sent.sent_at.clone()));
        let reconnect_ms = live.registration.reconnect.as_millis() as u64;
        let before = move || {
            let at = sent_at.get_or_init(|| first.unwrap_or_else(|| rfc3339(wall_ms())));
            facts.record(json!({ "sent_at": at, "idempotent": idempotent, "reconnect_ms": reconnect_ms }))
        };
        LinkRequest {
            call: call.clone(),
            method: TOOLS_INVOKE,
            params: serde_json::to_value(params).unwrap_or_default(),
            before: Box::new(before),
        }
    }

    fn session_key(&self) -> Option<&str> {
        self.invocation.scope.session_key.as_deref()
    }

    fn tool(&self) -> String {
        format!("{}.{}", self.provider, self.invocation.tool)
    }

    /// Returns the error of a call that may have happened.
    fn unknown(&self, why: &str) -> RpcError {
        let tool = self.tool();
        let message = format!("the call of {tool} may have happened: {why}; look before you repeat it");
        let sent_at = self.sent.as_ref().map(|sent| sent.sent_at.clone());
        RpcError::new(ErrorKind::OutcomeUnknown, message)
            .with("sent_at", sent_at)
            .with("tool", tool)
            .with("call", &*self.invocation.call)
    }

    /// Returns the error of a call of which nothing was sent.
    fn unavailable(&self, why: &str) -> RpcError {
        let tool = self.tool();
        RpcError::new(ErrorKind::Unavailable, format!("{tool}: {why}; nothing was sent"))
            .with("tool", tool)
            .with("call", &*self.invocation.call)
    }

    fn without_tool(&self) -> RpcError {
        let why = "its client came back without the tool";
        if self.sent.is_some() { self.unknown(why) } else { self.unavailable("its client has no such tool any more") }
    }
}
