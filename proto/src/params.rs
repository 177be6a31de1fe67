//! The parameters of every method. Unknown names are rejected, so that a typo never passes.

pub use crate::approval::Escalate;
pub use crate::consumer_start::ConsumerStart;
pub use crate::env::EnvMode;
use crate::event::EventType;
use crate::fields::ProcessParams;
use crate::keys::Key;
pub use crate::log::LogParams;
use crate::pattern::Pattern;
use crate::pty::Pty;
use crate::restart::RestartSetting;
use crate::sandbox::SandboxSetting;
pub use crate::stream::{StdinMode, Stream};
pub use crate::text_form::{Ansi, Encoding};
use crate::until::Until;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Declares a struct of parameters: required ones first, then those with a default. It rejects unknown names, and leaves
/// defaults out when it is written. With `process` before its name it also has `fields` and `view`: for a method whose result
/// has processes.
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
    (process $name:ident { required { $($required:tt)* } $($fields:tt)* }) => {
        params!($name {
            required { $($required)* }
            $($fields)*
            /// Only these fields of each process in the result.
            fields: Option<Vec<String>>,
            /// A set of fields with a name, in place of `fields`.
            view: View,
        });

        impl ProcessParams for $name {
            fn selection(&self) -> (Option<&[String]>, View) {
                (self.fields.as_deref(), self.view)
            }
        }
    };
    (process $name:ident { $($fields:tt)* }) => {
        params!(process $name { required {} $($fields)* });
    };
    ($(#[$doc:meta])* $name:ident { $($fields:tt)* }) => {
        params!($(#[$doc])* $name { required {} $($fields)* });
    };
}
pub(crate) use params;

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The fields of each process in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// All of them.
    #[default]
    Full,
    /// `id`, `name`, `status`, `exit_code`, `reason`, `cursor` and `output`.
    Short,
}

/// Number of processes for which `wait` must see its condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    #[default]
    Any,
    All,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    Starting,
    Running,
    Exited,
    Lost,
}

/// Action of an `exec` if a process of that name is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfRunning {
    /// Refuse the start.
    #[default]
    Error,
    /// Return the running process, and start nothing.
    Return,
    /// Kill the running process, verify that it is gone, and start a new one.
    Restart,
}

params!(
    /// Limits of one process tree. `limits` in the result reports those that this machine cannot enforce.
    Limits {
        /// Memory of the whole tree.
        memory_bytes: Option<u64>,
        /// Percent of one CPU; 200 is two CPUs.
        cpu_percent: Option<u64>,
        /// Processes and threads in the tree.
        pids: Option<u64>,
        /// Output kept on disk, below `log_max_bytes`.
        output_bytes: Option<u64>,
        /// Kill the process after this time without output and input, in milliseconds.
        idle_ms: Option<u64>,
    }
);

