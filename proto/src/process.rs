//! The description of a process, as every method returns it.

use crate::approval::ApprovalId;
use crate::fields::FieldSet;
use crate::id::ProcId;
use crate::kernel::ProcessKernel;
use crate::params::{Status, Stream};
use crate::patch::PatchResult;
use crate::pattern::Pattern;
use crate::pty::PtySize;
use crate::sandbox::Sandbox;
use crate::script::ProcessScript;
use crate::stage::ProcessStage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The cause of a process's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The program exited by itself.
    Exited,
    /// A signal ended it that toold did not send.
    Signaled,
    /// A client asked toold to kill it; `killed_by` names the client.
    Killed,
    /// `timeout_ms` or `limits.idle_ms` expired; `killed_by` names the one.
    Timeout,
    /// The kernel killed it because it ran out of memory.
    Oom,
    /// The program could not start; `failure` has the details.
    FailedStart,
    /// The exit could not be observed.
    Lost,
    /// It never ran: a process in `after` did not end well.
    Dependency,
    /// It never ran: its approval was denied, not given in time, or withdrawn.
    Denied,
}

/// The current standard input of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    Null,
    Pipe,
    Pty,
    Closed,
}

/// A wait of a program for input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputWait {
    /// The time at which it was first seen to wait. RFC 3339, UTC.
    pub since: String,
    /// The last line of the output if it has no newline, at most its last 200 characters. Else empty.
    pub prompt: String,
    /// True if its terminal shows what is typed. Null: it has no terminal, or that cannot be known.
    pub echo: Option<bool>,
}

/// The client that started a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartedBy {
    /// The label `client` of the start, else the name of the program that was connected. Null: neither is known.
    pub client: Option<String>,
    /// The process that was connected. It may have ended.
    pub pid: i32,
    pub uid: u32,
}

/// The reason why a start failed, or why an end was not observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The step of a start that failed: `exec`, `chdir`, `pty`, ... Of a lost process: `launch` or `shim` if its shim died
    /// before or after it reported the start, `reboot`, `record` if its record is damaged, or `unknown`.
    pub step: String,
    pub errno: i32,
    /// `ENOENT` and the like.
    pub error: String,
    /// The program or directory concerned.
    pub path: String,
    /// The reason, for a person. Absent from events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub message: Option<String>,
}

/// The reasons why a pending process waits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PendingOn {
    /// The queue in which it waits for a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The processes of `after` that have not ended yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Vec<ProcId>>,
    /// The restart that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartDue>,
    /// The approval that a person has not given yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
}

/// The time of a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestartDue {
    /// RFC 3339, UTC.
    pub at: String,
}

/// The state of a process's watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchState {
    /// The next match is published at once.
    Watching,
    /// A match was published within `watch.min_interval_ms`: further matches are only counted.
    Cooldown,
    /// Too many matches over all processes: matches are only counted.
    Silent,
    /// Too many matches in several intervals in a row: the output is not scanned any more.
    Disabled,
    /// The program has ended and all of its output was scanned.
    Ended,
}

/// Watch patterns and their counts so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Watch {
    pub patterns: Vec<Pattern>,
    /// Lines that matched.
    pub hits: u64,
    /// Matching lines that no event reported.
    pub suppressed: u64,
    pub disabled: bool,
    pub state: WatchState,
    /// Consecutive intervals in which matches were suppressed.
    pub strikes: u32,
    /// Milliseconds until the next match can be published.
    pub quiet_ms: u64,
    /// Bytes that the log dropped before the watch scanned them.
    #[serde(default)]
    pub unseen_bytes: u64,
    /// The reason why no match is published, for a person.
    pub note: Option<String>,
}

/// One requested limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReport {
    pub requested: u64,
    /// `cgroup2`, `cgroup1` or `shim`. Null: not enforced here.
    pub enforced_by: Option<String>,
    /// The reason why it is not enforced, or a remark.
    pub note: Option<String>,
    /// Processes of the tree that the kernel had killed for memory when the program ended. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<u32>,
}

/// The retry of a process that failed because of its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessRetry {
    /// The process that runs the program again. It is `pending` until the approval is given.
    pub process: ProcId,
    /// The approval that it waits for, or that let it start or not. Null: a grant or a rule let it start.
    pub approval: Option<ApprovalId>,
}

