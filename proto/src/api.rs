//! The one list of methods. The daemon's registration, the client's calls and `rpc.discover` come from it.

use crate::error::ErrorKind;
use crate::examples::{SCRIPT_EXAMPLE, process_example};
use crate::{approval, files, kernel, params, policy, results, script, stage, tools};
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
    /// The first line is the summary, the rest the description.
    pub doc: &'static str,
    pub params: fn(&mut SchemaGenerator) -> Schema,
    pub result: fn(&mut SchemaGenerator) -> Schema,
    pub errors: &'static [ErrorKind],
    /// The parameters of an example call, as JSON.
    pub example: &'static str,
    /// The result of the example call, as JSON. Fields with a default may be left out.
    example_result: Option<&'static str>,
    /// Reads a result and writes it with all of its fields.
    read_result: fn(&str) -> serde_json::Result<Value>,
}

impl MethodDescription {
    /// Returns the parameters of the example call.
    pub fn example(&self) -> Value {
        serde_json::from_str(self.example).expect("a test reads every example")
    }

    /// Returns the result of the example call, with all of its fields.
    pub fn example_result(&self) -> Option<Value> {
        self.example_result.map(|text| (self.read_result)(text).expect("a test reads every example"))
    }

    /// Returns one line on the method.
    pub fn summary(&self) -> &'static str {
        self.doc.lines().next().unwrap_or_default().trim()
    }

    /// Returns the text after the summary.
    pub fn description(&self) -> String {
        let lines: Vec<&str> = self.doc.lines().skip(1).map(str::trim).collect();
        lines.join("\n").trim().to_owned()
    }
}

macro_rules! methods {
    ($($(#[doc = $doc:literal])+ $name:ident = $wire:literal ($params:ty) -> $result:ty, [$($kind:ident),*], $example:literal $(=> $example_result:expr)?;)*) => {
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
            read_result: |text| serde_json::to_value(serde_json::from_str::<$result>(text)?),
        }),*];
    };
    (@optional) => { None };
    (@optional $text:expr) => { Some($text) };
}