params!(
    process ExecParams {
        /// Shell text. Either this or `argv`.
        command: Option<String>,
        /// The program and its arguments.
        argv: Option<Vec<String>>,
        /// Absolute. Default: the home directory.
        cwd: Option<String>,
        /// Variables that override all others. Values are in memory only: on no disk, in no log and in no answer.
        env: BTreeMap<String, String>,
        /// Variables like `env`, with their values in base64: for values that are not UTF-8. A name is in one of the two.
        env_base64: BTreeMap<String, String>,
        env_mode: EnvMode,
        /// The shell that runs `command`. Default: the user's.
        shell: Option<String>,
        /// Run a login shell. Default: true.
        login: Option<bool>,
        /// Run in a terminal: true, or its size.
        pty: Pty,
        stdin: StdinMode,
        /// Let stdout and stderr share one pipe, so that their order is exact. All of it is then `stdout`.
        merge: bool,
        /// Keep output beyond the cap for this connection until it has read it: the program is held back instead, like a
        /// writer to a full pipe. Ends with the connection.
        hold: bool,
        /// Kill the process after this time. Default: never.
        timeout_ms: Option<i64>,
        /// Wait up to this time for the exit before answering.
        yield_ms: u64,
        /// Maximum output in the result, at about 4 bytes per token. Default: 10000.
        max_output_tokens: Option<u64>,
        /// Only the last lines of the output.
        tail_lines: Option<u64>,
        /// Show a line that was redrawn with a carriage return as it stood last. Default: true for text without escape sequences.
        collapse: Option<bool>,
        /// A name, unique among running processes. It must not begin with `proc_` or `@`.
        name: Option<String>,
        task_id: Option<String>,
        session_key: Option<String>,
        labels: BTreeMap<String, String>,
        /// Publish a `completion` event.
        notify: bool,
        /// Publish `watch_match` events for lines that match one of these.
        watch: Vec<Pattern>,
        limits: Limits,
        /// Refuse the start with `unavailable` if one of `limits` cannot be enforced here. Default: start, and report it in `limits`.
        require_limits: bool,
        /// The backend that runs it. Default: `local`.
        backend: Option<String>,
        /// Idempotency key: a call with the same key returns the same process and starts nothing. With another command, directory, names
        /// in `env`, `limits`, `backend` or `name` it fails with `conflict`.
        request_id: Option<String>,
        /// Action if a process of this `name` is running. Default: `error`, which fails with `already_exists`.
        if_running: IfRunning,
        /// Start it again after it ended: `no`, `on-failure`, `always`, or a policy with its numbers. Default: `no`.
        restart: RestartSetting,
        /// Answer when this condition holds (`{match}`, `{port}` or `{quiet_ms}`), when the process exits, or after `ready_timeout_ms`.
        ready: Option<Until>,
        /// Maximum wait for `ready`. Default: 60000.
        ready_timeout_ms: Option<i64>,
        /// Publish a `heartbeat` event if there is new output, at most once in this time. At least 60000.
        heartbeat_ms: Option<u64>,
        /// Start when this queue has a free slot, in the order of the calls. One that is not configured has 1 slot.
        queue: Option<String>,
        /// Start when these processes have ended: ids or names.
        after: Vec<String>,
        /// The processes in `after` must exit with code 0; if one does not, this one ends with reason `dependency`. Default: true.
        after_ok: Option<bool>,
        /// The confinement: the name of a profile, or an object with its keys. Default: `policy.default` of the config.
        sandbox: Option<SandboxSetting>,
        /// An exit that this call returns is acknowledged for this consumer.
        consumer: Option<String>,
        /// Ask a person to run it under a wider profile.
        escalate: Option<Escalate>,
        /// The time that a person has to decide, if someone must be asked. 0: deny instead of asking. Default: 600000.
        approval_timeout_ms: Option<u64>,
        /// Run on an overlay: nothing below it changes until `stage.commit`. Refused with `unavailable` if the file system cannot carry one.
        stage: bool,
    }
);

params!(
    process PollParams {
        required { id: String }
        /// Position to read from. Default: the last 1000 characters.
        cursor: Option<u64>,
        /// Default: 65536.
        max_bytes: Option<u64>,
        /// Wait up to this time for new output, the exit or the end of the output.
        wait_ms: u64,
        stream: Option<Stream>,
        ansi: Ansi,
        encoding: Encoding,
        /// Only the last lines of the output.
        tail_lines: Option<u64>,
        /// Show a line that was redrawn with a carriage return as it stood last. Default: true for text without escape sequences.
        collapse: Option<bool>,
        /// Also return the ranges of bytes that came from each stream.
        spans: bool,
        /// Take the hold of a process that was started with `hold`, for this connection: after a lost connection.
        hold: bool,
        /// Hide secrets in the output: values that the process was given, known shapes, dumps of environments.
        redact: bool,
    }
);

params!(
    process WaitParams {
        id: Option<String>,
        ids: Option<Vec<String>>,
        /// Instead of ids: all processes of this session that run now. If there is none, the answer comes at once.
        session_key: Option<String>,
        mode: WaitMode,
        until: Until,
        /// Also answer, with `status: "input"`, when one of the processes waits for input.
        or_input: bool,
        /// Default: 180000.
        timeout_ms: Option<i64>,
        /// Only the last lines of the output.
        tail_lines: Option<u64>,
        /// Show a line that was redrawn with a carriage return as it stood last. Default: true for text without escape sequences.
        collapse: Option<bool>,
        /// Exits that this call returns are acknowledged for this consumer.
        consumer: Option<String>,
        /// Hide secrets in the output: values that the process was given, known shapes, dumps of environments.
        redact: bool,
    }
);

params!(
    KillParams {
        id: Option<String>,
        ids: Option<Vec<String>>,
        task_id: Option<String>,
        session_key: Option<String>,
        /// Those with this label: `key` or `key=value`.
        label: Option<String>,
        /// Those whose name matches this pattern; `*` is any text, `?` any character.
        name: Option<String>,
        all: Option<bool>,
        /// The first signal. Default: SIGTERM.
        signal: Option<String>,
        /// Time before SIGKILL. Default: 5000.
        grace_ms: Option<u64>,
    }
);

