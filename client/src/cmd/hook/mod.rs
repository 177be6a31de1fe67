//! `hook`: answers the hooks of coding agents. Reads what happened as JSON on standard input, and reports to the agent what runs
//! and what has ended. It must never fail a session: whatever goes wrong, it prints nothing and exits with 0.

mod running;
#[cfg(test)]
mod tests;

use super::Context;
use crate::agent_events::{self, AgentEvent, DeliveryLock, Subject, Unseen};
use crate::agent_session;
use crate::blocking::Client;
use crate::error::{CliError, DONE};
use crate::local_time::now_ms;
use serde::Deserialize;
use serde_json::json;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;
use toold_proto::{api, params};

/// The most bytes of standard input that are read. The result of a tool is part of it.
const MAX_INPUT_LEN: u64 = 64 << 20;
/// The time that the agent may take to write its JSON.
const INPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time that the daemon may take for an answer. The agent waits as long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The time that another carrier may take to deliver the same events.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
/// The time that ending a session may take: a program has a few seconds to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// The code with which an agent without a JSON form for it starts another turn, with standard error as its prompt.
const NEXT_TURN: u8 = 2;

const NOTES: &str = "For the hooks of Claude Code, Codex and Gemini CLI; `toolctl integrate` writes them. SessionStart prints \
what runs for the session or below its directory. Stop and AfterAgent start another turn if a process of the session ended or asks \
and the agent does not know. PostToolUse and AfterTool add that to the context. SessionEnd ends the session's processes with \
--on-end kill. Each event is reported once: by a hook, by a result of `toolctl mcp` or by a monitor. An error is silent and the exit \
code is 0; no daemon is started.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The agent: the session is NAME:ID, with the ID that it reports, if the environment has none
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    agent: Option<String>,
    /// At SessionEnd: keep the session's processes, or kill them [default: keep]
    // Any text is taken: a wrong value must not fail the session.
    #[arg(long, value_name = "keep|kill", num_args = 0..=1)]
    on_end: Option<String>,
    /// Whatever else is given, by a hook for a later version; it is ignored
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    ignored: Vec<String>,
}

/// The fields of the agents' JSON that are used. All others are passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input {
    session_id: Option<String>,
    hook_event_name: String,
    cwd: Option<String>,
    /// This turn was started by such a hook already.
    stop_hook_active: bool,
}

/// The text for each stream, and the exit code.
#[derive(Debug, Default, PartialEq, Eq)]
struct Response {
    out: String,
    err: String,
    code: u8,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(DONE);
    }
    let input = read_within(INPUT_TIMEOUT, move || read_input(stdin.lock()));
    Ok(input.and_then(|input| answer(&args, &input, agent_session::current(), cx)).unwrap_or(DONE))
}

/// Runs `read` on a thread of its own: an agent that keeps its end of the pipe open must not be held up.
fn read_within<T: Send + 'static>(timeout: Duration, read: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().spawn(move || sender.send(read())).ok()?;
    receiver.recv_timeout(timeout).ok()?
}

/// Reads one JSON value. What follows it is not waited for.
fn read_input(stream: impl Read) -> Option<Input> {
    serde_json::Deserializer::from_reader(stream.take(MAX_INPUT_LEN)).into_iter().next()?.ok()
}

/// Returns the session of the environment, else the one that the agent reports.
fn session_key(args: &Args, input: &Input, from_env: Option<String>) -> Option<String> {
    from_env.or_else(|| {
        let id = input.session_id.as_deref().filter(|id| !id.is_empty())?;
        let agent = args.agent.as_deref().filter(|agent| !agent.is_empty());
        Some(agent.map_or_else(|| id.to_owned(), |agent| format!("{agent}:{id}")))
    })
}

/// Answers one hook. None: an error, which no one is reported.
fn answer(args: &Args, input: &Input, from_env: Option<String>, cx: &mut Context<'_>) -> Option<u8> {
    let session = session_key(args, input, from_env)?;
    let event = input.hook_event_name.as_str();
    match event {
        "SessionStart" => {
            let mut client = connect(cx.connection.socket(), ANSWER_TIMEOUT)?;
            let text = running::summary(&mut client, &session, input.cwd.as_deref())?;
            let is_gemini = args.agent.as_deref() == Some("gemini");
            // Gemini takes only JSON for the model's context. The others add plain text to it.
            let out = if is_gemini { context(event, text.trim_end()) } else { text };
            cx.console.print(&out).ok()?;
            Some(DONE)
        }
        "Stop" | "AfterAgent" if input.stop_hook_active => Some(DONE),
        "Stop" | "AfterAgent" | "PostToolUse" | "AfterTool" => deliver(event, &session, cx),
        "SessionEnd" if args.on_end.as_deref() == Some("kill") => {
            let mut client = connect(cx.connection.socket(), END_TIMEOUT)?;
            client.call::<api::SessionEnd>(&params::SessionEndParams { session_key: session }).ok()?;
            Some(DONE)
        }
        // Another event, or one of a later version.
        _ => Some(DONE),
    }
}

/// Connects to a daemon that runs. None is started.
fn connect(socket: &Path, timeout: Duration) -> Option<Client> {
    let mut client = Client::connect(socket).ok()?;
    client.set_timeout(timeout).ok()?;
    Some(client)
}

/// Writes the unseen events of the session, then acknowledges them. If the agent does not take them, they come again.
fn deliver(event: &str, session: &str, cx: &mut Context<'_>) -> Option<u8> {
    let socket = cx.connection.socket().to_owned();
    let mut client = connect(&socket, ANSWER_TIMEOUT)?;
    let _lock = DeliveryLock::acquire(&socket, session, LOCK_PATIENCE)?;
    let unseen = agent_events::pull(&mut client, session).ok()?;
    let response = match response(event, &unseen, now_ms()) {
        // Only noise was read. It must not hide what comes after it.
        None if unseen.events.is_empty() => Response::default(),
        response => response?,
    };
    cx.console.print(&response.out).ok()?;
    cx.console.print_error(&response.err).ok()?;
    agent_events::acknowledge(&mut client, session, unseen.last_seq?).ok()?;
    Some(response.code)
}

/// Builds the answer to a hook. None: there is nothing to report now.
fn response(event: &str, unseen: &Unseen, now_ms: u64) -> Option<Response> {
    let ends_turn = matches!(event, "Stop" | "AfterAgent");
    let is_worth_a_turn = |event: &AgentEvent| matches!(event.subject, Subject::Exit | Subject::Question);
    if unseen.events.is_empty() || ends_turn && !unseen.events.iter().any(is_worth_a_turn) {
        return None;
    }
    let gap = unseen.has_gap.then(|| "toold: earlier events were dropped; list the processes".to_owned());
    let phrases = unseen.events.iter().map(|event| format!("toold: {}", event.phrase(now_ms)));
    let text = gap.into_iter().chain(phrases).collect::<Vec<String>>().join("\n");
    Some(match event {
        "Stop" => {
            Response { out: format!("{}\n", json!({"decision": "block", "reason": text})), ..Response::default() }
        }
        "AfterAgent" => Response { err: text + "\n", code: NEXT_TURN, ..Response::default() },
        _ => Response { out: context(event, &text), ..Response::default() },
    })
}

/// Formats text for the model's context.
fn context(event: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{}\n", json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}))
}
