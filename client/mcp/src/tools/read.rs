//! `proc_read`: the output, from its end, a cursor or a line on. Nothing is remembered: the cursor is in the text.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::daemon_link::Failure;
use crate::reply::{MAX_OUTPUT_CHARS, Reply, keep_begin, keep_end};
use crate::view::{Process, plain_line_ends};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const DEFAULT_LINES: u64 = 60;
/// More lines than fit into a reply.
const MAX_LINES: u64 = 8000;

/// The part of the output that a call wants.
struct Part {
    id: String,
    lines: Option<u64>,
    stream: Option<String>,
}

pub fn run(mut args: Arguments<'_>, call: &mut Call<'_>) -> Result<Reply, Failure> {
    let (id, lines, cursor) = (args.required_text("id"), args.whole("lines"), args.whole("cursor"));
    let (from_line, grep, stream) = (args.whole("from_line"), args.text("grep"), args.text("stream"));
    args.finish().map_err(Failure::Arguments)?;
    if lines == Some(0) {
        return Err(Failure::Arguments("lines: must be at least 1".into()));
    }
    if cursor.is_some() && (from_line.is_some() || grep.is_some()) {
        return Err(Failure::Arguments("cursor: goes with neither from_line nor grep".into()));
    }
    let part = Part { id, lines: lines.map(|lines| lines.min(MAX_LINES)), stream };
    match (cursor, from_line, grep) {
        (Some(cursor), _, _) => on_from_cursor(call, &part, cursor),
        (None, None, None) => last_lines(call, &part),
        (None, from_line, grep) => by_line(call, &part, from_line, grep),
    }
}

impl Part {
    fn params(&self, more: Value) -> Value {
        let mut params = json!({"id": self.id, "collapse": true, "redact": true});
        if let Some(stream) = &self.stream {
            params["stream"] = json!(stream);
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        params
    }
}

/// Begins the reply with the state of the process.
fn begin(process: &Process) -> Reply {
    let mut reply = Reply::line(process.first_line(&[]));
    reply.stated.add(process);
    reply
}

fn last_lines(call: &mut Call<'_>, part: &Part) -> Result<Reply, Failure> {
    let lines = part.lines.unwrap_or(DEFAULT_LINES);
    let process = Process::read(&call.link.call("poll", &part.params(json!({ "tail_lines": lines })))?);
    let mut reply = begin(&process);
    let (output, is_cut) = keep_end(&process.output, MAX_OUTPUT_CHARS);
    reply.push_output(output);
    reply.push(process.counts(process.next_cursor));
    if is_cut {
        let shown = output.lines().count() as u64;
        let first = process.lines.saturating_sub(shown);
        reply.push(format!("[cut to the last {MAX_OUTPUT_CHARS} characters; the lines before {first}: from_line]"));
    }
    Ok(reply)
}

fn on_from_cursor(call: &mut Call<'_>, part: &Part, cursor: u64) -> Result<Reply, Failure> {
    let mut max_bytes = MAX_OUTPUT_CHARS as u64;
    // A stream alone has no bytes that could be counted in the log.
    if let Some(lines) = part.lines.filter(|_| part.stream.is_none()) {
        let raw = json!({"id": part.id, "cursor": cursor, "max_bytes": max_bytes, "encoding": "base64"});
        let page = call.link.call("poll", &raw)?;
        let bytes = STANDARD.decode(page["output"].as_str().unwrap_or_default()).unwrap_or_default();
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u64 + 1);
        max_bytes = ends.take(lines as usize).last().filter(|_| !bytes.is_empty()).unwrap_or(max_bytes);
    }
    let page = call.link.call("poll", &part.params(json!({"cursor": cursor, "max_bytes": max_bytes})))?;
    let process = Process::read(&page);
    let mut reply = begin(&process);
    if page["gap"].is_object() {
        reply.push(format!("[bytes {} to {} are not kept]", page["gap"]["from"], page["gap"]["to"]));
    }
    let (output, _) = keep_begin(&process.output, MAX_OUTPUT_CHARS);
    reply.push_output(output);
    reply.push(process.counts(process.next_cursor));
    if process.next_cursor < process.cursor {
        reply.push(format!("[{} bytes follow: cursor {}]", process.cursor - process.next_cursor, process.next_cursor));
    }
    Ok(reply)
}

