//! A process as the daemon describes it, and its text for an agent: the first line with a fixed grammar, and the line of counts.

use serde::Deserialize;
use serde_json::Value;

/// The fields of a process that this program reads. A result has those that its method has.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Process {
    pub id: String,
    pub name: Option<String>,
    pub command: String,
    pub status: String,
    pub stopped: bool,
    pub pid: Option<i64>,
    pub exit_code: Option<i64>,
    pub signal: Option<String>,
    pub reason: Option<String>,
    pub killed_by: Option<String>,
    pub failure: Value,
    pub uptime_ms: u64,
    pub started_at: String,
    pub exited_at: Option<String>,
    pub cursor: u64,
    pub lines: u64,
    pub bytes: u64,
    pub needs_input: Option<InputWait>,
    pub pending_on: Value,
    pub session_key: Option<String>,
    pub request_id: Option<String>,
    pub approval: Option<String>,
    pub output: String,
    pub preview: String,
    pub from: u64,
    pub next_cursor: u64,
    pub existing: bool,
    pub matched: Option<String>,
    pub listener: Value,
    pub usage: Value,
    pub ports: Vec<u64>,
}

/// A wait for input.
#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct InputWait {
    pub since: String,
    pub prompt: String,
    pub echo: Option<bool>,
}

/// The longest prompt that is shown, in characters.
const MAX_PROMPT_CHARS: usize = 200;

impl Process {
    /// Reads a process from a result.
    pub fn read(value: &Value) -> Process {
        let mut process = Process::deserialize(value).unwrap_or_default();
        process.output = plain_line_ends(&process.output);
        process
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "exited" | "lost")
    }

    /// Returns `proc_0123456789ab (web)`.
    pub fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("{} ({})", self.id, one_line(name)),
            None => self.id.clone(),
        }
    }

    /// Returns the state: `running 0.4s`, `exited 2 after 3m`, `SIGKILL after 2h (oom)`, `lost`, `asks "…"`.
    pub fn state(&self) -> String {
        let time = short_time(self.uptime_ms);
        match (self.status.as_str(), &self.needs_input) {
            ("running" | "starting", Some(question)) => format!("asks \"{}\"", prompt(&question.prompt)),
            ("running" | "starting", None) if self.stopped => format!("running {time}, stopped"),
            ("running" | "starting", None) => format!("running {time}"),
            ("pending", _) => self.pending(),
            ("exited", _) => self.end(&time),
            ("lost", _) => "lost".into(),
            (other, _) => other.to_owned(),
        }
    }

    fn pending(&self) -> String {
        match (self.pending_approval(), self.pending_on["queue"].as_str()) {
            (Some(approval), _) => format!("pending, waits for a person's approval {approval}"),
            (None, Some(queue)) => format!("pending, waits for a slot of queue {}", one_line(queue)),
            (None, None) => "pending".into(),
        }
    }

    fn end(&self, time: &str) -> String {
        let why = match self.reason.as_deref() {
            Some("oom") => " (oom)".to_owned(),
            Some("timeout") => " (timeout)".to_owned(),
            Some("killed") => match &self.killed_by {
                Some(by) => format!(" (killed by {})", one_line(by)),
                None => " (killed)".to_owned(),
            },
            Some("failed_start") => return format!("failed to start: {}", self.failure_text()),
            Some("denied") => return "was denied, it never ran".into(),
            Some("dependency") => return "never ran: a process before it did not end well".into(),
            Some(_) | None => String::new(),
        };
        match (&self.signal, self.exit_code) {
            (Some(signal), _) => format!("{signal} after {time}{why}"),
            (None, Some(code)) => format!("exited {code} after {time}{why}"),
            (None, None) => format!("ended after {time}{why}"),
        }
    }

    fn failure_text(&self) -> String {
        let message = self.failure["message"].as_str().map(str::to_owned);
        let composed = || {
            format!(
                "{} {}",
                self.failure["step"].as_str().unwrap_or("start"),
                self.failure["path"].as_str().unwrap_or("")
            )
        };
        one_line(&message.unwrap_or_else(composed))
    }

    /// Returns the approval that it waits for.
    pub fn pending_approval(&self) -> Option<&str> {
        self.pending_on["approval"].as_str()
    }

    /// Returns the first line of a result: title, state, what was reached, and the pid of a process that runs.
    pub fn first_line(&self, extra: &[String]) -> String {
        let mut line = format!("{} {}", self.title(), self.state());
        for part in extra {
            line.push_str(&format!(", {part}"));
        }
        match self.pid {
            Some(pid) if !self.has_ended() => format!("{line}, pid {pid}"),
            Some(_) | None => line,
        }
    }

    /// Returns the line of counts. `cursor` is where the next read goes on.
    pub fn counts(&self, cursor: u64) -> String {
        format!("[{}, cursor {cursor}]", self.size())
    }

    /// Returns `1 line, 65 bytes`.
    pub fn size(&self) -> String {
        let lines = if self.lines == 1 { "line" } else { "lines" };
        let bytes = if self.bytes == 1 { "byte" } else { "bytes" };
        format!("{} {lines}, {} {bytes}", self.lines, self.bytes)
    }

    /// Returns the message of progress: `running 35s, 1,204 lines: <last line>`.
    pub fn progress(&self) -> String {
        let lines = if self.lines == 1 { "line" } else { "lines" };
        let last = last_line(if self.output.is_empty() { &self.preview } else { &self.output });
        let last = if last.is_empty() { String::new() } else { format!(": {last}") };
        format!("{}, {} {lines}{last}", self.state(), grouped(self.lines))
    }
}

