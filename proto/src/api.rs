//! The one list of methods. The daemon's registration, the client's calls and `rpc.discover` come from it.

use crate::error::ErrorKind;
use crate::{params, results};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A method as a type: its name, parameters and result.
pub trait Method: 'static {
    const NAME: &'static str;
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    type Result: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
}

/// A method as data, for the discovery document and for tests over all of them.
pub struct MethodDescription {
    pub name: &'static str,
    pub doc: &'static str,
    pub params: fn(&mut SchemaGenerator) -> Schema,
    pub result: fn(&mut SchemaGenerator) -> Schema,
    pub errors: &'static [ErrorKind],
    /// The parameters of an example call, as JSON.
    pub example: &'static str,
    /// The result of the example call, as JSON, where it is short.
    pub example_result: Option<&'static str>,
    /// Reads a result and prints it again.
    #[cfg(test)]
    pub reprint_result: fn(&str) -> serde_json::Result<String>,
}

impl MethodDescription {
    /// Returns the parameters of the example call.
    pub fn example(&self) -> Value {
        serde_json::from_str(self.example).expect("a test reads every example")
    }

    /// Returns the result of the example call, where it is short.
    pub fn example_result(&self) -> Option<Value> {
        self.example_result.map(|text| serde_json::from_str(text).expect("a test reads every example"))
    }
}

