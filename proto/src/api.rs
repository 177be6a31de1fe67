//! The one list of methods. The daemon, the client and `rpc.discover` all come from it.

use crate::error::ErrorKind;
use crate::{params, results};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A method by type: its name, and what goes in and out.
pub trait Method: 'static {
    const NAME: &'static str;
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    type Result: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
}

/// A method as data, for the discovery document and for tests over all of them.
pub struct Description {
    pub name: &'static str,
    pub doc: &'static str,
    pub params: fn(&mut SchemaGenerator) -> Schema,
    pub result: fn(&mut SchemaGenerator) -> Schema,
    pub errors: &'static [ErrorKind],
    /// An example call's parameters, as JSON.
    pub example: &'static str,
}

impl Description {
    /// The example call's parameters.
    pub fn example(&self) -> Value {
        serde_json::from_str(self.example).expect("a test reads every example")
    }
}

macro_rules! methods {
    ($($(#[doc = $doc:literal])+ $name:ident = $wire:literal ($params:ty) -> $result:ty, [$($kind:ident),*], $example:literal;)*) => {
        $($(#[doc = $doc])+
        pub struct $name;
        impl Method for $name {
            const NAME: &'static str = $wire;
            type Params = $params;
            type Result = $result;
        })*
        /// Every method, in the order of the contract.
        pub const METHODS: &[Description] = &[$(Description {
            name: $wire,
            doc: concat!($($doc, "\n"),+),
            params: |g| g.root_schema_for::<$params>(),
            result: |g| g.subschema_for::<$result>(),
            errors: &[ErrorKind::InvalidParams, $(ErrorKind::$kind),*],
            example: $example,
        }),*];
    };
}

methods! {
    /// Start a process. Answers when it runs, or with `yield_ms` when it has exited or the yield is over.
    Exec = "exec" (params::ExecParams) -> results::ExecResult, [Limit, Denied, SpawnFailed, AlreadyExists, Unavailable],
        r#"{"command": "make test", "cwd": "/home/me/project", "yield_ms": 1000}"#;
    /// Look at a process and read its output from a cursor. Consumes nothing.
    Poll = "poll" (params::PollParams) -> results::PollResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab", "cursor": 0, "wait_ms": 10000}"#;
    /// Read the output by line.
    Log = "log" (params::LogParams) -> results::LogResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab", "offset": 0, "limit": 100, "grep": "error|warning"}"#;
    /// Wait until processes exit, close their output or print a match. A timeout leaves them alone.
    Wait = "wait" (params::WaitParams) -> results::WaitResult, [NotFound, AmbiguousId],
        r#"{"ids": ["proc_0123456789ab"], "until": {"match": "listening on"}, "timeout_ms": 30000}"#;
    /// End whole process trees, and answer when that is proven.
    Kill = "kill" (params::KillParams) -> results::KillResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab", "signal": "SIGINT", "grace_ms": 2000}"#;
    /// Send one signal to the process group, nothing more.
    Signal = "signal" (params::SignalParams) -> results::SignalResult, [NotFound, AmbiguousId, AlreadyExited],
        r#"{"id": "proc_0123456789ab", "signal": "SIGHUP"}"#;
    /// Write to stdin as it is.
    Write = "write" (params::WriteParams) -> results::WriteResult, [NotFound, AmbiguousId, AlreadyExited, StdinUnavailable],
        r#"{"id": "proc_0123456789ab", "data": "y", "write_id": "answer-1"}"#;
    /// Write to stdin with a newline after it.
    Submit = "submit" (params::WriteParams) -> results::WriteResult, [NotFound, AmbiguousId, AlreadyExited, StdinUnavailable],
        r#"{"id": "proc_0123456789ab", "data": "print(1)"}"#;
    /// Close the stdin pipe, or type end-of-file into the terminal.
    Close = "close" (params::CloseParams) -> results::CloseResult, [NotFound, AmbiguousId, AlreadyExited, StdinUnavailable],
        r#"{"id": "proc_0123456789ab"}"#;
    /// Tell a terminal its new size.
    Resize = "resize" (params::ResizeParams) -> results::ResizeResult, [NotFound, AmbiguousId, AlreadyExited],
        r#"{"id": "proc_0123456789ab", "rows": 50, "cols": 132}"#;
    /// Processes, newest first.
    List = "list" (params::ListParams) -> results::ListResult, [],
        r#"{"status": "running", "label": "kind=server"}"#;
    /// A process with its tree, its files and what it uses.
    Inspect = "inspect" (params::InspectParams) -> results::InspectResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab"}"#;
    /// Remove finished records and their logs.
    Forget = "forget" (params::ForgetParams) -> results::ForgetResult, [NotFound, AmbiguousId],
        r#"{"older_than_ms": 3600000}"#;
    /// What a session or task still runs.
    SessionActive = "session.active" (params::SessionActiveParams) -> results::SessionActiveResult, [],
        r#"{"session_key": "chat-42"}"#;
    /// Kill what a session still runs, and say what.
    SessionEnd = "session.end" (params::SessionEndParams) -> results::SessionEndResult, [],
        r#"{"session_key": "chat-42"}"#;
    /// Push events, and output if asked, as notifications `events.event`. Answers the subscription's number.
    EventsSubscribe = "events.subscribe" (params::EventsSubscribeParams) -> u64, [NotFound, AmbiguousId, Limit, Unavailable],
        r#"{"session_key": "chat-42", "after": 1200}"#;
    /// End a subscription.
    EventsUnsubscribe = "events.unsubscribe" (params::EventsUnsubscribeParams) -> bool, [],
        r#"{"subscription": 1}"#;
    /// The next events for a named consumer. They come again until they are acknowledged.
    EventsNext = "events.next" (params::EventsNextParams) -> results::EventsNextResult, [NotFound, AmbiguousId, Limit],
        r#"{"consumer": "chat-42", "session_key": "chat-42", "limit": 10, "wait_ms": 30000}"#;
    /// Acknowledge everything up to an event.
    EventsAck = "events.ack" (params::EventsAckParams) -> results::EventsAckResult, [NotFound],
        r#"{"consumer": "chat-42", "seq": 1217}"#;
    /// The daemon: version, counts, limits in force, features of this system, paths.
    DaemonInfo = "daemon.info" (params::Empty) -> results::DaemonInfoResult, [],
        r#"{}"#;
    /// Stop the daemon. Processes go on, unless `kill`.
    DaemonShutdown = "daemon.shutdown" (params::ShutdownParams) -> results::ShutdownResult, [],
        r#"{"kill": false}"#;
    /// The OpenRPC document of all of this.
    RpcDiscover = "rpc.discover" (params::Empty) -> Value, [],
        r#"{}"#;
}
