//! `proc_list`: a table, running processes first.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::daemon_link::Failure;
use crate::reply::Reply;
use crate::view::{Process, last_line, one_line, short_time};
use serde_json::json;

/// The most rows.
const MAX_ROWS: usize = 50;
/// The most characters of a last line.
const MAX_LAST_CHARS: usize = 60;

pub fn run(mut args: Arguments<'_>, call: &mut Call<'_>) -> Result<Reply, Failure> {
    let (everyone, ended) = (args.flag("everyone").unwrap_or(false), args.flag("ended").unwrap_or(false));
    args.finish().map_err(Failure::Arguments)?;
    let mut params = json!({"usage": true, "limit": 1000});
    if !everyone {
        params["session_key"] = json!(call.session);
    }
    let listed = call.link.call("list", &params)?;
    let all: Vec<Process> = listed["processes"].as_array().into_iter().flatten().map(Process::read).collect();
    let (running, past): (Vec<Process>, Vec<Process>) = all.into_iter().partition(|process| !process.has_ended());
    let counts = format!("{} running, {} ended", running.len(), past.len());
    let rows: Vec<Process> = running.into_iter().chain(past.into_iter().filter(|_| ended)).collect();
    let hint = match (rows.is_empty(), ended, everyone) {
        (_, false, _) if !counts.ends_with(" 0 ended") => " (ended: true lists them)",
        (true, _, false) => " (everyone: true lists those of others)",
        _ => "",
    };
    let mut reply = Reply::line(format!("{counts}{hint}"));
    if rows.is_empty() {
        return Ok(reply);
    }
    let owner = if everyone { "  OWNER" } else { "" };
    reply.push(format!("ID  NAME  STATE  AGE  CPU  MEM  PORTS{owner}  LAST LINE"));
    for process in rows.iter().take(MAX_ROWS) {
        reply.stated.add(process);
        reply.push(row(process, everyone));
    }
    if rows.len() > MAX_ROWS {
        reply.push(format!("[{} more are not shown]", rows.len() - MAX_ROWS));
    }
    Ok(reply)
}

fn row(process: &Process, everyone: bool) -> String {
    let ports: Vec<String> = process.ports.iter().map(u64::to_string).collect();
    let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let mut columns = vec![
        process.id.clone(),
        dash(process.name.as_deref().map(one_line).unwrap_or_default()),
        process.state().split(" after ").next().unwrap_or_default().to_owned(),
        short_time(age_ms(process)),
        process.usage["cpu_ms"].as_u64().map_or_else(|| "-".into(), short_time),
        process.usage["rss_bytes"].as_u64().map_or_else(|| "-".into(), size),
        dash(ports.join(",")),
    ];
    if columns[2].starts_with("running") {
        columns[2] = "running".into();
    }
    if everyone {
        columns.push(dash(process.session_key.as_deref().map(one_line).unwrap_or_default()));
    }
    columns.push(last_line(&process.preview).chars().take(MAX_LAST_CHARS).collect());
    columns.join("  ").trim_end().to_owned()
}

/// Returns the time since the start, or since the end.
fn age_ms(process: &Process) -> u64 {
    let ended = process.exited_at.as_deref().and_then(toold_client::agent_events::unix_ms);
    ended.map_or(process.uptime_ms, |at| crate::carrier::now_ms().saturating_sub(at))
}

/// Formats a size: `512K`, `12M`, `1.5G`.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes < 10 * unit && name == "G" => {
            format!("{}.{}G", bytes / unit, bytes % unit * 10 / unit)
        }
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}