methods! {
    /// Start a process.
    /// Answers when the program runs; with `yield_ms`, when it has exited or the time is over.
    Exec = "exec" (params::ExecParams) -> results::ExecResult, [Limit, Denied, SpawnFailed, AlreadyExists, Unavailable, Conflict, Cancelled],
        r#"{"command": "make test", "cwd": "/home/me/project", "yield_ms": 1000}"#
        => process_example!(r#""output":"make: *** No rule\n","next_cursor":25,"truncated":null,"gap":null"#);
    /// Return a process and its output from a cursor on.
    /// Consumes nothing. With `wait_ms` it waits for new output, the exit or the end of the output.
    Poll = "poll" (params::PollParams) -> results::PollResult, [NotFound, AmbiguousId, Cancelled],
        r#"{"id": "proc_0123456789ab", "cursor": 0, "wait_ms": 10000}"#
        => process_example!(r#""output":"make: *** No rule\n","from":0,"next_cursor":25,"gap":null"#);
    /// Return the output by line.
    /// Without `offset` these are the last lines. With `grep` only lines that match.
    Log = "log" (params::LogParams) -> results::LogResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab", "offset": 0, "limit": 100, "grep": "error|warning"}"#
        => r#"{"id":"proc_0123456789ab","output":"error: no such file\n","total_lines":120,"first_line":17,"lines_shown":1,"matched_lines":1,"next_offset":null,"truncated":false,"gap":null}"#;
    /// Wait until processes exit, close their output, print a match or wait for input.
    /// After a timeout they keep running. What was printed before the call matches too.
    Wait = "wait" (params::WaitParams) -> results::WaitResult, [NotFound, AmbiguousId, Cancelled],
        r#"{"ids": ["proc_0123456789ab"], "until": {"match": "listening on"}, "timeout_ms": 30000}"#
        => concat!(
            r#"{"status":"matched","processes":["#,
            process_example!(r#""output":"listening on 8080\n","next_cursor":25,"matched":"listening on 8080""#),
            r#"],"timeout_ms":30000,"clamped":false,"note":null}"#
        );
    /// Kill whole process trees.
    /// Answers when it is verified that no process of them is left, or with the survivors.
    Kill = "kill" (params::KillParams) -> results::KillResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab", "signal": "SIGINT", "grace_ms": 2000}"#
        => r#"{"status":"killed","results":[{"id":"proc_0123456789ab","status":"killed","signals_sent":["SIGINT"],"survivors":[],"exit_code":130,"signal":"SIGINT","reason":"killed"}]}"#;
    /// Send one signal to the process group.
    /// Does nothing else: it neither waits nor kills what is left.
    Signal = "signal" (params::SignalParams) -> results::SignalResult, [NotFound, AmbiguousId, AlreadyExited],
        r#"{"id": "proc_0123456789ab", "signal": "SIGHUP"}"#
        => r#"{"id":"proc_0123456789ab","signal":"SIGHUP"}"#;
    /// Start a process again.
    /// The same program, arguments, directory, name and limits, after its old tree is proven to be gone; the new run has an id of
    /// its own. If the program or the directory is gone, the old process keeps running. Environment values come from `env`, or
    /// from the shim while it lives.
    Restart = "restart" (params::RestartParams) -> results::RestartResult, [NotFound, AmbiguousId, Limit, SpawnFailed, AlreadyExists, Unavailable],
        r#"{"id": "web", "grace_ms": 2000}"#
        => process_example!(r#""status":"running","closed":false,"exit_code":null,"reason":null,"exited_at":null"#, r#""restart_of":"proc_0123456789aa""#);
    /// Stop a process and all of its descendants.
    /// Sends SIGSTOP, and answers when all have stopped, or after 3 seconds with `stopped` false.
    Pause = "pause" (params::PauseParams) -> results::PauseResult, [NotFound, AmbiguousId, AlreadyExited, Unavailable],
        r#"{"id": "proc_0123456789ab"}"#
        => process_example!(r#""status":"running","closed":false,"exit_code":null,"reason":null,"exited_at":null"#, r#""stopped":true"#);
    /// Continue a process and all of its descendants.
    /// Sends SIGCONT. A process that is not stopped goes on as before.
    Resume = "resume" (params::ResumeParams) -> results::ResumeResult, [NotFound, AmbiguousId, AlreadyExited, Unavailable],
        r#"{"id": "proc_0123456789ab"}"#
        => process_example!(r#""status":"running","closed":false,"exit_code":null,"reason":null,"exited_at":null"#, r#""stopped":false"#);
    /// Write bytes to stdin, unchanged, or type keys.
    /// Answers when the program has taken them all, or with the number that it took within `timeout_ms`.
    Write = "write" (params::WriteParams) -> results::WriteResult, [NotFound, AmbiguousId, AlreadyExited, StdinUnavailable],
        r#"{"id": "proc_0123456789ab", "data": "y", "write_id": "answer-1"}"#
        => r#"{"id":"proc_0123456789ab","bytes_written":1,"complete":true,"duplicate":false}"#;
    /// Write bytes and a newline to stdin.
    /// Otherwise like `write`.
    Submit = "submit" (params::WriteParams) -> results::WriteResult, [NotFound, AmbiguousId, AlreadyExited, StdinUnavailable],
        r#"{"id": "proc_0123456789ab", "data": "print(1)"}"#
        => r#"{"id":"proc_0123456789ab","bytes_written":9,"complete":true,"duplicate":false}"#;
    /// Close stdin.
    /// Closes the pipe, or types end-of-file into the terminal.
    Close = "close" (params::CloseParams) -> results::CloseResult, [NotFound, AmbiguousId, AlreadyExited, StdinUnavailable],
        r#"{"id": "proc_0123456789ab"}"#
        => r#"{"id":"proc_0123456789ab","stdin":"closed"}"#;
    /// Return the screen of a process's terminal as text.
    /// The screen stays after the exit. Only for processes that were started with `pty`.
    Screen = "screen" (params::ScreenParams) -> results::ScreenResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab"}"#
        => r#"{"id":"proc_0123456789ab","rows":24,"cols":80,"text":"Overwrite? [y/N]","cursor":{"row":0,"col":17,"visible":true},"title":null,"alternate":false,"next_cursor":17}"#;
    /// Set the size of a process's terminal.
    /// Only for processes that were started with `pty`.
    Resize = "resize" (params::ResizeParams) -> results::ResizeResult, [NotFound, AmbiguousId, AlreadyExited],
        r#"{"id": "proc_0123456789ab", "rows": 50, "cols": 132}"#
        => r#"{"id":"proc_0123456789ab","rows":50,"cols":132}"#;
    /// List processes, newest first.
    /// The filters select those for which all of them hold. `total` counts all that were selected.
    List = "list" (params::ListParams) -> results::ListResult, [],
        r#"{"status": "running", "label": "kind=server"}"#
        => concat!(r#"{"processes":["#, process_example!(r#""preview":"listening on 8080\n""#), r#"],"total":1}"#);
    /// Return a process with its tree.
    /// Also its files, the names of its environment variables and the resources that it uses.
    Inspect = "inspect" (params::InspectParams) -> results::InspectResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab"}"#
        => process_example!(r#""tree":[],"usage":{"processes":0,"cpu_ms":0,"rss_bytes":0},"log_path":"/home/me/.local/state/toold/procs/proc_0123456789ab/log","state_path":"/home/me/.local/state/toold/procs/proc_0123456789ab","env_names":["HOME","PATH"],"shim_pid":null,"timeout_ms":null"#);
    /// Remove the records and logs of finished processes.
    /// Processes that still run are skipped.
    Forget = "forget" (params::ForgetParams) -> results::ForgetResult, [NotFound, AmbiguousId],
        r#"{"older_than_ms": 3600000}"#
        => r#"{"forgotten":["proc_0123456789ab"],"skipped":[]}"#;
    /// Return the changes of a staged process, with a diff.
    /// While it runs they are those so far, without a digest.
    StageDiff = "stage.diff" (stage::StageDiffParams) -> stage::StageDiffResult, [NotFound, AmbiguousId, Conflict],
        r#"{"id": "proc_0123456789ab"}"#
        => concat!(
            r#"{"id":"proc_0123456789ab","state":"ready","roots":["/home/me/project"],"digest":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","#,
            r#""files":[{"path":"/home/me/project/a","op":"add","kind":"file","mode":"644","bytes":2,"added":1,"removed":0}],"total":1,"#,
            r#""diff":"diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n","truncated":false,"skipped":[]}"#
        );
    /// Make the changes of a staged process below its overlay.
    /// All of them or none, also over a crash. Fails with `conflict` if the digest is not that of the changes, and names the files that
    /// were changed below meanwhile.
    StageCommit = "stage.commit" (stage::StageCommitParams) -> stage::StageCommitResult, [NotFound, AmbiguousId, Conflict],
        r#"{"id": "proc_0123456789ab", "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}"#
        => r#"{"id":"proc_0123456789ab","state":"committed","files":[{"path":"/home/me/project/a","op":"add","kind":"file","mode":"644","bytes":2}],"total":1,"truncated":false,"left":0,"digest":null}"#;
    /// Remove the changes of a staged process.
    /// Nothing below its overlay changes.
    StageDiscard = "stage.discard" (stage::StageDiscardParams) -> stage::StageDiscardResult, [NotFound, AmbiguousId, Conflict],
        r#"{"id": "proc_0123456789ab"}"#
        => r#"{"id":"proc_0123456789ab","state":"discarded"}"#;
    /// List the processes that a session or task still runs.
    /// Give `session_key` or `task_id`.
    SessionActive = "session.active" (params::SessionActiveParams) -> results::SessionActiveResult, [],
        r#"{"session_key": "chat-42"}"#
        => r#"{"count":1,"ids":["proc_0123456789ab"]}"#;
    /// Kill the processes that a session still runs.
    /// Returns what was killed. Their completions are marked `cancelled` and not pushed.
    SessionEnd = "session.end" (params::SessionEndParams) -> results::SessionEndResult, [],
        r#"{"session_key": "chat-42"}"#
        => r#"{"session_key":"chat-42","killed":[],"count":0}"#;
    /// Set the defaults of a session, and its ceiling.
    /// Durable. Replaces what an earlier call set and keeps the grants; nothing but `session_key` removes the settings. `sandbox` and
    /// `roots` must not be wider than `policy.max`.
    SessionConfigure = "session.configure" (policy::SessionConfigureParams) -> results::SessionGetResult, [Limit],
        r#"{"session_key": "chat-42", "cwd": "/home/me/project", "sandbox": "workspace-write", "approval": "on-failure"}"#
        => r#"{"session_key":"chat-42","configured":true,"cwd":"/home/me/project","sandbox":"workspace-write","approval":"on-failure","roots":[],"env_pass":[],"running":[],"grants":[],"approvals":[]}"#;
    /// Return the settings of a session.
    /// With its processes that run, its grants and its questions that wait.
    SessionGet = "session.get" (policy::SessionGetParams) -> results::SessionGetResult, [],
        r#"{"session_key": "chat-42"}"#
        => r#"{"session_key":"chat-42","configured":true,"cwd":"/home/me/project","sandbox":"workspace-write","approval":"on-failure","roots":[],"env_pass":[],"running":["proc_0123456789ab"],"grants":[],"approvals":[]}"#;
    /// Judge a call as `exec` would, and run nothing.
    /// Takes the parameters of `exec`. No event is published.
    PolicyCheck = "policy.check" (params::ExecParams) -> policy::PolicyCheckResult, [],
        r#"{"command": "git push", "cwd": "/home/me/project"}"#
        => r#"{"verdict":"ask","plain":true,"commands":[["git","push"]],"matches":[{"file":"git.toml","index":1,"prefix":["git","push"],"verdict":"ask","reason":"changes the remote"}],"sandbox":{"profile":"full","mode":"full","network":"full","roots":[]},"not_enforced":[],"reasons":[{"label":"rule","text":"changes the remote"}]}"#;
    /// Read the rule files again.
    /// If one is refused, the old rules stay; `data` has its `file`, `index` and `example`.
    PolicyReload = "policy.reload" (params::Empty) -> policy::PolicyReloadResult, [],
        r#"{}"#
        => r#"{"rules":12,"files":2}"#;
    /// Suggest a profile and rules for what a process was refused.
    /// From the calls that its sandbox refused. Writes nothing.
    PolicySuggest = "policy.suggest" (policy::PolicySuggestParams) -> policy::PolicySuggestResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab"}"#
        => r#"{"id":"proc_0123456789ab","denials":2,"roots":["/home/me/.cargo"],"network":null,"profile":"[profile.suggested]\nmode = \"workspace-write\"\nroots = [\"/home/me/.cargo\"]\nnetwork = \"off\"\n","rules":"[[rule]]\nprefix = [\"cargo\", \"test\"]\nverdict = \"allow\"\nsandbox = \"suggested\"\n"}"#;
    /// List the queues.
    /// With their slots, and how many of their processes run and wait.
    QueuesList = "queues.list" (params::Empty) -> results::QueuesListResult, [],
        r#"{}"#
        => r#"{"queues":[{"name":"build","slots":4,"paused":false,"running":4,"pending":12}]}"#;
    /// Set the slots of a queue, pause or resume it.
    /// Durable, and stronger than the config.
    QueuesSet = "queues.set" (params::QueuesSetParams) -> results::Queue, [Limit],
        r#"{"name": "build", "slots": 4}"#
        => r#"{"name":"build","slots":4,"paused":false,"running":4,"pending":12}"#;
    /// List the approvals, oldest first.
    /// Questions that wait for a person, unless `state` asks for others.
    ApprovalsList = "approvals.list" (approval::ApprovalsListParams) -> approval::ApprovalsListResult, [],
        r#"{"session_key": "chat-42"}"#
        => r#"{"approvals":[{"id":"appr_0123456789ab","state":"pending","kind":"exec","process":"proc_0123456789ab","session_key":"chat-42","task_id":null,"requested_by":{"uid":1000,"pid":4711,"program":"/usr/bin/agent"},"at":"2026-11-16T03:28:50.123Z","expires_at":"2026-11-16T03:38:50.123Z","why":[{"label":"danger","text":"forced removal"}],"action":{"argv":["/bin/bash","-lc","rm -rf build"],"command":"rm -rf build","cwd":"/home/me/project"},"digest":"c3059bac08a3bbdfde19f03cb026942b7f070083acb3c2cdb5f73ce1bd8cfff6","offers":[{"scope":"once","grant":null}]}],"total":1}"#;
    /// Return one approval.
    /// Also one that was decided.
    ApprovalsGet = "approvals.get" (approval::ApprovalsGetParams) -> approval::Approval, [NotFound],
        r#"{"id": "appr_0123456789ab"}"#
        => r#"{"id":"appr_0123456789ab","state":"pending","kind":"exec","process":"proc_0123456789ab","session_key":"chat-42","task_id":null,"requested_by":{"uid":1000,"pid":4711,"program":"/usr/bin/agent"},"at":"2026-11-16T03:28:50.123Z","expires_at":"2026-11-16T03:38:50.123Z","why":[{"label":"danger","text":"forced removal"}],"action":{"argv":["/bin/bash","-lc","rm -rf build"],"command":"rm -rf build","cwd":"/home/me/project"},"digest":"c3059bac08a3bbdfde19f03cb026942b7f070083acb3c2cdb5f73ce1bd8cfff6","offers":[{"scope":"once","grant":null}]}"#;
    /// Decide an approval.
    /// The first decision wins; another gets `already_decided`. `digest` is that of the action that the person saw. Scope `session` makes a
    /// grant for the same argv, directory and profile, `always` a rule. `abort` denies, and withdraws everything else pending of the task.
    /// Not from inside a job.
    ApprovalsDecide = "approvals.decide" (approval::ApprovalsDecideParams) -> approval::ApprovalsDecideResult, [NotFound, Conflict, AlreadyDecided, Denied],
        r#"{"id": "appr_0123456789ab", "decision": "approve", "digest": "c3059bac08a3bbdfde19f03cb026942b7f070083acb3c2cdb5f73ce1bd8cfff6"}"#
        => r#"{"approval":{"id":"appr_0123456789ab","state":"approved","kind":"exec","process":"proc_0123456789ab","session_key":"chat-42","task_id":null,"requested_by":{"uid":1000,"pid":4711,"program":"/usr/bin/agent"},"at":"2026-11-16T03:28:50.123Z","expires_at":"2026-11-16T03:38:50.123Z","why":[{"label":"danger","text":"forced removal"}],"action":{"argv":["/bin/bash","-lc","rm -rf build"],"command":"rm -rf build","cwd":"/home/me/project"},"digest":"c3059bac08a3bbdfde19f03cb026942b7f070083acb3c2cdb5f73ce1bd8cfff6","offers":[{"scope":"once","grant":null}],"decided_by":{"uid":1000,"pid":4712,"program":"/usr/bin/toolctl"},"decided_at":"2026-11-16T03:29:02.000Z","decision":"approve","scope":"once"}}"#;
    /// List the grants, oldest first.
    /// What persons allowed for the rest of a session.
    GrantsList = "grants.list" (approval::GrantsListParams) -> approval::GrantsListResult, [],
        r#"{"session_key": "chat-42"}"#
        => r#"{"grants":[{"id":"grant_0123456789ab","session_key":"chat-42","scope":"session","approval":"appr_0123456789ab","owner":{"uid":1000,"pid":4712,"program":"/usr/bin/toolctl"},"covers":{"argv":["make","install"],"cwd":"/home/me/project","profile":"full"},"at":"2026-11-16T03:29:02.000Z","expires_at":null,"uses":3}]}"#;
    /// Revoke a grant, or all of a session.
    /// Later uses are stopped. Lists what still runs under them, and kills it with `kill`. Not from inside a job.
    GrantsRevoke = "grants.revoke" (approval::GrantsRevokeParams) -> approval::GrantsRevokeResult, [NotFound, Denied],
        r#"{"id": "grant_0123456789ab"}"#
        => r#"{"revoked":[{"id":"grant_0123456789ab","session_key":"chat-42","scope":"session","approval":"appr_0123456789ab","owner":{"uid":1000,"pid":4712,"program":"/usr/bin/toolctl"},"covers":{"argv":["make","install"],"cwd":"/home/me/project","profile":"full"},"at":"2026-11-16T03:29:02.000Z","expires_at":null,"uses":3}],"running":["proc_0123456789ab"],"killed":[]}"#;
    /// Apply a patch to files: all of it, or nothing.
    /// The patch has the form of `apply_patch`: `*** Begin Patch`, then `*** Add File: p`, `*** Delete File: p` or `*** Update File: p` with
    /// chunks, then `*** End Patch`. It is verified first; an error names the line. Old bytes are kept for `patch.revert`.
    PatchApply = "patch.apply" (crate::patch::PatchApplyParams) -> crate::patch::PatchResult, [Conflict, Denied, Limit, Unavailable],
        r#"{"patch": "*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch", "cwd": "/home/me/web"}"#
        => concat!(
            r#"{"patch_id":"patch_0123456789ab","status":"applied","files":[{"path":"hello.txt","op":"add","before_sha256":null,"#,
            r#""after_sha256":"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03","added":1,"removed":0,"fuzz":0}],"#,
            r#""diff":"--- /dev/null\n+++ b/hello.txt\n@@ -0,0 +1 @@\n+hello\n","diff_truncated":false}"#
        );
    /// Undo a patch.
    /// From the bytes that were kept when it was applied, for `patch.keep_ms`. A file that has changed since is a `conflict`, and nothing is done.
    PatchRevert = "patch.revert" (crate::patch::PatchRevertParams) -> crate::patch::PatchRevertResult, [NotFound, Conflict, Denied, Unavailable],
        r#"{"patch_id": "patch_0123456789ab"}"#
        => concat!(
            r#"{"patch_id":"patch_0123456789ab","status":"reverted","files":[{"path":"hello.txt","op":"delete","#,
            r#""before_sha256":"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03","after_sha256":null,"added":0,"removed":1,"fuzz":0}]}"#
        );
    /// Push events as notifications `events.event`.
    /// Also output, with `output`. Returns the number of the subscription. `x-notifications` of this document describes the messages.
    EventsSubscribe = "events.subscribe" (params::EventsSubscribeParams) -> u64, [NotFound, AmbiguousId, Limit, Unavailable],
        r#"{"session_key": "chat-42", "after": 1200}"#
        => r#"1"#;
    /// End a subscription.
    /// Returns false if the connection has no such subscription.
    EventsUnsubscribe = "events.unsubscribe" (params::EventsUnsubscribeParams) -> bool, [],
        r#"{"subscription": 1}"#
        => r#"true"#;
    /// Return the next events for a named consumer.
    /// An event comes again until it is acknowledged.
    EventsNext = "events.next" (params::EventsNextParams) -> results::EventsNextResult, [NotFound, AmbiguousId, Limit, Cancelled],
        r#"{"consumer": "chat-42", "session_key": "chat-42", "limit": 10, "wait_ms": 30000}"#
        => r#"{"consumer":"chat-42","events":[{"seq":1217,"at":"2026-11-16T03:28:50.123Z","type":"closed","id":"proc_0123456789ab","session_key":"chat-42","task_id":null,"name":"web","bytes":120,"lines":3}],"position":1216,"last":1217,"missing":null,"created":false,"forgotten":null,"damaged":null}"#;
    /// Acknowledge all events up to a number.
    /// Moves the durable position of the consumer. It never moves back.
    EventsAck = "events.ack" (params::EventsAckParams) -> results::EventsAckResult, [NotFound],
        r#"{"consumer": "chat-42", "seq": 1217}"#
        => r#"{"consumer":"chat-42","position":1217}"#;
    /// Read lines of a text file.
    /// Regular files only. A page that is longer than `fs.read_max_chars` is the error `limit`, which names a shorter one.
    FsRead = "fs.read" (files::FsReadParams) -> files::FsReadResult, [NotFound, Limit, Denied, Unavailable],
        r#"{"path": "/home/me/project/Makefile", "offset": 1, "limit": 100}"#
        => r#"{"path":"/home/me/project/Makefile","content":"test:\n\tcargo test\n","total_lines":2,"bytes":18,"sha256":"0bf3e3d4b2ff6e44ef6bd4e8fb2a2a2f1d0d4b9cd1f3a4cbb2b4f1d5a6e7c890","truncated":false,"next_offset":null,"line_ending":"lf","bom":false,"charset":"utf-8"}"#;
    /// Write a whole file.
    /// A temporary file takes the place of the old one, so a reader sees the old or the new content. Mode, owner and extended
    /// attributes are kept where the daemon may.
    FsWrite = "fs.write" (files::FsWriteParams) -> files::FsWriteResult, [NotFound, Limit, Denied, Unavailable, Conflict],
        r#"{"path": "/home/me/project/VERSION", "content": "2\n", "expect": "absent"}"#
        => r#"{"path":"/home/me/project/VERSION","bytes":2,"sha256":"53c234e5e8472b6ac51c1ae1cab3fe06fad053beb8ebfd8977b010655bfdd3c3","before_sha256":null,"diff":"--- /dev/null\n+++ b/VERSION\n@@ -0,0 +1 @@\n+2\n","created":true}"#;
    /// Replace a text in a file.
    /// Tries strategies from the strictest on, and returns the name of the one that found it. Line ends, byte order mark and mode are kept.
    FsEdit = "fs.edit" (files::FsEditParams) -> files::FsEditResult, [NotFound, Limit, Denied, Unavailable, Conflict, NoMatch, AmbiguousMatch],
        r#"{"path": "/home/me/project/Makefile", "old": "cargo test", "new": "cargo test --workspace"}"#
        => r#"{"path":"/home/me/project/Makefile","strategy":"exact","count":1,"diff":"--- a/Makefile\n+++ b/Makefile\n@@ -1,2 +1,2 @@\n test:\n-\tcargo test\n+\tcargo test --workspace\n","sha256":"6b1f0f0c2f4bb9c9d83cf1f6b8fd4a9e8a6f3c5e2d1b0a99887766554433221f","before_sha256":"0bf3e3d4b2ff6e44ef6bd4e8fb2a2a2f1d0d4b9cd1f3a4cbb2b4f1d5a6e7c890"}"#;
    /// List a directory.
    /// Entries come in the order of their names. Links are not followed.
    FsList = "fs.list" (files::FsListParams) -> files::FsListResult, [NotFound, Denied, Unavailable, Cancelled],
        r#"{"path": "/home/me/project", "depth": 2, "glob": "*.toml"}"#
        => r#"{"path":"/home/me/project","entries":[{"path":"/home/me/project/Cargo.toml","name":"Cargo.toml","type":"file","bytes":120,"modified_at":"2026-11-16T03:00:00.000Z","target":null}],"next":null}"#;
    /// Search files for a regular expression.
    /// Leaves out what ignore files name, hidden and binary files. After `timeout_ms` it returns what was found, with `complete` false.
    FsSearch = "fs.search" (files::FsSearchParams) -> files::FsSearchResult, [NotFound, Denied, Unavailable, Cancelled],
        r#"{"pattern": "fn main", "path": "/home/me/project", "glob": "*.rs"}"#
        => r#"{"matches":[{"path":"/home/me/project/src/main.rs","line":1,"text":"fn main() {"}],"total":1,"files":1,"complete":true,"next":null}"#;
    /// List tools.
    /// Only what the session may call. `full` has schemas and the signatures for scripts; another `format` is ready for the API of a model.
    ToolsList = "tools.list" (tools::ToolsListParams) -> tools::ToolsListResult, [NotFound],
        r#"{"query": "file", "detail": "summary"}"#
        => r#"{"tools":[{"name":"read_file","provider":"native","description":"Read lines of a text file","effect":"read","idempotent":true,"parallel":true,"state":"ready"}]}"#;
    /// Call a tool.
    /// Wrong arguments are `invalid_params`, with the place as a JSON pointer in `data.pointer`. `$/cancelRequest` ends the call. After
    /// `outcome_unknown` it may have happened; nothing repeats it.
    ToolsCall = "tools.call" (tools::ToolsCallParams) -> tools::ToolsCallResult, [NotFound, Limit, Denied, Unavailable, Conflict, OutcomeUnknown, Timeout, ToolFailed, Cancelled],
        r#"{"name": "terminal", "args": {"command": "make test"}, "cwd": "/home/me/project"}"#
        => r#"{"result":{"output":"ok\n","exit_code":0,"timed_out":false,"process":"proc_0123456789ab"},"call":"call/5f3a0c12"}"#;
    /// Offer tools on this connection.
    /// The daemon sends `tools.invoke` for each call (see `x-notifications`), and `$/cancelRequest`. Needs a connection that can be pushed
    /// to. A provider that is lost has `reconnect_ms` to register again; its tools stay listed as `unavailable`. A name that another
    /// connection serves is `already_exists`, with that client in `data.client`; `takeover` replaces it. Not from inside a job.
    ToolsRegister = "tools.register" (tools::ToolsRegisterParams) -> tools::ToolsRegisterResult, [InvalidRequest, Limit, Denied, AlreadyExists],
        r#"{"provider": "editor", "tools": [{"name": "open_file", "description": "Show a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}, "effect": "read"}]}"#
        => r#"{"provider":"editor","tools":["editor.open_file"],"replaced":false}"#;
    /// Withdraw the tools of a provider.
    /// Calls in flight end as if its connection were lost. Only the connection that offers them may do it, or any if that has ended.
    ToolsUnregister = "tools.unregister" (tools::ToolsUnregisterParams) -> tools::ToolsUnregisterResult, [NotFound, Denied],
        r#"{"provider": "editor"}"#
        => r#"{"tools":["editor.open_file"],"ended":0}"#;
    /// List the tools of an MCP server again.
    /// Starts the server if it does not run. A server that reports a change is asked by itself.
    ToolsRefresh = "tools.refresh" (tools::ToolsRefreshParams) -> tools::ToolsRefreshResult, [NotFound, Unavailable],
        r#"{"provider": "linear"}"#
        => r#"{"tools":["linear.create_issue","linear.list_issues"],"added":["linear.list_issues"],"removed":[]}"#;
    /// Run a script that calls tools.
    /// It is a process: `poll`, `log`, `wait`, `kill` work on it. Answers when it has ended, or when `yield_ms` is over; it runs on then.
    ScriptRun = "script.run" (script::ScriptRunParams) -> script::ScriptResult, [Limit, Denied, SpawnFailed, AlreadyExists, Unavailable, Conflict, Cancelled],
        r#"{"code": "from toold_tools import terminal\nprint(terminal('make test')['exit_code'])", "cwd": "/home/me/project"}"#
        => SCRIPT_EXAMPLE;
    /// Return the result of a script.
    /// Any number of times, also after its end and after a restart of the daemon. Consumes nothing.
    ScriptResult = "script.result" (script::ScriptResultParams) -> script::ScriptResult, [NotFound, AmbiguousId, Denied, Cancelled],
        r#"{"id": "proc_0123456789ab", "wait_ms": 10000}"#
        => SCRIPT_EXAMPLE;
    /// List the calls of a script.
    /// The oldest first, from its journal; also after its end and after a restart of the daemon.
    ScriptCalls = "script.calls" (script::ScriptCallsParams) -> script::ScriptCallsResult, [NotFound, AmbiguousId],
        r#"{"id": "proc_0123456789ab", "limit": 10}"#
        => r#"{"id":"proc_0123456789ab","calls":[{"call":"5f3a0c12-1","tool":"terminal","args":"{\"command\":\"make test\"}","status":"ok","at":"2026-11-16T03:28:50.123Z","ended_at":"2026-11-16T03:28:51.123Z","ms":1000,"bytes":90,"process":"proc_0123456789ac"}],"total":1,"next":null}"#;
    /// Cancel a script, or one of its calls.
    /// Ends the authority of the script, then its calls, then its tree, then answers.
    ScriptCancel = "script.cancel" (script::ScriptCancelParams) -> script::ScriptCancelResult, [NotFound, AmbiguousId, Denied],
        r#"{"id": "proc_0123456789ab"}"#
        => r#"{"id":"proc_0123456789ab","status":"cancelled","calls":["5f3a0c12-1"]}"#;
    /// Start a kernel: an interpreter that keeps its state and runs cells.
    /// It is a process, and a script: `poll`, `log`, `kill` and `script.calls` work on it. It ends after `idle_ms` without a cell.
    KernelOpen = "kernel.open" (kernel::KernelOpenParams) -> kernel::KernelOpenResult, [Limit, Denied, SpawnFailed, AlreadyExists, Unavailable, Conflict],
        r#"{"name": "analysis", "cwd": "/home/me/project"}"#
        => process_example!(r#""kernel":{"cells":0,"busy":false,"language":"python"},"existing":false"#);
    /// Run a cell in a kernel.
    /// Answers at its end, or when `yield_ms` is over; it runs on then, and `script.result` has it. `value` is the text of its last
    /// expression; its output is the range `from` to `to` of the log. After `timeout_ms` it is interrupted as by `kernel.interrupt`.
    KernelRun = "kernel.run" (kernel::KernelRunParams) -> script::ScriptResult, [NotFound, AmbiguousId, AlreadyExited, Limit, Unavailable, Conflict, Denied, Cancelled],
        r#"{"name": "analysis", "code": "x = 41\nx + 1", "request_id": "cell-1"}"#
        => SCRIPT_EXAMPLE;
    /// Interrupt the cell that runs.
    /// SIGINT to the group of the interpreter, as Ctrl-C in a terminal. A kernel whose cell goes on for `grace_ms` is killed.
    KernelInterrupt = "kernel.interrupt" (kernel::KernelInterruptParams) -> kernel::KernelInterruptResult, [NotFound, AmbiguousId, AlreadyExited, Unavailable, Denied],
        r#"{"name": "analysis"}"#
        => r#"{"id":"proc_0123456789ab","cell":3,"state_kept":true}"#;
    /// Give a kernel a new interpreter.
    /// Its id and its log stay, its state is gone. A cell that runs is interrupted, cells that wait do not run.
    KernelReset = "kernel.reset" (kernel::KernelResetParams) -> kernel::KernelResetResult, [NotFound, AmbiguousId, AlreadyExited, Unavailable, Denied],
        r#"{"name": "analysis"}"#
        => r#"{"id":"proc_0123456789ab","cell":4,"interrupted":null,"dropped":[]}"#;
    /// End a kernel.
    /// Its authority ends, then its calls, then its tree.
    KernelClose = "kernel.close" (kernel::KernelCloseParams) -> kernel::KernelCloseResult, [NotFound, AmbiguousId, Denied],
        r#"{"name": "analysis"}"#
        => r#"{"id":"proc_0123456789ab","status":"killed"}"#;
    /// Check the sandbox of this machine.
    /// Tries forbidden acts in a confined process, under each mechanism, and returns what was seen. `daemon.info` has the last result.
    SandboxProbe = "sandbox.probe" (params::Empty) -> crate::sandbox_probe::SandboxProbeResult, [Unavailable],
        r#"{}"#
        => concat!(
            r#"{"at":"2026-11-16T03:28:50.123Z","mechanisms":[{"mechanism":"landlock","available":true,"why":null,"#,
            r#""by":{"landlock":7,"seccomp":true,"namespaces":[]}}],"#,
            r#""acts":[{"mechanism":"landlock","act":"chmod","measure":"fs_metadata","expected":"not_enforced","got":"done"}],"gaps":[]}"#
        );
    /// Return the state of the daemon.
    /// Its version, counts, limits and paths, and the features of this system.
    DaemonInfo = "daemon.info" (params::Empty) -> results::DaemonInfoResult, [],
        r#"{}"#
        => concat!(
            r#"{"version":"1.0.0","protocol":1,"pid":4700,"started_at":"2026-11-16T03:00:00.000Z","uptime_ms":1730123,"#,
            r#""counts":{"starting":0,"running":1,"exited":3,"lost":0,"connections":2},"#,
            r#""usage":{"processes":3,"cpu_ms":520,"rss_bytes":73400320},"daemon":{"processes":1,"cpu_ms":40,"rss_bytes":8388608},"#,
            r#""limits":{"max_running":4096},"features":{"pidfd":true},"#,
            r#""paths":{"socket":"/run/user/1000/toold/toold.sock","state_dir":"/home/me/.local/state/toold","config":null},"#,
            r#""damaged":[],"events":{"oldest":1,"last":1217,"bytes":302110,"consumers":[]},"#,
            r#""watch":{"state":"passing","recent":0,"dropped":0,"release_ms":null},"policy":{"rules":0,"files":0,"errors":[]}}"#
        );
    /// Stop the daemon.
    /// Processes keep running, unless `kill` is true.
    DaemonShutdown = "daemon.shutdown" (params::ShutdownParams) -> results::ShutdownResult, [],
        r#"{"kill": false}"#
        => r#"{"stopping":true,"killed":[]}"#;
    /// Return the OpenRPC document of all methods and events.
    /// The same document as `proto/openrpc.json` of this version. The example is shortened.
    RpcDiscover = "rpc.discover" (params::Empty) -> Value, [],
        r#"{}"#
        => r#"{"openrpc":"1.3.2","info":{"title":"toold","version":"1.0.0"},"methods":[]}"#;
}
