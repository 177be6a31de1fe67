//! The parameters of every method. A name that is not here is refused, so a typo never passes.

use crate::event::EventType;
use crate::pattern::Pattern;
use crate::pty::Pty;
use crate::until::Until;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Declares a struct of parameters: required ones first, then those with a default. It refuses unknown names, and leaves
/// defaults out when it is written.
macro_rules! params {
    ($(#[$doc:meta])* $name:ident {
        required { $($(#[$required:meta])* $r:ident: $rt:ty),* $(,)? }
        $($(#[$field:meta])* $f:ident: $t:ty),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$required])* pub $r: $rt,)*
            $($(#[$field])* #[serde(default, skip_serializing_if = "crate::params::is_default")] pub $f: $t,)*
        }
    };
    ($(#[$doc:meta])* $name:ident { $($fields:tt)* }) => {
        params!($(#[$doc])* $name { required {} $($fields)* });
    };
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Which variables of the daemon's environment a process gets, below what the call gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvMode {
    /// A short list of harmless names.
    #[default]
    Clean,
    /// All of them.
    Inherit,
    /// None: only what the call gives.
    Replace,
}

/// What a process reads as its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StdinMode {
    #[default]
    Null,
    Pipe,
}

/// One of the two output streams. A PTY has only `stdout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// What to do with terminal escape sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ansi {
    #[default]
    Strip,
    Keep,
}

/// How output bytes become a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// UTF-8. Each maximal invalid subpart becomes one U+FFFD.
    #[default]
    Text,
    /// The very bytes.
    Base64,
}

/// Whether one of several processes is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    #[default]
    Any,
    All,
}

/// What a process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Starting,
    Running,
    Exited,
    Lost,
}

/// What an `exec` does when a process of that name runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfRunning {
    /// Refuse the start.
    #[default]
    Error,
    /// Give the running one, and start nothing.
    Return,
    /// End it, prove that, and start a new one.
    Restart,
}

/// Where a new consumer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "From")]
pub enum ConsumerStart {
    /// At the oldest event that is kept.
    #[default]
    Oldest,
    /// After the newest.
    Now,
}

params!(
    /// Bounds on one process tree. What this machine cannot enforce is told in the result.
    Limits {
        /// Memory of the whole tree.
        memory_bytes: Option<u64>,
        /// Percent of one CPU; 200 is two CPUs.
        cpu_percent: Option<u64>,
        /// Processes and threads in the tree.
        pids: Option<u64>,
        /// Output kept on disk, below `log_max_bytes`.
        output_bytes: Option<u64>,
        /// End the process when it has written nothing and read nothing for so long.
        idle_ms: Option<u64>,
    }
);

params!(
    ExecParams {
        /// Shell text. Either this or `argv`.
        command: Option<String>,
        /// The program and its arguments.
        argv: Option<Vec<String>>,
        /// Absolute. Default: the home directory.
        cwd: Option<String>,
        /// Variables that always win.
        env: BTreeMap<String, String>,
        env_mode: EnvMode,
        /// The shell that runs `command`. Default: the user's.
        shell: Option<String>,
        /// Whether it is a login shell. Default: true.
        login: Option<bool>,
        /// A terminal: true, or its size.
        pty: Pty,
        stdin: StdinMode,
        /// End the process after so long. Default: never.
        timeout_ms: Option<i64>,
        /// Wait so long for the exit before answering.
        yield_ms: u64,
        /// How much output the answer may carry, at about 4 bytes a token. Default: 10000.
        max_output_tokens: Option<u64>,
        /// A name that no other running process has. It begins neither with `proc_` nor with `@`.
        name: Option<String>,
        task_id: Option<String>,
        session_key: Option<String>,
        labels: BTreeMap<String, String>,
        /// Send a `completion` event.
        notify: bool,
        /// Patterns that make `watch_match` events.
        watch: Vec<Pattern>,
        limits: Limits,
        /// Where it runs. Default: `local`.
        backend: Option<String>,
        /// The same id again gives the same process and starts nothing.
        request_id: Option<String>,
        /// For `name`: what to do when a process of that name runs. Default: `error`, which fails with `already_exists`.
        if_running: IfRunning,
        /// Answer when it is ready: `{match}`, `{port}` or `{quiet_ms}`. Or when it exits, or the time is over.
        ready: Option<Until>,
        /// How long `ready` may take. Default: 60000.
        ready_timeout_ms: Option<i64>,
        /// Send a `heartbeat` event when there is new output, at most this often. At least 60000.
        heartbeat_ms: Option<u64>,
        /// An exit that this call returns is acknowledged for this consumer.
        consumer: Option<String>,
    }
);

params!(
    PollParams {
        required { id: String }
        /// Where to read from. Default: the last 1000 characters.
        cursor: Option<u64>,
        /// Default: 65536.
        max_bytes: Option<u64>,
        /// Wait so long for a new byte, the exit or the close.
        wait_ms: u64,
        stream: Option<Stream>,
        ansi: Ansi,
        encoding: Encoding,
        /// Also tell which bytes came from which stream.
        spans: bool,
    }
);

params!(
    LogParams {
        required { id: String }
        /// The first line to show, from 0. Default: the last lines.
        offset: Option<u64>,
        /// Default: 200.
        limit: Option<u64>,
        stream: Option<Stream>,
        /// Only lines that match this regular expression.
        grep: Option<String>,
        ansi: Ansi,
    }
);

params!(
    WaitParams {
        id: Option<String>,
        ids: Option<Vec<String>>,
        mode: WaitMode,
        until: Until,
        /// Default: 180000.
        timeout_ms: Option<i64>,
        /// Exits that this call returns are acknowledged for this consumer.
        consumer: Option<String>,
    }
);

params!(
    KillParams {
        id: Option<String>,
        ids: Option<Vec<String>>,
        task_id: Option<String>,
        session_key: Option<String>,
        all: Option<bool>,
        /// The first signal. Default: SIGTERM.
        signal: Option<String>,
        /// How long the tree has before SIGKILL. Default: 5000.
        grace_ms: Option<u64>,
    }
);

params!(SignalParams { required { id: String, signal: String } });

params!(
    WriteParams {
        required { id: String }
        data: Option<String>,
        data_base64: Option<String>,
        /// The same id again is acknowledged and not written again.
        write_id: Option<String>,
        /// How long a reader that does not read may hold the call. Default: 5000.
        timeout_ms: Option<u64>,
    }
);

params!(CloseParams { required { id: String } });

params!(ResizeParams { required { id: String, rows: u32, cols: u32 } });

params!(
    ListParams {
        task_id: Option<String>,
        session_key: Option<String>,
        status: Option<Status>,
        /// Only those that ended for this reason.
        reason: Option<crate::process::Reason>,
        /// `key` or `key=value`.
        label: Option<String>,
        /// The name; `*` stands for any text, `?` for any character.
        name: Option<String>,
        /// Of those that ended only these: so long ago or less. `older` counts the others.
        ended_within_ms: Option<u64>,
        /// Also tell what each living tree uses.
        usage: bool,
        /// Default: 200.
        limit: Option<u64>,
    }
);

params!(InspectParams { required { id: String } });

params!(
    ForgetParams {
        ids: Option<Vec<String>>,
        /// Everything that ended so long ago.
        older_than_ms: Option<u64>,
    }
);

params!(SessionActiveParams { session_key: Option<String>, task_id: Option<String> });

params!(SessionEndParams { required { session_key: String } });

params!(
    EventsSubscribeParams {
        /// Only these. Default: all.
        types: Option<Vec<EventType>>,
        session_key: Option<String>,
        task_id: Option<String>,
        /// Only of this process.
        id: Option<String>,
        /// Replay from this event on, itself not included. Default: only what is new.
        after: Option<u64>,
        /// Also push output as it comes. It is not durable: the log is.
        output: bool,
        ansi: Ansi,
    }
);

params!(EventsUnsubscribeParams {
    required {
        /// What `events.subscribe` answered.
        subscription: u64,
    }
});

params!(
    EventsNextParams {
        required {
            /// The name under which the position is kept.
            consumer: String,
        }
        types: Option<Vec<EventType>>,
        session_key: Option<String>,
        task_id: Option<String>,
        id: Option<String>,
        /// Default: 100.
        limit: Option<u64>,
        /// Wait so long for the first event.
        wait_ms: u64,
        /// Where the consumer begins if it is new. Default: `oldest`.
        from: ConsumerStart,
    }
);

params!(EventsAckParams {
    required {
        consumer: String,
        /// Everything up to this event is done with.
        seq: u64,
    }
});

params!(Empty {});

params!(ShutdownParams {
    /// Also end every process.
    kill: bool,
});
