//! Calls of tools of a server: each is sent once, and its answer is read from the log, by this daemon or the next one.
//!
//! Facts about a call are recorded before it is written: the process, the id of the request, and the end of the log. A later daemon
//! repeats the write, which its name makes harmless, and reads the log from there.

use super::launch;
use super::lines::{Line, LineSplitter};
use super::message::{self, object};
use super::result::{Answered, from_error, from_result};
use super::server::McpServer;
use super::session::{Reply, Session, read_reply};
use super::start::END_TIMEOUT;
use super::state_file::Era;
use super::tool_list;
use super::writer::{NotWritten, write_named};
use crate::clock::wall_ms;
use crate::proc::Proc;
use crate::proc::output::read_stream;
use crate::proc::state::State;
use crate::tools::provider::Invocation;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use toold_format::Stream;
use toold_proto::time::rfc3339;
use toold_proto::{ErrorKind, ProcId, RpcError};
use toold_shim::hooks;

/// Tries to send a call that reaches no server: each starts one.
const MAX_TRIES: usize = 3;
const PAGE_LEN: usize = 256 * 1024;

/// Facts about a call, recorded before it is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SentFacts {
    process: ProcId,
    request: String,
    /// The answer is in the log after this offset.
    cursor: u64,
    /// The time at which the server had all of it, in milliseconds since 1970. None: it may not have it.
    #[serde(default)]
    sent_ms: Option<u64>,
    /// It was sent to another process before.
    #[serde(default)]
    resent: bool,
}

/// The outcome of one try.
enum Attempt {
    Done(Result<Value, RpcError>),
    /// The server has not got it.
    Unsent,
    /// The server may have done it.
    Lost {
        why: String,
        process: ProcId,
        sent_ms: u64,
    },
}

impl McpServer {
    /// Makes a call, or continues one of an earlier daemon.
    pub async fn call(self: Arc<Self>, invocation: Invocation) -> Result<Value, RpcError> {
        let facts = invocation.resumed.as_ref().and_then(|resumed| resumed.facts.clone());
        let facts = facts.and_then(|facts| serde_json::from_value::<SentFacts>(facts).ok());
        let mut resent = facts.as_ref().is_some_and(|facts| facts.resent);
        let mut attempt = match facts {
            Some(facts) => self.resume(&invocation, facts).await,
            None => self.send(&invocation, resent).await,
        };
        let mut tries = 1;
        loop {
            match attempt {
                Attempt::Done(outcome) => return outcome,
                Attempt::Unsent if tries >= MAX_TRIES => {
                    let message = format!("mcp/{} ended {tries} times before it took the call", self.name);
                    return Err(RpcError::new(ErrorKind::Unavailable, message).with("server", self.name.as_str()));
                }
                Attempt::Unsent => {}
                Attempt::Lost { .. } if self.is_idempotent(&invocation.tool) && !resent => resent = true,
                Attempt::Lost { why, process, sent_ms } => {
                    return Err(self.unknown(&invocation, &why, process, sent_ms));
                }
            }
            tries += 1;
            attempt = self.send(&invocation, resent).await;
        }
    }

    /// Asks the server to end a call that is not waited for any more.
    pub fn cancel_call(&self, call: &str) {
        if let Some(session) = self.running() {
            session.cancel(&request_id(call, false));
            session.cancel(&request_id(call, true));
        }
    }

    fn is_idempotent(&self, tool: &str) -> bool {
        self.find_tool(tool).is_some_and(|tool| tool_list::effect(&self.config, &tool).1)
    }

    fn unknown(&self, invocation: &Invocation, why: &str, process: ProcId, sent_ms: u64) -> RpcError {
        let tool = format!("{}.{}", self.name, invocation.tool);
        RpcError::new(ErrorKind::OutcomeUnknown, format!("{tool} may have run: {why}; look before you repeat it"))
            .with("call", &*invocation.call)
            .with("tool", tool)
            .with("sent_at", rfc3339(sent_ms))
            .with("process", process.to_string())
    }

