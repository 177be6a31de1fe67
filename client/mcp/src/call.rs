//! One call of a tool: who calls, for which session, the connection to the daemon, progress, and the bound of its wait.

use crate::carrier::Carrier;
use crate::client::ClientInfo;
use crate::daemon_link::{Cancel, DaemonAddress, DaemonLink, Failure, Tick};
use crate::message::Era;
use crate::output::Output;
use crate::reply::{MAX_OUTPUT_CHARS, Reply, keep_end};
use crate::view::{Process, short_time};
use serde_json::{Value, json};
use std::time::Duration;
use toold_client::mcp_options::McpOptions;

/// The interval of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// The time of a search for a condition that may hold already.
const MATCH_CHECK_MS: u64 = 150;

/// A call of a tool.
pub struct Call<'a> {
    pub options: &'a McpOptions,
    pub address: &'a DaemonAddress,
    pub output: &'a Output,
    pub carrier: &'a Carrier,
    pub cancel: &'a Cancel,
    pub link: DaemonLink<'a>,
    pub client: ClientInfo,
    pub era: Era,
    pub session: String,
    /// The same for a repetition of this call.
    pub key: String,
    /// The directory of the client.
    pub cwd: String,
}

/// The time that a call may wait, and the line about it if it is less than was asked for.
pub struct WaitBound {
    pub time: Duration,
    asked: Duration,
}

impl WaitBound {
    /// Returns the line about a wait that was cut.
    pub fn note(&self) -> Option<String> {
        (self.time < self.asked).then(|| {
            let (time, asked) = (short_time(self.time.as_millis() as u64), short_time(self.asked.as_millis() as u64));
            format!("[waited {time} of {asked}, the limit of one call here; call proc_wait again]")
        })
    }
}

/// The end of a wait.
pub struct Waited {
    pub status: String,
    pub processes: Vec<Process>,
}

impl Call<'_> {
    /// Bounds a wait by what the client bears.
    pub fn bound(&self, asked_ms: Option<u64>) -> WaitBound {
        let max = self.client.max_wait(self.options.max_wait.map(Duration::from_millis));
        let asked = asked_ms.map_or(max, Duration::from_millis);
        WaitBound { time: asked.min(max), asked }
    }

    /// Waits for processes, with progress. `selection` is `ids` or `session_key`.
    pub fn wait(&mut self, selection: Value, until: Value, mode: &str, time: Duration) -> Result<Waited, Failure> {
        let params = |left_ms: u64| {
            let mut params =
                json!({"until": until, "mode": mode, "or_input": true, "timeout_ms": left_ms.max(1), "tail_lines": 1});
            for (key, value) in selection.as_object().into_iter().flatten() {
                params[key] = value.clone();
            }
            params
        };
        let (address, cancel, output) = (self.address, self.cancel, self.output);
        let (token, total) = (self.client.progress_token.clone(), time.as_secs());
        let mut watched = DaemonLink::without_start(address, cancel);
        let session = self.session.clone();
        let tick = |since: Duration| {
            if let Some(token) = &token {
                let message = progress_message(&mut watched, &selection, &session);
                let params = json!({"progressToken": token, "progress": since.as_secs_f64(), "total": total, "message": message});
                output.notify("notifications/progress", params);
            }
            Tick::GoOn
        };
        let mut raw = self.link.call_waiting("wait", params, time, PROGRESS_INTERVAL, tick)?;
        if raw["status"] == "input" && until != "exit" {
            // A process that asks all the time answers before its output is searched: what holds already counts more.
            let mut again = params(MATCH_CHECK_MS);
            again["or_input"] = json!(false);
            let checked = self.link.call("wait", &again)?;
            raw = if checked["status"] == "matched" { checked } else { raw };
        }
        let processes = raw["processes"].as_array().map(|list| list.iter().map(Process::read).collect());
        Ok(Waited {
            status: raw["status"].as_str().unwrap_or("timeout").to_owned(),
            processes: processes.unwrap_or_default(),
        })
    }

    /// Reads a process with the end of its output.
    pub fn tail(&mut self, id: &str, lines: u64) -> Result<Process, Failure> {
        let params = json!({"id": id, "tail_lines": lines, "collapse": true, "redact": true});
        Ok(Process::read(&self.link.call("poll", &params)?))
    }

    /// Adds a process to a reply: its first line, the end of its output, and the counts.
    pub fn show(
        &mut self,
        reply: &mut Reply,
        id: &str,
        lines: u64,
        max_chars: usize,
        extra: &[String],
    ) -> Result<Process, Failure> {
        let process = self.tail(id, lines)?;
        reply.stated.add(&process);
        reply.process = Some(process.id.clone());
        reply.push(process.first_line(extra));
        let (output, is_cut) = keep_end(&process.output, max_chars.min(MAX_OUTPUT_CHARS));
        reply.push_output(output);
        reply.push(process.counts(process.next_cursor));
        let shown = output.lines().count() as u64;
        if is_cut || shown >= lines && process.lines > shown {
            reply.push(format!("[the last {shown} of {} lines; proc_read from_line for the others]", process.lines));
        }
        Ok(process)
    }
}

/// Returns the state of what is waited for, as a message of progress.
fn progress_message(link: &mut DaemonLink<'_>, selection: &Value, session: &str) -> String {
    let ids: Vec<&str> = selection["ids"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match ids.as_slice() {
        [id] => {
            let polled = link.call("poll", &json!({"id": id, "tail_lines": 1, "collapse": true, "redact": true}));
            polled.map_or_else(|_| "waiting".to_owned(), |found| Process::read(&found).progress())
        }
        _ => {
            let listed = link.call("list", &json!({"session_key": session, "status": "running", "limit": 50}));
            let running = listed.ok().and_then(|list| list["total"].as_u64()).unwrap_or(ids.len() as u64);
            format!("{running} running")
        }
    }
}
