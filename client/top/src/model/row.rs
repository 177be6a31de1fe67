//! One process as the list shows it, read from the answers of `list`.

use serde::Deserialize;
use serde_json::Value;
use toold_client::text::{escape_control, last_line, unix_ms};
use toold_proto::params::Status;
use toold_proto::process::{Reason, Stdin, Usage, is_failure};
use toold_proto::pty::PtySize;

/// Two samples of CPU time that are closer than this give no rate.
const MIN_SAMPLE_MS: u64 = 250;
/// The fields of a process that the list needs.
pub const FIELDS: [&str; 21] = [
    "id",
    "name",
    "command",
    "status",
    "stopped",
    "exit_code",
    "signal",
    "reason",
    "started_at",
    "exited_at",
    "pty",
    "pty_size",
    "stdin",
    "needs_input",
    "descendants",
    "session_key",
    "started_by",
    "cursor",
    "preview",
    "usage",
    "ports",
];
/// Those of them that change while it runs.
pub const LIVE_FIELDS: [&str; 8] = ["id", "status", "stopped", "needs_input", "cursor", "preview", "usage", "ports"];

/// A process that waits for input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub since_ms: Option<u64>,
    pub prompt: String,
    /// False if the terminal does not show what is typed.
    pub echo: Option<bool>,
}

/// The answer of `list`.
#[derive(Debug, Deserialize)]
pub struct Listing {
    pub processes: Vec<ListedProcess>,
}

/// One process in the answer of `list`, with the fields of `FIELDS` or of `LIVE_FIELDS`.
#[derive(Debug, Deserialize)]
pub struct ListedProcess {
    pub id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    command: String,
    pub status: Status,
    #[serde(default)]
    stopped: bool,
    #[serde(default)]
    exit_code: Option<i32>,
    #[serde(default)]
    signal: Option<String>,
    #[serde(default)]
    reason: Option<Reason>,
    #[serde(default)]
    started_at: String,
    #[serde(default)]
    exited_at: Option<String>,
    #[serde(default)]
    pty: bool,
    #[serde(default)]
    pty_size: Option<PtySize>,
    #[serde(default)]
    stdin: Option<Stdin>,
    #[serde(default)]
    needs_input: Value,
    #[serde(default)]
    descendants: u64,
    #[serde(default)]
    session_key: Option<String>,
    #[serde(default)]
    started_by: Value,
    #[serde(default)]
    cursor: u64,
    #[serde(default)]
    preview: String,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    ports: Option<Vec<u16>>,
}

/// A sample of the CPU time of a tree, and the rate since the one before.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct CpuSample {
    at_ms: u64,
    cpu_ms: u64,
    percent: u64,
}

/// One process.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub id: String,
    pub name: Option<String>,
    pub command: String,
    pub status: Status,
    pub stopped: bool,
    pub question: Option<Question>,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub reason: Option<Reason>,
    pub started_ms: u64,
    pub ended_ms: Option<u64>,
    pub pty: bool,
    pub pty_size: Option<PtySize>,
    pub stdin: Option<Stdin>,
    pub descendants: u64,
    pub session: Option<String>,
    /// The program that started it.
    pub client: Option<String>,
    /// The end of its output.
    pub cursor: u64,
    pub last_output: String,
    pub usage: Option<Usage>,
    pub ports: Vec<u16>,
    cpu: CpuSample,
}

/// The states of a process as one character shows them, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    Asks,
    Runs,
    Failed,
    Done,
    Lost,
}

impl Mark {
    pub fn symbol(self) -> &'static str {
        match self {
            Mark::Asks => "!",
            Mark::Runs => "●",
            Mark::Failed => "✗",
            Mark::Done => "✓",
            Mark::Lost => "?",
        }
    }
}

