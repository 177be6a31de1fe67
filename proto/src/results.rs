//! The results of every method.

use crate::approval::{AllowedBy, Approval, Grant};
use crate::event::{Event, SeqRange};
use crate::fields::{FieldSet, ProcessFields, WriteSelected};
use crate::id::ProcId;
use crate::policy::{ApprovalPolicy, PolicyReport};
use crate::process::{Gap, Member, Process, Span, Truncated, Usage};
use crate::sandbox::SandboxSetting;
use crate::sandbox_probe::SandboxProbeResult;
use crate::tools::ToolProviderInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Declares a result. Its name ends in `Result` if a method returns it, so that it is the name of no method.
/// With `process` before its name it is a process with more fields.
macro_rules! result {
    (process $name:ident { $($(#[$field:meta])* $f:ident: $t:ty),* $(,)? }) => {
        result!($name {
            #[serde(flatten)]
            process: Process,
            $($(#[$field])* $f: $t,)*
        });

        impl ProcessFields for $name {
            const ADDED: &'static [&'static str] = &[$(stringify!($f)),*];

            fn write_selected(&self, selected: &FieldSet, out: &mut Vec<u8>) -> serde_json::Result<()> {
                self.process.write_selected(selected, out)?;
                $(selected.write(stringify!($f), &self.$f, out)?;)*
                Ok(())
            }
        }

        impl WriteSelected for $name {
            fn write_with(&self, selected: &FieldSet, out: &mut Vec<u8>) -> serde_json::Result<()> {
                selected.write_object(self, None, out)
            }
        }
    };
    ($(#[$doc:meta])* $name:ident { $($(#[$field:meta])* $f:ident: $t:ty),* $(,)? }) => {
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        $(#[$doc])*
        pub struct $name { $($(#[$field])* pub $f: $t,)* }
    };
}

pub(crate) use result;

pub use crate::log::{LogMatch, LogResult};

result!(process ExecResult {
    output: String,
    next_cursor: u64,
    /// The part that `max_output_tokens` cut. Null: nothing was cut.
    truncated: Option<Truncated>,
    gap: Option<Gap>,
    /// True if this call started nothing: the process was running already, with `if_running: "return"`, or an earlier call with the
    /// same `request_id` started it.
    #[serde(default)]
    existing: bool,
    /// The reason for the answer of a call with `ready`.
    #[serde(default)]
    ready: Option<Ready>,
});

/// The reason for the answer of an `exec` with `ready`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    Ready,
    /// The process ended before it was ready.
    Exited,
    /// The process runs and is not ready yet.
    Timeout,
}

result!(process PollResult {
    output: String,
    /// The cursor of the first byte of this page.
    from: u64,
    next_cursor: u64,
    /// Bytes between the requested cursor and this page that the log dropped.
    gap: Option<Gap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spans: Option<Vec<Span>>,
});

/// The end of a `wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitStatus {
    Exited,
    Matched,
    /// A process waits for input.
    Input,
    Timeout,
}

result!(process Waited {
    /// The last 2000 characters.
    output: String,
    next_cursor: u64,
    /// The line that matched.
    matched: Option<String>,
    /// The process that listens on the port.
    #[serde(default)]
    listener: Option<Listener>,
});

result!(Listener {
    pid: i32,
    port: u16,
    /// The local address of the socket.
    address: String,
});

result!(WaitResult {
    status: WaitStatus,
    processes: Vec<Waited>,
    /// The timeout that was used.
    timeout_ms: u64,
    /// True if the requested timeout exceeded `max_wait_ms`.
    clamped: bool,
    note: Option<String>,
});

impl WriteSelected for WaitResult {
    fn write_with(&self, selected: &FieldSet, out: &mut Vec<u8>) -> serde_json::Result<()> {
        // Without `..`, so that a new field is not forgotten here.
        let WaitResult { status, processes, timeout_ms, clamped, note } = self;
        out.extend_from_slice(br#"{"status":"#);
        serde_json::to_writer(&mut *out, status)?;
        out.extend_from_slice(br#","processes":["#);
        for (n, process) in processes.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            process.write_with(selected, out)?;
        }
        out.extend_from_slice(format!(r#"],"timeout_ms":{timeout_ms},"clamped":{clamped},"note":"#).as_bytes());
        serde_json::to_writer(&mut *out, note)?;
        out.push(b'}');
        Ok(())
    }
}

/// The end of a kill. Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KillStatus {
    /// The tree was empty already.
    AlreadyExited,
    /// Verified: no process of the tree is left.
    Killed,
    /// The program has not started, and the shim that is to start it does not answer. Nothing was signalled: the shim
    /// kills it when it acts again.
    Starting,
    /// Some processes of the tree are left. `survivors` lists them.
    Survivors,
}

result!(Killed {
    id: ProcId,
    status: KillStatus,
    signals_sent: Vec<String>,
    survivors: Vec<Member>,
    exit_code: Option<i32>,
    signal: Option<String>,
    reason: Option<crate::process::Reason>,
    /// The reason why `survivors` does not list all that is left, or why the shim could not be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
});

result!(KillResult { status: KillStatus, results: Vec<Killed> });

result!(SignalResult { id: ProcId, signal: String });

result!(process RestartResult {});

result!(process PauseResult {});

result!(process ResumeResult {});

result!(
    WriteResult {
        id: ProcId,
        bytes_written: u64,
        /// True if all bytes were written.
        complete: bool,
        /// True if a write with this `write_id` was done before.
        duplicate: bool,
        /// The number of `write_id`s of this process that are remembered. Only for a write with one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remembered_write_ids: Option<u64>,
    }
);

result!(CloseResult { id: ProcId, stdin: crate::process::Stdin });

result!(ResizeResult { id: ProcId, rows: u32, cols: u32 });

result!(ScreenResult {
    id: ProcId,
    rows: u32,
    cols: u32,
    /// The rows from the first on, separated by newlines, without spaces at their ends and without empty rows at the end.
    text: String,
    cursor: ScreenCursor,
    /// The title that the program gave the terminal. Null: none.
    title: Option<String>,
    /// The alternate screen is shown, as by `vim` and `less`.
    alternate: bool,
    /// The end of the output that the screen shows, as a cursor for `poll`.
    next_cursor: u64,
});

result!(ScreenCursor {
    /// From 0.
    row: u32,
    /// From 0.
    col: u32,
    /// False if the program hides it.
    visible: bool,
});

result!(process Listed {
    /// The last 200 characters.
    preview: String,
    /// Resources of the tree. Only with `usage`, while a process of the tree runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    /// The TCP ports on which the tree listens. Only with `usage`, while a process of the tree runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ports: Option<Vec<u16>>,
});

result!(ListResult {
    processes: Vec<Listed>,
    total: u64,
    /// Processes within `limit` that did not fit into the answer, the oldest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    omitted: Option<u64>,
    /// Processes that `ended_within_ms` left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    older: Option<u64>,
});

result!(process InspectResult {
    tree: Vec<Member>,
    usage: Usage,
    /// The TCP ports on which the tree listens, by port, with the process and the address of each.
    #[serde(default)]
    listeners: Vec<Listener>,
    /// The file with the first bytes of output; null before the first byte.
    log_path: Option<String>,
    /// All files of output, in order: the first, and `log.<offset>` from that byte on. They hold the bytes as they came.
    #[serde(default)]
    log_files: Vec<String>,
    state_path: String,
    env_names: Vec<String>,
    shim_pid: Option<i32>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    heartbeat_ms: Option<u64>,
    /// The approval, the grant or the rules that let it start. Null: it needed none.
    #[serde(default)]
    allowed_by: Option<Box<AllowedBy>>,
});

result!(ForgetResult { forgotten: Vec<ProcId>, skipped: Vec<ProcId> });

result!(SessionActiveResult { count: u64, ids: Vec<ProcId> });

result!(SessionGetResult {
    session_key: String,
    /// False: `session.configure` has set nothing.
    configured: bool,
    /// The working directory of calls without one.
    cwd: Option<String>,
    /// The profile of calls without one, and the widest of the session. Null: those of the config.
    sandbox: Option<SandboxSetting>,
    /// The cases in which a person is asked, from the session or else from the config.
    approval: ApprovalPolicy,
    roots: Vec<String>,
    env_pass: Vec<String>,
    /// Its processes that run.
    running: Vec<ProcId>,
    /// Its grants that are in force.
    grants: Vec<Grant>,
    /// Its questions that wait for a person, oldest first.
    approvals: Vec<Approval>,
});

result!(SessionEndResult { session_key: String, killed: Vec<Killed>, count: u64 });

result!(EventsNextResult {
    consumer: String,
    events: Vec<Event>,
    /// The last acknowledged event.
    position: u64,
    /// The newest event in the journal.
    last: u64,
    /// Events after the position that the journal does not have any more.
    missing: Option<SeqRange>,
    /// True if the consumer is new.
    created: bool,
    /// The earlier consumer of this name, if it expired after `events.consumer_ttl_ms` without use.
    forgotten: Option<Forgotten>,
    /// Damage to the stored position, until the consumer acknowledges an event or its `position`: it may receive events again.
    damaged: Option<PositionDamage>,
});

result!(PositionDamage {
    /// The time at which the damage was found.
    at: String,
});

result!(Forgotten {
    /// Its last position.
    position: u64,
    /// The time at which it expired.
    at: String,
});

result!(EventsAckResult { consumer: String, position: u64 });

result!(Journal {
    oldest: u64,
    last: u64,
    bytes: u64,
    consumers: Vec<Consumer>,
});

result!(Consumer { name: String, position: u64, used_at: String });

/// The state of the breaker over all watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    Passing,
    /// Too many matches: none is published until the cooldown is over.
    Silent,
}

result!(Breaker {
    state: BreakerState,
    /// Matches in the current window.
    recent: u64,
    /// Matches suppressed in this cooldown.
    dropped: u64,
    /// Milliseconds until the cooldown is over.
    release_ms: Option<u64>,
});

result!(Counts {
    /// Processes that wait for their turn.
    #[serde(default)]
    pending: u64,
    starting: u64,
    running: u64,
    exited: u64,
    lost: u64,
    connections: u64,
});

result!(
    #[schemars(rename = "Queue")]
    Queue {
        name: String,
        /// Number of its processes that may run at the same time.
        slots: u64,
        /// True: no process is started from it.
        paused: bool,
        /// Processes of the queue that run or are starting.
        running: u64,
        /// Processes that wait for their turn in it.
        pending: u64,
    }
);

result!(QueuesListResult {
    /// By name. A queue is listed if it is configured, was set, or has processes.
    queues: Vec<Queue>,
});

result!(
    #[schemars(rename = "SessionInfo")]
    SessionInfo {
        session_key: String,
        /// True while a connection is open that started something in this session, or waits for its processes or its events.
        live: bool,
        /// Its processes that run.
        running: u64,
    }
);

result!(DaemonPaths { socket: String, state_dir: String, config: Option<String> });

result!(DaemonInfoResult {
    version: String,
    protocol: u32,
    pid: u32,
    started_at: String,
    uptime_ms: u64,
    counts: Counts,
    /// Resources of all process trees and the daemon together.
    usage: Usage,
    daemon: Usage,
    /// Every config key and the value in use.
    limits: BTreeMap<String, serde_json::Value>,
    /// Features of this system: pidfd, cgroup, landlock ABI and so on.
    features: BTreeMap<String, serde_json::Value>,
    paths: DaemonPaths,
    /// Files that were found damaged, with where they were quarantined, and records that cannot be read now.
    damaged: Vec<String>,
    events: Journal,
    watch: Breaker,
    /// The rules in force.
    #[serde(default)]
    policy: PolicyReport,
    /// The last check of the sandbox. Null: it was not checked yet.
    #[serde(default)]
    sandbox: Option<SandboxProbeResult>,
    /// Clients that serve tools, by name.
    #[serde(default)]
    tool_providers: Vec<ToolProviderInfo>,
    /// The sessions that have a client or a process that runs, by key.
    #[serde(default)]
    sessions: Vec<SessionInfo>,
});

result!(ShutdownResult { stopping: bool, killed: Vec<Killed> });
