//! `proc_write`: types text or a key, waits until the process is quiet, and returns what it printed. A secret never passes the
//! model: a prompt that does not show what is typed is left to a person.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::daemon_link::{Failure, Tick};
use crate::reply::{MAX_OUTPUT_CHARS, Reply, keep_end};
use crate::retry_key::write_ids;
use crate::sys;
use crate::view::{Process, last_line};
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime};

const DEFAULT_WAIT_MS: u64 = 1000;
/// The time without output after which the answer is complete.
const QUIET_MS: u64 = 250;
/// The time in which a question is known after the last output.
const QUESTION_TIME: Duration = Duration::from_millis(350);
/// Parts of prompts for secrets, for programs that turn the echo off and show something of their own.
const SECRET_PROMPTS: [&str; 8] =
    ["password", "passphrase", "passcode", "secret", "token", "api key", "verification code", "one-time"];

/// The input of a call.
enum Input {
    Keys {
        keys: Vec<Value>,
        has_text: bool,
        /// It only interrupts, ends or leaves what asks, and answers nothing.
        is_escape: bool,
    },
    /// A signal to a process without a terminal, which has no such key.
    Signal(&'static str),
    Close,
}

pub fn run(mut args: Arguments<'_>, call: &mut Call<'_>) -> Result<Reply, Failure> {
    let (id, text, enter) = (args.required_text("id"), args.text("text"), args.flag("enter"));
    let (key, wait_ms) = (args.text("key"), args.seconds_ms("wait_s"));
    args.finish().map_err(Failure::Arguments)?;
    let before = call.tail(&id, 1)?;
    let has_terminal = has_terminal(call, &before.id)?;
    let input = input(text, enter, key.as_deref(), has_terminal)?;
    let is_hidden = is_hidden(&before, has_terminal);
    if is_hidden && matches!(input, Input::Keys { is_escape: false, .. }) && !call.options.allow_secrets {
        return Ok(refused(&before));
    }
    let is_repeated = apply(call, &before, input, is_hidden)?;
    let bound = call.bound(Some(wait_ms.unwrap_or(DEFAULT_WAIT_MS)));
    let is_settled = settle(call, &before, bound.time)?;
    let params =
        json!({"id": before.id, "cursor": before.cursor, "max_bytes": 65_536, "collapse": true, "redact": true});
    let after = Process::read(&call.link.call("poll", &params)?);
    let mut reply = Reply::line(after.first_line(&[]));
    reply.stated.add(&after);
    let (output, is_cut) = keep_end(&after.output, MAX_OUTPUT_CHARS);
    reply.push_output(output);
    reply.push(after.counts(after.next_cursor));
    if is_cut {
        reply.push(format!("[cut to the last {MAX_OUTPUT_CHARS} characters; all of it: cursor {}]", before.cursor));
    }
    reply.lines.extend(bound.note().filter(|_| !is_settled));
    if is_repeated {
        reply.push("[this call was made before; nothing was typed again]");
    }
    Ok(reply)
}

fn has_terminal(call: &mut Call<'_>, id: &str) -> Result<bool, Failure> {
    let found = call.link.call("poll", &json!({"id": id, "tail_lines": 1, "fields": ["pty"]}))?;
    Ok(found["pty"] == json!(true))
}

/// Returns true if what is typed now is not shown. A program that edits its own line, such as an interactive interpreter, turns the
/// echo off too and shows the text itself: only its prompt shows a secret then. The terminal is looked at, because a question is
/// known a moment after it was asked.
fn is_hidden(process: &Process, has_terminal: bool) -> bool {
    if !has_terminal || process.has_ended() {
        return false;
    }
    let prompt = prompt(process).to_lowercase();
    let is_secret = SECRET_PROMPTS.iter().any(|part| prompt.contains(part));
    match process.pid.and_then(sys::terminal_modes) {
        Some(modes) => !modes.has_echo && (modes.is_canonical || is_secret),
        None => process.needs_input.as_ref().is_some_and(|question| question.echo == Some(false)) || is_secret,
    }
}

/// Returns the prompt: of the question, or else the last line.
fn prompt(process: &Process) -> String {
    match &process.needs_input {
        Some(question) => question.prompt.trim().to_owned(),
        None => last_line(&process.output),
    }
}

fn refused(process: &Process) -> Reply {
    let mut reply = Reply::error(format!(
        "{} asks \"{}\" and does not show what is typed, so it may want a secret: ask the user to run `toolctl attach {}` (denied)",
        process.title(),
        prompt(process),
        process.id
    ));
    reply.stated.add(process);
    reply
}

/// Makes the keys: text, then Enter or another key.
fn input(text: Option<String>, enter: Option<bool>, key: Option<&str>, has_terminal: bool) -> Result<Input, Failure> {
    match (key, has_terminal, &text) {
        (Some("close"), _, None) => return Ok(Input::Close),
        (Some("ctrl-d"), false, None) => return Ok(Input::Close),
        (Some("ctrl-c"), false, None) => return Ok(Input::Signal("SIGINT")),
        (Some("ctrl-z"), false, None) => return Ok(Input::Signal("SIGTSTP")),
        (Some("close"), _, Some(_)) => {
            return Err(Failure::Arguments("key: close goes without text; write the text first".into()));
        }
        (None, _, None) => return Err(Failure::Arguments("text: is missing; or give key".into())),
        // Anything else is typed.
        _ => {}
    }
    let name = match key {
        None => None,
        Some("enter") => Some("Enter"),
        Some("ctrl-c") => Some("C-c"),
        Some("ctrl-d") => Some("C-d"),
        Some("ctrl-z") => Some("C-z"),
        Some("esc") => Some("Esc"),
        Some("tab") => Some("Tab"),
        Some("up") => Some("Up"),
        Some("down") => Some("Down"),
        Some("left") => Some("Left"),
        Some("right") => Some("Right"),
        Some(other) => {
            let known = "enter, ctrl-c, ctrl-d, ctrl-z, esc, tab, up, down, left, right or close";
            return Err(Failure::Arguments(format!("key: must be {known}, not {other:?}")));
        }
    };
    let is_entered = text.is_some() && enter.unwrap_or(key.is_none());
    let has_text = text.is_some();
    let typed = text.filter(|text| !text.is_empty()).map(|text| json!({ "text": text }));
    let keys =
        typed.into_iter().chain(name.map(|name| json!(name))).chain(is_entered.then(|| json!("Enter"))).collect();
    let is_escape = !has_text && matches!(key, Some("ctrl-c" | "ctrl-d" | "ctrl-z" | "esc"));
    Ok(Input::Keys { keys, has_text, is_escape })
}

/// Does it once. Returns true if an earlier call with the same key did it.
fn apply(call: &mut Call<'_>, process: &Process, input: Input, is_secret: bool) -> Result<bool, Failure> {
    match input {
        Input::Close => call.link.call("close", &json!({"id": process.id})).map(|_| false),
        Input::Signal(signal) => call.link.call("signal", &json!({"id": process.id, "signal": signal})).map(|_| false),
        Input::Keys { keys, .. } if keys.is_empty() => Ok(false),
        Input::Keys { keys, has_text, .. } => {
            let [now, before, earlier] = write_ids(&call.key, SystemTime::now());
            for write_id in [before, earlier] {
                // An empty write types nothing, and shows whether its key was used.
                let probe = json!({"id": process.id, "data": "", "write_id": write_id});
                if call.link.call("write", &probe)?["duplicate"] == json!(true) {
                    return Ok(true);
                }
            }
            let mut params = json!({"id": process.id, "keys": keys, "write_id": now});
            if is_secret && has_text {
                params["secret"] = json!(true);
            }
            let written = call.link.call("write", &params)?;
            Ok(written["duplicate"] == json!(true))
        }
    }
}

/// Waits for the first output, and then until the process is quiet. Returns false if the time ended that.
fn settle(call: &mut Call<'_>, process: &Process, time: Duration) -> Result<bool, Failure> {
    let begin = Instant::now();
    if time.is_zero() {
        return Ok(true);
    }
    let patience = Duration::from_secs(30);
    let first = |left_ms: u64| json!({"id": process.id, "cursor": process.cursor, "max_bytes": 1, "wait_ms": left_ms.max(1), "fields": ["id"]});
    call.link.call_waiting("poll", first, time, patience, |_| Tick::GoOn)?;
    let quiet = |left_ms: u64| json!({"id": process.id, "until": {"quiet_ms": QUIET_MS}, "timeout_ms": left_ms.max(1), "fields": ["id"]});
    let left = time.saturating_sub(begin.elapsed());
    call.link.call_waiting("wait", quiet, left, patience, |_| Tick::GoOn)?;
    let is_settled = begin.elapsed() < time;
    // A question is known a moment after the last output.
    let left = time.saturating_sub(begin.elapsed()).min(QUESTION_TIME);
    let asks =
        |left_ms: u64| json!({"id": process.id, "until": "input", "timeout_ms": left_ms.max(1), "fields": ["id"]});
    call.link.call_waiting("wait", asks, left, patience, |_| Tick::GoOn)?;
    Ok(is_settled)
}