impl Row {
    pub fn new(listed: ListedProcess, now_ms: u64) -> Row {
        let client = listed.started_by["client"].as_str().filter(|name| !name.is_empty()).map(escape_control);
        let mut row = Row {
            id: listed.id.clone(),
            name: listed.name.as_deref().map(escape_control),
            command: escape_control(&listed.command),
            status: listed.status,
            stopped: false,
            question: None,
            exit_code: listed.exit_code,
            signal: listed.signal.clone(),
            reason: listed.reason,
            started_ms: unix_ms(&listed.started_at).unwrap_or(now_ms),
            ended_ms: listed.exited_at.as_deref().and_then(unix_ms),
            pty: listed.pty,
            pty_size: listed.pty_size,
            stdin: listed.stdin,
            descendants: listed.descendants,
            session: listed.session_key.clone(),
            client,
            cursor: 0,
            last_output: String::new(),
            usage: None,
            ports: Vec::new(),
            cpu: CpuSample::default(),
        };
        row.refresh(&listed, now_ms);
        row
    }

    /// Takes over what changes while it runs.
    pub fn refresh(&mut self, listed: &ListedProcess, now_ms: u64) {
        let last = last_line(&listed.preview).unwrap_or_default();
        self.status = listed.status;
        self.stopped = listed.stopped;
        self.question = question(&listed.needs_input, &last).filter(|_| listed.status == Status::Running);
        self.cursor = listed.cursor;
        self.last_output = if is_binary(&last) { "(binary)".into() } else { escape_control(&last) };
        self.usage = listed.usage;
        self.ports = listed.ports.clone().unwrap_or_default();
        if let Some(usage) = listed.usage {
            self.sample(usage.cpu_ms, now_ms);
        }
    }

    /// Keeps the CPU rate of the same process before this answer.
    pub fn with_samples_of(mut self, earlier: &Row, now_ms: u64) -> Row {
        self.cpu = earlier.cpu;
        if let Some(usage) = self.usage {
            self.sample(usage.cpu_ms, now_ms);
        }
        self
    }

    fn sample(&mut self, cpu_ms: u64, now_ms: u64) {
        let before = self.cpu;
        if before.at_ms == 0 {
            // The mean since its start, until there are two samples.
            let passed = now_ms.saturating_sub(self.started_ms).max(1);
            self.cpu = CpuSample { at_ms: now_ms, cpu_ms, percent: cpu_ms * 100 / passed };
        } else if now_ms >= before.at_ms + MIN_SAMPLE_MS {
            let percent = cpu_ms.saturating_sub(before.cpu_ms) * 100 / (now_ms - before.at_ms);
            self.cpu = CpuSample { at_ms: now_ms, cpu_ms, percent };
        }
    }

    /// Returns the percent of one CPU that its tree uses. None: nothing of it runs.
    pub fn cpu_percent(&self) -> Option<u64> {
        self.usage.map(|_| self.cpu.percent)
    }

    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.command)
    }

    /// Returns its session, else the program that started it.
    pub fn owner(&self) -> &str {
        self.session.as_deref().or(self.client.as_deref()).unwrap_or_default()
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.status, Status::Exited | Status::Lost)
    }

    pub fn has_failed(&self) -> bool {
        is_failure(self.reason, self.exit_code)
    }

    pub fn mark(&self) -> Mark {
        match (self.status, self.reason) {
            _ if self.question.is_some() => Mark::Asks,
            (Status::Pending | Status::Starting | Status::Running, _) => Mark::Runs,
            (Status::Lost, _) => Mark::Lost,
            (Status::Exited, Some(Reason::Killed)) => Mark::Failed,
            (Status::Exited, _) if self.has_failed() => Mark::Failed,
            (Status::Exited, _) => Mark::Done,
        }
    }

    pub fn state(&self) -> String {
        match (self.status, self.reason) {
            _ if self.question.is_some() => "asks".into(),
            (Status::Pending, _) => "pending".into(),
            (Status::Starting, _) => "starting".into(),
            (Status::Running, _) if self.stopped => "stopped".into(),
            (Status::Running, _) => "running".into(),
            (Status::Lost, _) | (_, Some(Reason::Lost)) => "lost".into(),
            (_, Some(Reason::Killed)) => "killed".into(),
            (_, Some(Reason::Timeout)) => "timeout".into(),
            (_, Some(Reason::Oom)) => "oom".into(),
            (_, Some(Reason::FailedStart)) => "no start".into(),
            (_, Some(Reason::Dependency)) => "dependency".into(),
            (_, Some(Reason::Denied)) => "denied".into(),
            (_, Some(Reason::Signaled | Reason::Exited) | None) => match (&self.signal, self.exit_code) {
                (Some(signal), _) => signal.clone(),
                (None, Some(code)) => format!("exited {code}"),
                (None, None) => "exited".into(),
            },
        }
    }

    /// Returns the number of living processes in its tree.
    pub fn tree_len(&self) -> u64 {
        let known = self.usage.map_or(0, |usage| usage.processes);
        known.max(self.descendants).max(u64::from(!self.has_ended()))
    }

    /// Returns true if it reads what is typed.
    pub fn has_stdin(&self) -> bool {
        !self.has_ended() && matches!(self.stdin, Some(Stdin::Pipe | Stdin::Pty))
    }

    /// Returns true if the filter's text is in one of its columns.
    pub fn has_text(&self, lower: &str) -> bool {
        let state = self.state();
        let has = |text: &str| text.to_lowercase().contains(lower);
        [self.label(), self.owner(), &self.command, &self.id, &state].into_iter().any(has)
    }
}