/// Formats a time with one unit: `0.4s`, `12s`, `3m`, `2h`, `5d`.
pub fn short_time(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("0.{}s", ms / 100),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Formats a number with commas: `1,204`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns text with plain line ends: a terminal ends its lines with a carriage return too.
pub fn plain_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Returns text without line ends and control characters.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

fn prompt(text: &str) -> String {
    let line = one_line(text);
    let skipped = line.chars().count().saturating_sub(MAX_PROMPT_CHARS);
    line.chars().skip(skipped).collect::<String>().replace('"', "'")
}

/// Returns the last line that is not blank, at most 120 characters of it.
pub fn last_line(text: &str) -> String {
    // A bar draws itself again after each carriage return.
    let folded = |line: &str| one_line(line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default());
    let line = text.lines().map(folded).rfind(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(more: Value) -> String {
        let mut process = json!({"id": "proc_75631e31432c", "name": "web", "status": "exited", "uptime_ms": 125_000, "pid": 7, "lines": 1, "bytes": 65});
        for (key, value) in more.as_object().expect("an object") {
            process[key] = value.clone();
        }
        Process::read(&process).first_line(&[])
    }

    #[test]
    fn the_first_line_has_its_grammar() {
        assert_eq!(line(json!({"status": "running", "uptime_ms": 450})), "proc_75631e31432c (web) running 0.4s, pid 7");
        assert_eq!(line(json!({"exit_code": 2, "reason": "exited"})), "proc_75631e31432c (web) exited 2 after 2m");
        assert_eq!(
            line(json!({"exit_code": 137, "signal": "SIGKILL", "reason": "oom", "name": null})),
            "proc_75631e31432c SIGKILL after 2m (oom)"
        );
        assert_eq!(
            line(json!({"exit_code": 143, "signal": "SIGTERM", "reason": "killed", "killed_by": "pid 9"})),
            "proc_75631e31432c (web) SIGTERM after 2m (killed by pid 9)"
        );
        assert_eq!(line(json!({"status": "lost"})), "proc_75631e31432c (web) lost");
        let asks =
            json!({"status": "running", "needs_input": {"since": "x", "prompt": "Overwrite? [y/N] ", "echo": true}});
        assert_eq!(line(asks), "proc_75631e31432c (web) asks \"Overwrite? [y/N]\", pid 7");
        assert_eq!(Process::read(&json!({"lines": 1, "bytes": 65})).counts(65), "[1 line, 65 bytes, cursor 65]");
    }

    #[test]
    fn a_progress_message_has_the_state_the_lines_and_the_last_one() {
        let process = json!({"status": "running", "uptime_ms": 35_100, "lines": 1204, "output": "a\nlast one\n\n"});
        assert_eq!(Process::read(&process).progress(), "running 35s, 1,204 lines: last one");
    }
}
