//! `proc_wait`: answers at the first of a condition, a question and the time.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::daemon_link::Failure;
use crate::reply::Reply;
use crate::view::{Process, last_line, short_time};
use serde_json::{Value, json};

/// The output of a process in the reply, if there is one of them.
const SHOWN_LINES: u64 = 20;
const SHOWN_CHARS: usize = 2000;
/// The same for one of several.
const LISTED_LINES: u64 = 5;
const LISTED_CHARS: usize = 500;
/// The most processes that are shown with their output.
const MAX_SHOWN: usize = 8;
/// The most processes that are waited for.
const MAX_WAITED: u64 = 4096;
/// The most processes that are listed as still running.
const MAX_LISTED: usize = 20;

pub fn run(mut args: Arguments<'_>, call: &mut Call<'_>) -> Result<Reply, Failure> {
    let (ids, all) = (args.texts("ids"), args.flag("all").unwrap_or(false));
    let (pattern, port, quiet_ms) = (args.pattern("match", |_| true), args.whole("port"), args.seconds_ms("quiet_s"));
    let timeout_ms = args.seconds_ms("timeout_s");
    args.finish().map_err(Failure::Arguments)?;
    let until = condition(pattern, port, quiet_ms)?;
    let ids = match ids.filter(|ids| !ids.is_empty()) {
        Some(ids) => ids,
        None => {
            // Listed before the look at ends: what ends in between is among those that are waited for.
            let running = running(call)?;
            let ended = if all { Vec::new() } else { call.carrier.unseen_exits(&mut call.link, &call.session) };
            if !ended.is_empty() {
                return has_ended(call, &ended, &running);
            }
            running.into_iter().map(|process| process.id).collect()
        }
    };
    if ids.is_empty() {
        return Ok(Reply::line("nothing is running; proc_list {ended: true} shows what has ended"));
    }
    let bound = call.bound(timeout_ms);
    let waited = call.wait(json!({ "ids": ids }), until, if all { "all" } else { "any" }, bound.time)?;
    let mut reply = Reply::default();
    let is_one = waited.processes.len() == 1;
    let (lines, chars) = if is_one { (SHOWN_LINES, SHOWN_CHARS) } else { (LISTED_LINES, LISTED_CHARS) };
    let has_news = |process: &Process| {
        process.has_ended()
            || process.needs_input.is_some()
            || process.matched.is_some()
            || process.listener.is_object()
    };
    let (news, rest): (Vec<&Process>, Vec<&Process>) = waited
        .processes
        .iter()
        .partition(|process| is_one || has_news(process) || waited.status == "matched" && quiet_ms.is_some());
    for process in news.iter().take(MAX_SHOWN) {
        call.show(&mut reply, &process.id, lines, chars, &reached(process, &waited.status, quiet_ms))?;
    }
    for process in news.iter().skip(MAX_SHOWN).take(MAX_LISTED) {
        reply.stated.add(process);
        reply.push(process.first_line(&[]));
    }
    push_running(&mut reply, &rest);
    if waited.status == "timeout" {
        let time = short_time(bound.time.as_millis() as u64);
        reply.push(bound.note().unwrap_or_else(|| format!("[still running after {time}; call proc_wait again]")));
    }
    Ok(reply)
}

/// Returns the processes of the session that run or wait for their turn.
fn running(call: &mut Call<'_>) -> Result<Vec<Process>, Failure> {
    let listed = call.link.call("list", &json!({"session_key": call.session, "limit": MAX_WAITED}))?;
    let all = listed["processes"].as_array().into_iter().flatten().map(Process::read);
    Ok(all.filter(|process| !process.has_ended()).collect())
}

/// Answers at once with ends that no result has stated.
fn has_ended(call: &mut Call<'_>, ended: &[String], running: &[Process]) -> Result<Reply, Failure> {
    let mut reply = Reply::default();
    for id in ended.iter().take(MAX_SHOWN) {
        match call.show(&mut reply, id, LISTED_LINES, LISTED_CHARS, &[]) {
            // It was removed; the line of events has its end.
            Err(failure) if failure.kind() == Some("not_found") => {}
            shown => drop(shown?),
        }
    }
    let rest: Vec<&Process> = running.iter().filter(|process| !ended.contains(&process.id)).collect();
    push_running(&mut reply, &rest);
    Ok(reply)
}

fn push_running(reply: &mut Reply, rest: &[&Process]) {
    if rest.is_empty() {
        return;
    }
    let listed: Vec<String> =
        rest.iter().take(MAX_LISTED).map(|process| format!("{} {}", process.title(), process.state())).collect();
    let more = rest.len().saturating_sub(MAX_LISTED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    reply.push(format!("still running: {}{more}", listed.join(" · ")));
}

fn condition(pattern: Option<String>, port: Option<u64>, quiet_ms: Option<u64>) -> Result<Value, Failure> {
    match (pattern, port, quiet_ms) {
        (None, None, None) => Ok(json!("exit")),
        (Some(pattern), None, None) => Ok(json!({"match": {"regex": pattern}})),
        (None, Some(port), None) => Ok(json!({ "port": port })),
        (None, None, Some(ms)) => Ok(json!({"quiet_ms": ms.max(1)})),
        // More than one.
        _ => Err(Failure::Arguments("give one of match, port and quiet_s".into())),
    }
}

fn reached(process: &Process, status: &str, quiet_ms: Option<u64>) -> Vec<String> {
    match (&process.matched, &process.listener["port"], quiet_ms) {
        (Some(line), _, _) => vec![format!("matched: \"{}\"", last_line(line))],
        (None, Value::Number(port), _) => vec![format!("listens on port {port}")],
        (None, _, Some(ms)) if status == "matched" && !process.has_ended() => {
            vec![format!("quiet for {}", short_time(ms))]
        }
        (None, _, _) => Vec::new(),
    }
}