/// Declares a struct that can also write itself field by field. Names are constants, so that no name has to be checked
/// for characters to escape.
macro_rules! json_fields {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field:meta])* pub $f:ident: $t:ty,)* }) => {
        $(#[$doc])*
        pub struct $name { $($(#[$field])* pub $f: $t,)* }

        impl $name {
            /// The names of all fields.
            pub const FIELDS: &[&str] = &[$(stringify!($f)),*];

            /// Appends `"name":value,` for every selected field to a JSON object that is already open.
            pub fn write_selected(&self, selected: &FieldSet, out: &mut Vec<u8>) -> serde_json::Result<()> {
                $(selected.write(stringify!($f), &self.$f, out)?;)*
                Ok(())
            }

            /// Appends `"name":value,` for every field to a JSON object that is already open.
            pub fn write_fields(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
                $(
                    out.extend_from_slice(concat!("\"", stringify!($f), "\":").as_bytes());
                    serde_json::to_writer(&mut *out, &self.$f)?;
                    out.push(b',');
                )*
                Ok(())
            }
        }
    };
}

json_fields! {
/// One run of a program. With `fields` or `view`, only the selected fields are there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    pub id: ProcId,
    pub name: Option<String>,
    /// The shell text, or the argv quoted for a shell.
    pub command: String,
    pub argv: Vec<String>,
    pub cwd: String,
    pub backend: String,
    pub pid: Option<i32>,
    pub status: Status,
    /// The program is stopped, by `pause`, by a signal or by itself. `resume` continues it.
    #[serde(default)]
    pub stopped: bool,
    /// The reasons why it waits, while `status` is `pending`.
    #[serde(default)]
    pub pending_on: Option<PendingOn>,
    /// Both output streams are at their end.
    pub closed: bool,
    /// The program's own code; 128+n after signal n. Null while unknown.
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub core_dumped: bool,
    pub reason: Option<Reason>,
    pub killed_by: Option<String>,
    pub failure: Option<Failure>,
    /// RFC 3339, UTC. Of a process that has not started: the time of the call.
    pub started_at: String,
    pub exited_at: Option<String>,
    pub uptime_ms: u64,
    pub pty: bool,
    pub pty_size: Option<PtySize>,
    pub stdin: Stdin,
    /// The wait for input in which the program is, as the kernel shows it. Null: it is in none, or that cannot be known.
    #[serde(default)]
    pub needs_input: Option<InputWait>,
    /// The number of processes of its tree that live on after its exit.
    #[serde(default)]
    pub descendants: u64,
    pub task_id: Option<String>,
    pub session_key: Option<String>,
    /// The client that started it. Null: an earlier version did not record it.
    #[serde(default)]
    pub started_by: Option<Box<StartedBy>>,
    pub labels: BTreeMap<String, String>,
    pub notify: bool,
    pub watch: Option<Watch>,
    /// All bytes written so far.
    pub bytes: u64,
    pub lines: u64,
    /// The end of the output so far.
    pub cursor: u64,
    /// True while it is held back: the log is full of output that the connection which follows it has not read. Null: it was
    /// started without `hold`.
    #[serde(default)]
    pub held_back: Option<bool>,
    /// Bytes that the log dropped: the middle beyond `log_max_bytes`.
    pub dropped_bytes: u64,
    /// Bytes that could not be written to disk.
    pub unstored_bytes: u64,
    pub limits: BTreeMap<String, LimitReport>,
    pub sandbox: Sandbox,
    /// The stage on which it ran. Null: it was started without `stage`.
    #[serde(default)]
    pub stage: Option<ProcessStage>,
    /// The script or kernel that it is. Null: it is neither.
    #[serde(default)]
    pub script: Option<ProcessScript>,
    /// The kernel that it is. Null: it is none.
    #[serde(default)]
    pub kernel: Option<ProcessKernel>,
    /// True while its shim runs but does not answer.
    pub detached: Option<bool>,
    /// The reason why its shim cannot be reached from this daemon, and what to do. Null: it can, or the reason is not known.
    #[serde(default)]
    pub unreachable: Option<String>,
    pub request_id: Option<String>,
    /// The previous run, if this is a restart.
    #[serde(default)]
    pub restart_of: Option<ProcId>,
    /// The approval that it waits for, or that let it start or not.
    #[serde(default)]
    pub approval: Option<ApprovalId>,
    /// The process that failed in its sandbox, if this one is its approved retry.
    #[serde(default)]
    pub retry_of: Option<ProcId>,
    /// Its retry without the sandbox, in which it failed. Null: there is none.
    #[serde(default)]
    pub retry: Option<ProcessRetry>,
    /// The result of the patch that it applied: its command was `apply_patch`.
    #[serde(default)]
    pub patch: Option<Box<PatchResult>>,
    /// Damage found in its files: what cannot be read, or is not known any more. Null: none was found.
    #[serde(default)]
    pub damaged: Option<Vec<String>>,
    /// The fields whose values are too long for this answer and cut in it. A text that is cut ends in `…`.
    #[serde(default)]
    pub cut: Option<Vec<String>>,
}
}

impl Process {
    /// Returns true if it ended otherwise than with code 0. One that a client killed has not failed.
    pub fn has_failed(&self) -> bool {
        is_failure(self.reason, self.exit_code)
    }
}

/// Returns true if this reason, None while a process runs, and this exit code are those of a failure.
pub fn is_failure(reason: Option<Reason>, exit_code: Option<i32>) -> bool {
    match reason {
        None | Some(Reason::Killed) => false,
        Some(Reason::Exited) => exit_code != Some(0),
        Some(
            Reason::Signaled
            | Reason::Timeout
            | Reason::Oom
            | Reason::FailedStart
            | Reason::Lost
            | Reason::Dependency
            | Reason::Denied,
        ) => true,
    }
}

/// A range of output that the log dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    pub from: u64,
    pub to: u64,
}

/// The middle part of the output that `max_output_tokens` cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncated {
    /// The first byte that was cut, as a cursor.
    pub from: u64,
    /// The first byte after the cut.
    pub to: u64,
    pub omitted_bytes: u64,
    /// At about 4 bytes per token.
    pub omitted_tokens: u64,
}

/// Bytes `from..to` of the output came from one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    pub stream: Stream,
    pub from: u64,
    pub to: u64,
    /// Time of its first byte, milliseconds since 1970.
    pub at_ms: u64,
}

/// One member of a process tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    pub pid: i32,
    pub ppid: i32,
    pub command: String,
    /// The kernel's letter: R, S, D, Z, T...
    pub state: String,
    pub threads: u64,
    /// CPU time used so far.
    pub cpu_ms: u64,
    pub rss_bytes: u64,
}

/// The resources that a process tree uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub processes: u64,
    pub cpu_ms: u64,
    pub rss_bytes: u64,
}
