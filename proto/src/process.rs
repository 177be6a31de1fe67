//! A process as every method reports it.

use crate::id::ProcId;
use crate::params::{Status, Stream};
use crate::pattern::Pattern;
use crate::pty::PtySize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// By itself.
    Exited,
    /// By a signal that toold did not send to end it.
    Signaled,
    /// Somebody asked toold to kill it; `killed_by` says who.
    Killed,
    /// `timeout_ms` or `limits.idle_ms` ran out; `killed_by` says which.
    Timeout,
    /// The kernel ended it for want of memory.
    Oom,
    /// It never ran; `failure` says what went wrong.
    FailedStart,
    /// Nobody could see it end.
    Lost,
}

/// What a process has as its standard input now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    Null,
    Pipe,
    Pty,
    Closed,
}

/// Why a program could not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The step that failed: `exec`, `chdir`, `pty`, ...
    pub step: String,
    pub errno: i32,
    /// `ENOENT` and the like.
    pub error: String,
    /// What it was about: the program, the directory.
    pub path: String,
}

/// What the watching of a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchState {
    /// The next match is told at once.
    Watching,
    /// A match was told a moment ago: further ones are counted.
    Cooldown,
    /// Too many matches over all processes: all are counted and none is told.
    Silent,
    /// It matched too often, again and again: nothing is looked at any more.
    Disabled,
    /// The program has ended, and everything it printed was looked at.
    Ended,
}

/// Watch patterns and what they did so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Watch {
    pub patterns: Vec<Pattern>,
    /// Lines that matched.
    pub hits: u64,
    /// Lines of them that were not told.
    pub suppressed: u64,
    pub disabled: bool,
    pub state: WatchState,
    /// Windows with a drop, in a row.
    pub strikes: u32,
    /// Until the next match can be told.
    pub quiet_ms: u64,
    /// Output that was dropped from the log before it could be looked at.
    #[serde(default)]
    pub unseen_bytes: u64,
    /// Why it is quiet, for a person.
    pub note: Option<String>,
}

/// What confines a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sandbox {
    /// `none`: nothing confines it.
    pub kind: String,
    /// What was proven to be in force.
    pub enforced: Vec<String>,
}

/// One limit that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReport {
    pub requested: u64,
    /// By what: `cgroup2`, `cgroup1`, `shim`. Null: not enforced here.
    pub enforced_by: Option<String>,
    /// Why not, or what to know about it.
    pub note: Option<String>,
}

/// A struct that also prints itself field by field: a name that stands in the code needs no look at each of its letters.
macro_rules! json_fields {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field:meta])* pub $f:ident: $t:ty,)* }) => {
        $(#[$doc])*
        pub struct $name { $($(#[$field])* pub $f: $t,)* }

        impl $name {
            /// Puts `"name":value` of all its fields into an object that is begun, each with a comma behind it.
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
/// One run of a program.
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
    /// Both output streams are at their end.
    pub closed: bool,
    /// The program's own code; 128+n after signal n. Null while unknown.
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub core_dumped: bool,
    pub reason: Option<Reason>,
    pub killed_by: Option<String>,
    pub failure: Option<Failure>,
    /// RFC 3339, UTC.
    pub started_at: String,
    pub exited_at: Option<String>,
    pub uptime_ms: u64,
    pub pty: bool,
    pub pty_size: Option<PtySize>,
    pub stdin: Stdin,
    pub task_id: Option<String>,
    pub session_key: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub notify: bool,
    pub watch: Option<Watch>,
    /// All the bytes it ever wrote.
    pub bytes: u64,
    pub lines: u64,
    /// The end of the output so far.
    pub cursor: u64,
    /// Bytes not kept: the middle beyond `log_max_bytes`.
    pub dropped_bytes: u64,
    /// Bytes not kept because the disk refused them.
    pub unstored_bytes: u64,
    pub limits: BTreeMap<String, LimitReport>,
    pub sandbox: Sandbox,
    /// True while its shim lives but does not answer.
    pub detached: Option<bool>,
    pub request_id: Option<String>,
}
}

/// A range of output that is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    pub from: u64,
    pub to: u64,
}

/// What a token budget cut out of the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncated {
    /// The first byte that was cut, as a cursor.
    pub from: u64,
    /// The first byte after the cut.
    pub to: u64,
    pub omitted_bytes: u64,
    /// At about 4 bytes a token.
    pub omitted_tokens: u64,
}

/// Bytes `from..to` of the output came from one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    pub stream: Stream,
    pub from: u64,
    pub to: u64,
    /// When its first byte came, milliseconds since 1970.
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

/// What a process tree uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub processes: u64,
    pub cpu_ms: u64,
    pub rss_bytes: u64,
}