    async fn send(self: &Arc<Self>, invocation: &Invocation, resent: bool) -> Attempt {
        let session = match self.session().await {
            Ok(session) => session,
            Err(error) => return Attempt::Done(Err(error)),
        };
        if self.find_tool(&invocation.tool).is_none() {
            let message =
                format!("mcp/{} has no tool {:?}, or the config does not allow it", self.name, invocation.tool);
            return Attempt::Done(Err(RpcError::new(ErrorKind::NotFound, message)));
        }
        let request = request_id(&invocation.call, resent);
        let Some(expected) = session.expect(&request) else { return Attempt::Unsent };
        let mut expected = expected.of_call();
        let cursor = session.proc.state().progress.counts.end;
        let mut facts = SentFacts { process: session.proc.spec.id, request, cursor, sent_ms: None, resent };
        if let Err(error) = record(invocation, &facts) {
            expected.withdraw();
            return Attempt::Done(Err(error));
        }
        hooks::at("mcp.recorded");
        if let Some(unsent) = self.write(&session, invocation, &mut facts).await {
            expected.withdraw();
            return unsent;
        }
        let reply = expected.reply().await;
        self.on_reply(reply, &session.proc, &facts)
    }

    /// Writes the request of a call. Returns None if the server has it.
    async fn write(&self, session: &Session, invocation: &Invocation, facts: &mut SentFacts) -> Option<Attempt> {
        let began_ms = wall_ms();
        match session.write(facts.request.clone(), self.line(invocation, &facts.request)).await {
            Ok(()) => {
                facts.sent_ms = Some(wall_ms());
                // Without this record a later daemon repeats the write, and finds that it is made.
                let _ = record(invocation, facts);
                hooks::at("mcp.sent");
                None
            }
            Err(NotWritten::Unsent) => Some(Attempt::Unsent),
            Err(NotWritten::Unknown) => {
                let why = "the server was lost while the call was written".into();
                Some(Attempt::Lost { why, process: facts.process, sent_ms: began_ms })
            }
        }
    }

    fn line(&self, invocation: &Invocation, request: &str) -> Vec<u8> {
        let mut params = object([
            ("name", invocation.tool.as_str().into()),
            ("arguments", invocation.args.clone()),
            ("_meta", object([("toold/call", (&*invocation.call).into())])),
        ]);
        if matches!(self.era(), Some(Era::Modern(_))) {
            message::add_modern_meta(&mut params);
        }
        message::request(request, "tools/call", params)
    }

    /// Continues a call that an earlier daemon may have sent.
    async fn resume(self: &Arc<Self>, invocation: &Invocation, mut facts: SentFacts) -> Attempt {
        let accepted_ms = invocation.resumed.as_ref().map_or(0, |resumed| resumed.accepted_ms);
        let sent_ms = facts.sent_ms.unwrap_or(accepted_ms);
        let Ok(proc) = self.shared.registry.find(&facts.process.to_string()) else {
            let why = "the process of the server is forgotten, and its log with it".into();
            return Attempt::Lost { why, process: facts.process, sent_ms };
        };
        if !proc.published_state().has_ended()
            && let Ok(session) = self.session().await
            && session.proc.spec.id == facts.process
            && let Some(expected) = session.expect(&facts.request)
        {
            let mut expected = expected.of_call();
            if facts.sent_ms.is_none()
                && let Some(unsent) = self.write(&session, invocation, &mut facts).await
            {
                expected.withdraw();
                return unsent;
            }
            // What was answered before is in the log by now; what is answered later is delivered.
            let reply = match self.find_answer(&proc, &facts).await {
                Some(reply) => {
                    expected.withdraw();
                    reply
                }
                None => expected.reply().await,
            };
            return self.on_reply(reply, &proc, &facts);
        }
        let _ = tokio::time::timeout(END_TIMEOUT, proc.subscribe().wait_for(State::has_ended)).await;
        if facts.sent_ms.is_none() {
            let line = self.line(invocation, &facts.request);
            if write_named(&proc, &facts.request, line).await == Err(NotWritten::Unsent) {
                return Attempt::Unsent;
            }
        }
        let reply = self.find_answer(&proc, &facts).await.unwrap_or(Reply::Ended);
        facts.sent_ms = Some(sent_ms);
        self.on_reply(reply, &proc, &facts)
    }