macro_rules! methods {
    ($($(#[doc = $doc:literal])+ $name:ident = $wire:literal ($params:ty) -> $result:ty, [$($kind:ident),*], $example:literal $(=> $example_result:literal)?;)*) => {
        $($(#[doc = $doc])+
        pub struct $name;
        impl Method for $name {
            const NAME: &'static str = $wire;
            type Params = $params;
            type Result = $result;
        })*
        /// Every method, in the order in which `rpc.discover` lists them.
        pub const METHODS: &[MethodDescription] = &[$(MethodDescription {
            name: $wire,
            doc: concat!($($doc, "\n"),+),
            params: |g| g.root_schema_for::<$params>(),
            result: |g| g.subschema_for::<$result>(),
            errors: &[ErrorKind::InvalidParams, $(ErrorKind::$kind),*],
            example: $example,
            example_result: methods!(@optional $($example_result)?),
            #[cfg(test)]
            reprint_result: |text| serde_json::to_string(&serde_json::from_str::<$result>(text)?),
        }),*];
    };
    (@optional) => { None };
    (@optional $text:literal) => { Some($text) };
}

methods! {
    /// Start a process. Answers when the program runs; with `yield_ms`, when it has exited or the time is over.
    Exec = "exec" (params::ExecParams) -> results::ExecResult, [Limit, Denied, SpawnFailed, AlreadyExists, Unavailable],
        r#"{"command": "make test", "cwd": "/home/me/project", "yield_ms": 1000}"#;
    /// Return a process and its output from a cursor on. Consumes nothing.
    Poll = "poll" (params::PollParams) -> results::PollResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab", "cursor": 0, "wait_ms": 10000}"#;
    /// Return the output by line.
    Log = "log" (params::LogParams) -> results::LogResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab", "offset": 0, "limit": 100, "grep": "error|warning"}"#
        => r#"{"id":"proc_0123456789ab","output":"error: no such file\n","total_lines":120,"first_line":17,"lines_shown":1,"matched_lines":1,"next_offset":null,"truncated":false,"gap":null}"#;
    /// Wait until processes exit, close their output or print a match. After a timeout they keep running.
    Wait = "wait" (params::WaitParams) -> results::WaitResult, [NotFound, AmbiguousId],
        r#"{"ids": ["proc_0123456789ab"], "until": {"match": "listening on"}, "timeout_ms": 30000}"#;
    /// Kill whole process trees. Answers when it is verified that no process of them is left.
    Kill = "kill" (params::KillParams) -> results::KillResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab", "signal": "SIGINT", "grace_ms": 2000}"#
        => r#"{"status":"killed","results":[{"id":"proc_0123456789ab","status":"killed","signals_sent":["SIGINT"],"survivors":[],"exit_code":130,"signal":"SIGINT","reason":"killed"}]}"#;
    /// Send one signal to the process group, and do nothing else.
    Signal = "signal" (params::SignalParams) -> results::SignalResult, [NotFound, AmbiguousId, AlreadyExited],
        r#"{"id": "proc_0123456789ab", "signal": "SIGHUP"}"#
        => r#"{"id":"proc_0123456789ab","signal":"SIGHUP"}"#;
    /// Write bytes to stdin, unchanged.
    Write = "write" (params::WriteParams) -> results::WriteResult, [NotFound, AmbiguousId, AlreadyExited, StdinUnavailable],
        r#"{"id": "proc_0123456789ab", "data": "y", "write_id": "answer-1"}"#
        => r#"{"id":"proc_0123456789ab","bytes_written":1,"complete":true,"duplicate":false}"#;
    /// Write bytes and a newline to stdin.
    Submit = "submit" (params::WriteParams) -> results::WriteResult, [NotFound, AmbiguousId, AlreadyExited, StdinUnavailable],
        r#"{"id": "proc_0123456789ab", "data": "print(1)"}"#
        => r#"{"id":"proc_0123456789ab","bytes_written":9,"complete":true,"duplicate":false}"#;
    /// Close the stdin pipe, or type end-of-file into the terminal.
    Close = "close" (params::CloseParams) -> results::CloseResult, [NotFound, AmbiguousId, AlreadyExited, StdinUnavailable],
        r#"{"id": "proc_0123456789ab"}"#
        => r#"{"id":"proc_0123456789ab","stdin":"closed"}"#;
    /// Set the size of a process's terminal.
    Resize = "resize" (params::ResizeParams) -> results::ResizeResult, [NotFound, AmbiguousId, AlreadyExited],
        r#"{"id": "proc_0123456789ab", "rows": 50, "cols": 132}"#
        => r#"{"id":"proc_0123456789ab","rows":50,"cols":132}"#;
    /// List processes, newest first.
    List = "list" (params::ListParams) -> results::ListResult, [],
        r#"{"status": "running", "label": "kind=server"}"#;
    /// Return a process with its tree, its files and the resources it uses.
    Inspect = "inspect" (params::InspectParams) -> results::InspectResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab"}"#;
    /// Remove the records and logs of finished processes.
    Forget = "forget" (params::ForgetParams) -> results::ForgetResult, [NotFound, AmbiguousId],
        r#"{"older_than_ms": 3600000}"#
        => r#"{"forgotten":["proc_0123456789ab"],"skipped":[]}"#;
    /// List the processes that a session or task still runs.
    SessionActive = "session.active" (params::SessionActiveParams) -> results::SessionActiveResult, [],
        r#"{"session_key": "chat-42"}"#
        => r#"{"count":1,"ids":["proc_0123456789ab"]}"#;
    /// Kill the processes that a session still runs, and return them.
    SessionEnd = "session.end" (params::SessionEndParams) -> results::SessionEndResult, [],
        r#"{"session_key": "chat-42"}"#
        => r#"{"session_key":"chat-42","killed":[],"count":0}"#;
    /// Push events, and output with `output`, as notifications `events.event`. Returns the subscription's number.
    EventsSubscribe = "events.subscribe" (params::EventsSubscribeParams) -> u64, [NotFound, AmbiguousId, Limit, Unavailable],
        r#"{"session_key": "chat-42", "after": 1200}"#
        => r#"1"#;
    /// End a subscription.
    EventsUnsubscribe = "events.unsubscribe" (params::EventsUnsubscribeParams) -> bool, [],
        r#"{"subscription": 1}"#
        => r#"true"#;
    /// Return the next events for a named consumer. An event comes again until it is acknowledged.
    EventsNext = "events.next" (params::EventsNextParams) -> results::EventsNextResult, [NotFound, AmbiguousId, Limit],
        r#"{"consumer": "chat-42", "session_key": "chat-42", "limit": 10, "wait_ms": 30000}"#
        => r#"{"consumer":"chat-42","events":[],"position":1217,"last":1217,"missing":null,"created":false,"forgotten":null,"damaged":null}"#;
    /// Acknowledge all events up to a number.
    EventsAck = "events.ack" (params::EventsAckParams) -> results::EventsAckResult, [NotFound],
        r#"{"consumer": "chat-42", "seq": 1217}"#
        => r#"{"consumer":"chat-42","position":1217}"#;
    /// Return the daemon's version, counts, limits, paths, and the features of this system.
    DaemonInfo = "daemon.info" (params::Empty) -> results::DaemonInfoResult, [],
        r#"{}"#;
    /// Stop the daemon. Processes keep running, unless `kill` is true.
    DaemonShutdown = "daemon.shutdown" (params::ShutdownParams) -> results::ShutdownResult, [],
        r#"{"kill": false}"#
        => r#"{"stopping":true,"killed":[]}"#;
    /// Return the OpenRPC document of all methods and events.
    RpcDiscover = "rpc.discover" (params::Empty) -> Value, [],
        r#"{}"#;
}