fn question(needs_input: &Value, last_line: &str) -> Option<Question> {
    let prompt = needs_input["prompt"].as_str().map(|text| escape_control(text.trim()));
    let asks = Question {
        since_ms: needs_input["since"].as_str().and_then(unix_ms),
        prompt: prompt.unwrap_or_else(|| escape_control(last_line)),
        echo: needs_input["echo"].as_bool(),
    };
    (needs_input.is_object() || needs_input == &Value::Bool(true)).then_some(asks)
}

/// Reports whether a line is not text.
fn is_binary(line: &str) -> bool {
    let odd = line.chars().filter(|c| (c.is_control() && *c != '\t') || *c == '\u{fffd}').count();
    odd * 4 > line.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(changes: Value) -> Row {
        let mut listed =
            json!({"id": "proc_0123456789ab", "status": "running", "started_at": "2026-11-16T03:28:50.000Z"});
        listed.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
        Row::new(serde_json::from_value(listed).expect("a process"), 1_794_799_740_000)
    }

    #[test]
    fn a_mark_and_a_state_name_each_end() {
        let shown = |changes| (row(changes).mark().symbol().to_owned() + " ", ()).0;
        assert_eq!(shown(json!({})), "● ");
        assert_eq!(shown(json!({"needs_input": {"since": "x", "prompt": "y? ", "echo": true}})), "! ");
        assert_eq!(shown(json!({"status": "lost", "reason": "lost"})), "? ");
        let ended = |reason: &str, code: i32| row(json!({"status": "exited", "reason": reason, "exit_code": code}));
        assert_eq!((ended("exited", 0).mark(), ended("exited", 0).state()), (Mark::Done, "exited 0".into()));
        assert_eq!((ended("exited", 2).mark(), ended("exited", 2).state()), (Mark::Failed, "exited 2".into()));
        assert_eq!((ended("killed", 143).mark(), ended("killed", 143).state()), (Mark::Failed, "killed".into()));
    }

    #[test]
    fn a_rate_needs_two_samples_and_the_first_is_the_mean() {
        let usage = |cpu: u64| json!({"usage": {"processes": 1, "cpu_ms": cpu, "rss_bytes": 1}});
        let mut row = row(usage(1000));
        // It ran for 10 s.
        assert_eq!(row.cpu_percent(), Some(1000 * 100 / (1_794_799_740_000 - row.started_ms)));
        let at = 1_794_799_740_000;
        let listed = |cpu| {
            let mut value = usage(cpu);
            value["id"] = json!("proc_0123456789ab");
            value["status"] = json!("running");
            serde_json::from_value::<ListedProcess>(value).expect("a process")
        };
        row.refresh(&listed(1100), at + 100);
        row.refresh(&listed(2900), at + 1000);
        assert_eq!(row.cpu_percent(), Some(190));
    }

    #[test]
    fn output_of_a_row_is_its_last_line_and_binary_output_is_named() {
        assert_eq!(row(json!({"preview": "a\nb\u{1b}[1mc\n\n"})).last_output, "bc");
        assert_eq!(row(json!({"preview": "\u{0}\u{1}\u{2}ELF"})).last_output, "(binary)");
    }
}