params!(SignalParams { required { id: String, signal: String } });

params!(
    process RestartParams {
        required { id: String }
        /// The whole environment of the new run. Default: that of the old one, which its shim keeps while it lives.
        env: Option<BTreeMap<String, String>>,
        /// Variables like `env`, with their values in base64: for values that are not UTF-8.
        env_base64: Option<BTreeMap<String, String>>,
        /// Time before SIGKILL. Default: 5000.
        grace_ms: Option<u64>,
    }
);

params!(process PauseParams { required { id: String } });
params!(process ResumeParams { required { id: String } });

params!(
    WriteParams {
        required { id: String }
        data: Option<String>,
        data_base64: Option<String>,
        /// Keys to type instead of `data`, in order: names as `Up`, `C-c` and `Enter`, text, or `{text}`. Only for `write`.
        keys: Option<Vec<Key>>,
        /// Keep it out of events, logs and files. On a terminal, wait until it does not show what is typed.
        secret: bool,
        /// Idempotency key: a write with the same key is acknowledged and not repeated. The last 4096 keys of a process are
        /// remembered; the result has the number in `remembered_write_ids`.
        write_id: Option<String>,
        /// Maximum wait for the program to read. Default: 5000.
        timeout_ms: Option<u64>,
    }
);

params!(CloseParams { required { id: String } });
params!(ScreenParams { required { id: String } });
params!(ResizeParams { required { id: String, rows: u32, cols: u32 } });

params!(
    process ListParams {
        task_id: Option<String>,
        session_key: Option<String>,
        status: Option<Status>,
        /// Only processes that ended for this reason.
        reason: Option<crate::process::Reason>,
        /// Only processes that are stopped, or that are not.
        stopped: Option<bool>,
        /// `key` or `key=value`.
        label: Option<String>,
        /// The name; `*` stands for any text, `?` for any character.
        name: Option<String>,
        /// Leave out processes that ended longer ago than this. `older` counts them.
        ended_within_ms: Option<u64>,
        /// Only processes that failed: lost, not started, ended by a signal, a limit or a timeout, or with a code other than 0.
        /// One that a client killed has not failed.
        failed: bool,
        /// Also return the resources that each running tree uses, and the ports on which it listens.
        usage: bool,
        /// Default: 200.
        limit: Option<u64>,
    }
);

params!(process InspectParams { required { id: String } });

params!(
    ForgetParams {
        ids: Option<Vec<String>>,
        /// All processes that ended at least this long ago.
        older_than_ms: Option<u64>,
        /// All that failed, as `list` selects them; with `older_than_ms` those that are as old too.
        failed: bool,
    }
);

params!(SessionActiveParams { session_key: Option<String>, task_id: Option<String> });
params!(SessionEndParams { required { session_key: String } });

params!(
    EventsSubscribeParams {
        /// Only these types. Default: all.
        types: Option<Vec<EventType>>,
        session_key: Option<String>,
        task_id: Option<String>,
        /// Only events of this process.
        id: Option<String>,
        /// Replay the events after this number first. Default: only new events.
        after: Option<u64>,
        /// Also push output as it is written. Pushes are not stored; the log is.
        output: bool,
        ansi: Ansi,
    }
);

params!(EventsUnsubscribeParams {
    required {
        /// The number that `events.subscribe` returned.
        subscription: u64,
    }
});

params!(
    EventsNextParams {
        required {
            /// The consumer's name. Its position is stored under it.
            consumer: String,
        }
        types: Option<Vec<EventType>>,
        session_key: Option<String>,
        task_id: Option<String>,
        id: Option<String>,
        /// Default: 100.
        limit: Option<u64>,
        /// Wait up to this time for the first event.
        wait_ms: u64,
        /// The first event of the consumer if it is new. Default: `oldest`.
        from: ConsumerStart,
    }
);

params!(EventsAckParams {
    required {
        consumer: String,
        /// Acknowledge all events up to this number.
        seq: u64,
    }
});

params!(QueuesSetParams {
    required {
        /// The queue. A new name makes a new queue.
        name: String,
    }
    /// Number of its processes that run at the same time, at least 1.
    slots: Option<u64>,
    /// True: no process is started from it.
    paused: Option<bool>,
});

params!(Empty {});

params!(ShutdownParams {
    /// Also kill all processes.
    kill: bool,
});