    /// Looks for an answer in the log. None: it is not there, and nothing was dropped.
    async fn find_answer(&self, proc: &Arc<Proc>, facts: &SentFacts) -> Option<Reply> {
        let state = proc.state();
        let mut cursor = facts.cursor;
        let mut lines = LineSplitter::new(cursor, self.shared.max_answer_len);
        let (mut found, mut is_dropped) = (None, false);
        while cursor < state.progress.counts.end && found.is_none() {
            let Ok(page) = read_stream(proc, &state, cursor, PAGE_LEN, Stream::Stdout).await else {
                return Some(Reply::Dropped);
            };
            if page.gap.is_some() {
                lines.reset(page.from);
                is_dropped = true;
            }
            lines.feed(
                &page.bytes,
                page.next,
                |len| page.cursor(len),
                |line| {
                    // The first answer counts.
                    found = found.take().or_else(|| answer_in(&line, &facts.request));
                },
            );
            cursor = page.next;
        }
        found.or_else(|| is_dropped.then_some(Reply::Dropped))
    }

    fn on_reply(&self, reply: Reply, proc: &Proc, facts: &SentFacts) -> Attempt {
        let process = facts.process;
        let sent_ms = facts.sent_ms.unwrap_or_default();
        let lost = |why: String| Attempt::Lost { why, process, sent_ms };
        let answered = match reply {
            Reply::Result(result) => from_result(result),
            Reply::Error(error) => from_error(error, self.config.url.is_some()),
            Reply::TooLong { len, from } => Answered::Error(
                RpcError::limit(
                    "script.max_result_bytes",
                    format!("the answer has {len} bytes; it is in the log of {process}"),
                )
                .with("process", process.to_string())
                .with("cursor", from)
                .with("bytes", len),
            ),
            Reply::Unreadable(why) => {
                let message = format!("the server answered with something that is not JSON: {why}");
                Answered::Error(RpcError::new(ErrorKind::ToolFailed, message).with("process", process.to_string()))
            }
            Reply::Dropped => return lost("a part of the server's log was dropped before it was read".into()),
            Reply::Ended => {
                return lost(format!("the server ended without an answer; {}", launch::printed(proc)));
            }
        };
        self.succeeded();
        match answered {
            Answered::Result(result) => Attempt::Done(Ok(result)),
            Answered::Error(error) => Attempt::Done(Err(error)),
            Answered::Unknown(why) => lost(why),
        }
    }
}

/// Returns the id of the request of a call. It is never used twice in one process.
fn request_id(call: &str, resent: bool) -> String {
    if resent { format!("{call}~again") } else { call.into() }
}

fn record(invocation: &Invocation, facts: &SentFacts) -> Result<(), RpcError> {
    let facts = serde_json::to_value(facts).unwrap_or_default();
    invocation.facts.record(facts).map_err(|e| {
        let message = format!("the call was not sent, because it could not be recorded: {e}");
        RpcError::new(ErrorKind::Internal, message)
    })
}

/// Returns the reply to a request in a line.
fn answer_in(line: &Line<'_>, request: &str) -> Option<Reply> {
    match line {
        Line::TooLong { id, len, from } if id.as_deref() == Some(request) => {
            Some(Reply::TooLong { len: *len, from: *from })
        }
        Line::TooLong { .. } => None,
        // Most lines are answers to other requests: those are not parsed.
        Line::Whole { bytes, .. } => {
            memchr::memmem::find(bytes, request.as_bytes())?;
            read_reply(bytes, request)
        }
    }
}