fn by_line(call: &mut Call<'_>, part: &Part, from_line: Option<u64>, grep: Option<String>) -> Result<Reply, Failure> {
    let lines = part.lines.unwrap_or(DEFAULT_LINES);
    let mut more = json!({ "limit": lines });
    if let Some(from) = from_line {
        more["offset"] = json!(from);
    }
    if let Some(grep) = &grep {
        more["grep"] = json!(grep);
    }
    let mut log = call.link.call("log", &part.params(more.clone()))?;
    let mut output = plain_line_ends(log["output"].as_str().unwrap_or_default());
    let fitting = fitting_lines(&output, from_line.is_none());
    if grep.is_some() && fitting < output.lines().count() {
        // The line after the last match that fits is only known for a search that ends there.
        more["limit"] = json!(fitting.max(1));
        log = call.link.call("log", &part.params(more))?;
        output = plain_line_ends(log["output"].as_str().unwrap_or_default());
    }
    let process = call.tail(&part.id, 1)?;
    let mut reply = begin(&process);
    let (shown, first) = (log["lines_shown"].as_u64().unwrap_or(0), log["first_line"].as_u64().unwrap_or(0));
    let total = log["total_lines"].as_u64().unwrap_or(0);
    let (kept, is_cut) = whole_lines(&output);
    reply.push_output(kept);
    let kept_lines = if is_cut { kept.lines().count() as u64 } else { shown };
    let next = if is_cut && grep.is_none() { Some(first + kept_lines) } else { log["next_offset"].as_u64() };
    // A cursor is where a read goes on: only after the last line is that known here.
    let is_end = next.is_none() && grep.is_none();
    reply.push(if is_end { process.counts(process.cursor) } else { format!("[{}]", process.size()) });
    let mut range = match (log["matched_lines"].as_u64(), kept_lines) {
        (Some(matched), _) => format!("{kept_lines} of {matched} matching lines"),
        (None, 0) => format!("no lines; there are {total}"),
        (None, _) => format!("lines {first} to {} of {total}", first + kept_lines - 1),
    };
    if is_cut {
        range.push_str(&format!(", cut to {MAX_OUTPUT_CHARS} characters"));
    }
    match (next, log["matched_lines"].as_u64()) {
        (Some(next), _) => range.push_str(&format!("; from_line {next} goes on")),
        (None, Some(matched)) if from_line.is_none() && matched > kept_lines => {
            range.push_str(", the last; from_line 0 begins with the first");
        }
        (None, _) => {}
    }
    reply.push(format!("[{range}]"));
    Ok(reply)
}

/// Returns the number of lines that fit into a reply, from the end or from the beginning.
fn fitting_lines(output: &str, from_end: bool) -> usize {
    let lines: Vec<usize> = output.split_inclusive('\n').map(|line| line.chars().count()).collect();
    let mut left = MAX_OUTPUT_CHARS;
    let mut fits = |len: &usize| {
        let fits = *len <= left;
        left = left.saturating_sub(*len);
        fits
    };
    if from_end {
        lines.iter().rev().take_while(|len| fits(len)).count()
    } else {
        lines.iter().take_while(|len| fits(len)).count()
    }
}

/// Keeps as many whole lines as fit. A line that is longer than all is cut.
fn whole_lines(output: &str) -> (&str, bool) {
    let (kept, is_cut) = keep_begin(output, MAX_OUTPUT_CHARS);
    match kept.rfind('\n').filter(|_| is_cut) {
        Some(at) => (&kept[..=at], true),
        None => (kept, is_cut),
    }
}
