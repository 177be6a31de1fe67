//! The results of every method.

use crate::event::{Event, SeqRange};
use crate::id::ProcId;
use crate::process::{Gap, Member, Process, Span, Truncated, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Declares a result. In the discovery document a method's result has the method's name (`schemars(rename)`).
macro_rules! result {
    ($(#[$doc:meta])* $name:ident { $($(#[$field:meta])* $f:ident: $t:ty),* $(,)? }) => {
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        $(#[$doc])*
        pub struct $name { $($(#[$field])* pub $f: $t,)* }
    };
}

result!(#[schemars(rename = "Exec")] ExecResult {
    #[serde(flatten)]
    process: Process,
    output: String,
    next_cursor: u64,
    /// What the token budget cut. Null: nothing.
    truncated: Option<Truncated>,
    gap: Option<Gap>,
    /// It ran already: `if_running: "return"`.
    #[serde(default)]
    existing: bool,
    /// With `ready`: what came first.
    #[serde(default)]
    ready: Option<Ready>,
});

/// What an `exec` with `ready` was answered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    Ready,
    /// It ended before.
    Exited,
    /// It runs, and is not ready yet.
    Timeout,
}

result!(#[schemars(rename = "Poll")] PollResult {
    #[serde(flatten)]
    process: Process,
    output: String,
    /// Where this page begins.
    from: u64,
    next_cursor: u64,
    /// Bytes between the cursor and this page that were not kept.
    gap: Option<Gap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spans: Option<Vec<Span>>,
});

result!(#[schemars(rename = "Log")] LogResult {
    id: ProcId,
    output: String,
    total_lines: u64,
    /// The number of the first line shown, from 0. With `grep`: of the first match.
    first_line: u64,
    lines_shown: u64,
    /// With `grep`: how many lines match in all that is kept.
    matched_lines: Option<u64>,
    /// The `offset` of the next page. Null: the end was reached.
    next_offset: Option<u64>,
    /// The output was cut to fit; ask again from a later line.
    truncated: bool,
    gap: Option<Gap>,
});

/// How a `wait` ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitStatus {
    Exited,
    Matched,
    Timeout,
}

result!(Waited {
    #[serde(flatten)]
    process: Process,
    /// Its last 2000 characters.
    output: String,
    next_cursor: u64,
    /// The line that matched.
    matched: Option<String>,
    /// Who listens on the port that was waited for.
    #[serde(default)]
    listener: Option<Listener>,
});

result!(Listener {
    pid: i32,
    port: u16,
    /// The local address it is bound to.
    address: String,
});

result!(#[schemars(rename = "Wait")] WaitResult {
    status: WaitStatus,
    processes: Vec<Waited>,
    /// The time that was in force.
    timeout_ms: u64,
    /// The time asked for was over `max_wait_ms`.
    clamped: bool,
    note: Option<String>,
});

/// How a kill ended. Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KillStatus {
    /// Its tree was empty before.
    AlreadyExited,
    /// Proven: nothing of the tree is left.
    Killed,
    /// Something is left, and listed.
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
});

result!(#[schemars(rename = "Kill")] KillResult { status: KillStatus, results: Vec<Killed> });

result!(
    #[schemars(rename = "Signal")]
    SignalResult { id: ProcId, signal: String }
);

result!(
    #[schemars(rename = "Write")]
    WriteResult {
        id: ProcId,
        bytes_written: u64,
        /// All of it.
        complete: bool,
        /// This `write_id` had been written before.
        duplicate: bool,
    }
);

result!(
    #[schemars(rename = "Close")]
    CloseResult { id: ProcId, stdin: crate::process::Stdin }
);

result!(
    #[schemars(rename = "Resize")]
    ResizeResult { id: ProcId, rows: u32, cols: u32 }
);

result!(Listed {
    #[serde(flatten)]
    process: Process,
    /// The last 200 characters.
    preview: String,
    /// With `usage`, while something of its tree lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
});

result!(#[schemars(rename = "List")] ListResult {
    processes: Vec<Listed>,
    total: u64,
    /// With `ended_within_ms`: how many more would be there without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    older: Option<u64>,
});

result!(#[schemars(rename = "Inspect")] InspectResult {
    #[serde(flatten)]
    process: Process,
    tree: Vec<Member>,
    usage: Usage,
    /// The file with the first bytes of output; null before the first byte.
    log_path: Option<String>,
    state_path: String,
    env_names: Vec<String>,
    shim_pid: Option<i32>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    heartbeat_ms: Option<u64>,
});

result!(#[schemars(rename = "Forget")] ForgetResult { forgotten: Vec<ProcId>, skipped: Vec<ProcId> });

result!(#[schemars(rename = "SessionActive")] SessionActiveResult { count: u64, ids: Vec<ProcId> });

result!(#[schemars(rename = "SessionEnd")] SessionEndResult { session_key: String, killed: Vec<Killed>, count: u64 });

result!(#[schemars(rename = "EventsNext")] EventsNextResult {
    consumer: String,
    events: Vec<Event>,
    /// Everything up to this event is acknowledged.
    position: u64,
    /// The newest event of all.
    last: u64,
    /// Events after the position that are not kept any more.
    missing: Option<SeqRange>,
    /// The consumer is new.
    created: bool,
    /// It was known, unused for `events.consumer_ttl_ms`, and forgotten.
    forgotten: Option<Forgotten>,
});

result!(Forgotten {
    /// The position it had.
    position: u64,
    /// When it was forgotten.
    at: String,
});

result!(
    #[schemars(rename = "EventsAck")]
    EventsAckResult { consumer: String, position: u64 }
);

result!(Journal {
    oldest: u64,
    last: u64,
    bytes: u64,
    consumers: Vec<Consumer>,
});

result!(Consumer { name: String, position: u64, used_at: String });

/// What the breaker over all watches does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    Passing,
    /// Too many matches: none is told for a while.
    Silent,
}

result!(Breaker {
    state: BreakerState,
    /// Matches inside the window now.
    recent: u64,
    /// Matches dropped in this silence.
    dropped: u64,
    /// Until the silence ends.
    release_ms: Option<u64>,
});

result!(Counts { starting: u64, running: u64, exited: u64, lost: u64, connections: u64 });

result!(#[schemars(rename = "Places")] DaemonPaths { socket: String, state_dir: String, config: Option<String> });

result!(#[schemars(rename = "DaemonInfo")] DaemonInfoResult {
    version: String,
    protocol: u32,
    pid: u32,
    started_at: String,
    uptime_ms: u64,
    counts: Counts,
    /// What all process trees and the daemon use together.
    usage: Usage,
    daemon: Usage,
    /// Every config key and the value in force.
    limits: BTreeMap<String, serde_json::Value>,
    /// What this system has: pidfd, cgroup, landlock ABI...
    features: BTreeMap<String, serde_json::Value>,
    paths: DaemonPaths,
    /// Records that were set aside as damaged since the start.
    damaged: Vec<String>,
    events: Journal,
    watch: Breaker,
});

result!(#[schemars(rename = "Shutdown")] ShutdownResult { stopping: bool, killed: Vec<Killed> });
