//! `log`: a process's output by line, and with `-f` as it comes.

use super::long::Meanwhile;
use super::tail::{Lines, Tail, last};
use super::{Context, ended};
use crate::args;
use crate::blocking::parse;
use crate::failure::{DONE, Failure};
use regex::Regex;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params::{self, Status, Stream};
use toold_proto::results::Poll;

/// How many lines stand before what is new, unless `-n` says otherwise.
const FOLLOW_LINES: u64 = 10;
/// How far back the last lines are looked for at first, and at most.
const WINDOW: (u64, u64) = (64 * 1024, 64 * 1024 * 1024);
/// How long one poll waits for news. Only a bound: it answers on the first byte.
const WAIT_MS: u64 = 30_000;

#[derive(Debug, clap::Args)]
pub struct Args {
    id: String,
    /// Go on as it grows, until it is closed
    #[arg(short, long, conflicts_with = "offset")]
    follow: bool,
    /// So many lines [default: 200; 10 with -f]
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<u64>,
    /// From this line on, counted from 0 [default: the last lines]
    #[arg(long, value_name = "N")]
    offset: Option<u64>,
    /// Only lines that match this regular expression
    #[arg(long, value_name = "RE")]
    grep: Option<String>,
    /// Only this stream: stdout or stderr
    #[arg(long, value_parser = args::word::<Stream>)]
    stream: Option<Stream>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    if args.follow {
        return follow(args, cx);
    }
    let params = params::Log {
        id: args.id,
        offset: args.offset,
        limit: args.lines,
        stream: args.stream,
        grep: args.grep,
        ..Default::default()
    };
    cx.look::<api::Log>(&params, |result, _| ended(&result.output))
}

fn follow(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    if cx.json {
        return Err(Failure::Usage("-f has no end, so it is no JSON document: use poll --json --cursor".into()));
    }
    let grep = args.grep.as_deref().map(Regex::new).transpose();
    let grep = grep.map_err(|e| Failure::Usage(format!("--grep: {e}")))?;
    let base = params::Poll { id: args.id, stream: args.stream, ..Default::default() };
    cx.link.expect_wait(Duration::from_millis(WAIT_MS));
    let wanted = args.lines.unwrap_or(FOLLOW_LINES);
    let (tail, mut cursor) = tail(&base, wanted, grep.as_ref(), cx)?;
    cx.console.print(&tail.shown)?;
    let mut lines = Lines::after(&tail, grep.as_ref());
    loop {
        let page = page(&base, cursor, WAIT_MS, cx)?;
        if let Some(gap) = page.gap {
            cx.console.say(&format!("{} bytes of output were not kept", gap.to.saturating_sub(gap.from)));
        }
        cx.console.print(&lines.push(&page.output))?;
        let over = page.process.closed || page.process.status == Status::Lost;
        if over && (page.next_cursor >= page.process.cursor || page.next_cursor <= cursor) {
            return cx.console.print(&lines.finish()).map(|()| DONE);
        }
        cursor = cursor.max(page.next_cursor);
    }
}

/// The last lines of what is there now, and the cursor after them: what comes later is new, so no
/// line is lost or shown twice.
fn tail(base: &params::Poll, wanted: u64, grep: Option<&Regex>, cx: &mut Context<'_>) -> Result<(Tail, u64), Failure> {
    let end = cx.link.call_again::<api::Poll>(base)?.process.cursor;
    let mut window = WINDOW.0;
    loop {
        let begin = end.saturating_sub(window);
        let (text, cursor) = between(base, begin, end, cx)?;
        let tail = last(&text, wanted as usize, begin == 0, grep);
        if tail.enough || window >= WINDOW.1 {
            return Ok((tail, cursor));
        }
        window *= 4;
    }
}

/// The text from `begin` to `end`, and how far it really goes: a character that is not whole yet
/// stays for later.
fn between(base: &params::Poll, begin: u64, end: u64, cx: &mut Context<'_>) -> Result<(String, u64), Failure> {
    let mut text = String::new();
    let mut cursor = begin;
    while cursor < end {
        let params = params::Poll { cursor: Some(cursor), max_bytes: Some(end - cursor), ..base.clone() };
        let page = cx.link.call_again::<api::Poll>(&params)?;
        text.push_str(&page.output);
        if page.next_cursor <= cursor {
            break;
        }
        cursor = page.next_cursor;
    }
    Ok((text, cursor))
}

fn page(base: &params::Poll, cursor: u64, wait_ms: u64, cx: &mut Context<'_>) -> Result<Poll, Failure> {
    let params = params::Poll { cursor: Some(cursor), wait_ms, ..base.clone() };
    // To wait on for somebody who reads no more would be to wait for ever.
    let wait = Duration::from_millis(wait_ms);
    let raw = cx.call_long::<api::Poll>(|_| params.clone(), wait, &mut Meanwhile::MindReader)?;
    Ok(parse::<api::Poll>(&raw)?)
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{Fake, Reply, process};
    use serde_json::{Value, json};

    fn text_page(from: u64, output: &str, changes: Value) -> Value {
        let end = from + output.len() as u64;
        let mut document =
            process(json!({"output": output, "from": from, "next_cursor": end, "gap": null, "cursor": end}));
        document.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
        document
    }

    #[test]
    fn following_shows_the_last_lines_then_what_comes_across_a_lost_connection() {
        let closed = json!({"status": "exited", "reason": "exited", "exit_code": 0, "closed": true});
        let fake = Fake::start(vec![
            vec![
                Reply::result(text_page(0, "a\nb\nc\n", json!({}))),
                Reply::result(text_page(0, "a\nb\nc\n", json!({}))),
                Reply::result(text_page(6, "d\n", json!({}))),
                Reply::HangUp,
            ],
            vec![Reply::result(text_page(8, "e", closed))],
        ]);
        assert_eq!(test_run(&fake, &["log", "x", "-f", "-n", "2"]), (0, "b\nc\nd\ne\n".into(), String::new()));
        let cursors: Vec<Value> = fake.all_asked().into_iter().map(|(_, params)| params["cursor"].clone()).collect();
        assert_eq!(cursors, [json!(null), json!(0), json!(6), json!(8), json!(8)]);
    }

    #[test]
    fn following_as_json_or_with_a_broken_pattern_is_a_usage_error() {
        let fake = Fake::start(vec![]);
        assert_eq!(test_run(&fake, &["log", "x", "-f", "--json"]).0, 2);
        assert_eq!(test_run(&fake, &["log", "x", "-f", "--grep", "("]).0, 2);
    }
}
