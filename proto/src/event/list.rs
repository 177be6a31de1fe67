//! The one list of events and pushes. Types, numbers on disk, schemas, the list in `docs/events.md` and the client's
//! rendering come from it.
//!
//! The order of fields is the order of the text in the journal. A later version may append a field, as an `Option` with
//! a default, and never renames, moves or removes one.

use super::declare::events;
use super::{EventDescription, EventFields, LaggedOf, Outcome, OutputSummary, Push, append_fields};
use crate::approval::{ApprovalId, ApprovalKind, ApprovalState, Caller, Covers, DecidedBy, GrantId, Scope, Why};
use crate::id::ProcId;
use crate::params::{Status, Stream, is_default};
use crate::policy::RuleRef;
use crate::script::{CallStatus, FinishedCalls, Language, RedactedRule, ScriptStatus};
use crate::tools::ProviderState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

events! {
    events {
        /// The program runs.
        Started = 1, "started", r#"{"pid":4711,"name":"web","command":"make serve"}"# {
            /// The program's pid.
            pid: i32,
            /// The process's name.
            name: Option<String>,
            /// The command line, at most 2000 characters of it.
            command: String,
        }
        /// The program ended, or could not start.
        Exited = 2, "exited", r#"{"name":"web","command":"make serve","exit_code":2,"signal":null,"reason":"exited","killed_by":null,"duration_ms":5300,"status":"exited","bytes":120,"lines":3}"# {
            #[serde(flatten)]
            outcome: Outcome,
            /// `exited`, or `lost` if toold could not observe the exit.
            status: Status,
            /// Bytes written so far. A descendant may write more.
            bytes: u64,
            /// Lines written so far.
            lines: u64,
        }
        /// Both output streams are at their end.
        Closed = 3, "closed", r#"{"name":"web","bytes":120,"lines":3}"# {
            /// The process's name.
            name: Option<String>,
            /// All bytes written.
            bytes: u64,
            /// All lines written.
            lines: u64,
        }
        /// The program ended, with the end of its output; for processes started with `notify`.
        Completion = 4, "completion", r#"{"name":"web","command":"make serve","exit_code":2,"signal":null,"reason":"exited","killed_by":null,"duration_ms":5300,"output":"make: *** [serve] Error 2\n","output_path":"/home/me/.local/state/toold/procs/proc_0123456789ab/log","bytes":26,"lines":1,"sha256":"c3059bac08a3bbdfde19f03cb026942b7f070083acb3c2cdb5f73ce1bd8cfff6","dropped_bytes":0,"unstored_bytes":0}"# {
            #[serde(flatten)]
            outcome: Outcome,
            #[serde(flatten)]
            summary: Option<OutputSummary>,
            /// True if `session.end` ended it. Such an event is not pushed.
            #[serde(default, skip_serializing_if = "is_default")]
            cancelled: bool,
            /// The error that kept toold from reading the output. The fields on the output are missing then.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(with = "String")]
            output_error: Option<String>,
        }
        /// Lines matched a watch pattern.
        WatchMatch = 5, "watch_match", r#"{"name":"web","pattern":"listening on","pattern_index":0,"output":"listening on 8080","matches":1,"truncated":false,"suppressed":0}"# {
            /// The process's name.
            name: Option<String>,
            /// The text or regular expression that matched first.
            pattern: String,
            /// Its place in `watch`, from 0.
            pattern_index: u64,
            /// The lines that matched.
            output: String,
            /// Number of lines that matched.
            matches: u64,
            /// True if `output` does not hold all of them in full.
            truncated: bool,
            /// Matching lines since the last `watch_match` that no event reported.
            suppressed: u64,
        }
        /// The watch ended because too many lines matched in several intervals in a row, or because its patterns take too long.
        /// `notify` is on from here.
        WatchDisabled = 6, "watch_disabled", r#"{"name":"web","suppressed":9,"message":"too many matches in 3 intervals of 15000 ms in a row; the watch ended and `notify` is on"}"# {
            /// The process's name.
            name: Option<String>,
            /// Matching lines since the last `watch_match` that no event reported.
            suppressed: u64,
            /// The reason, for a person.
            message: String,
        }
        /// Too many matches over all processes. No `watch_match` is published during the cooldown.
        WatchOverflowTripped = 7, "watch_overflow_tripped", r#"{"limit":15,"window_ms":10000,"cooldown_ms":30000,"message":"more than 15 matches in 10000 ms over all processes: watch matches are suppressed for 30000 ms"}"# {
            /// `watch.global_max`.
            limit: u64,
            /// `watch.global_window_ms`.
            window_ms: u64,
            /// `watch.global_cooldown_ms`.
            cooldown_ms: u64,
            /// The reason, for a person.
            message: String,
        }
        /// The cooldown is over. Matches are published again.
        WatchOverflowReleased = 8, "watch_overflow_released", r#"{"suppressed":12,"message":"watch matches resumed; 12 were suppressed"}"# {
            /// Matching lines of the cooldown that no event reported.
            suppressed: u64,
            /// The summary, for a person.
            message: String,
        }
        /// There is new output; for processes started with a heartbeat.
        Heartbeat = 9, "heartbeat", r#"{"name":"web","bytes":120,"lines":3,"new_bytes":40,"cursor":120,"output":"GET / 200\n"}"# {
            /// The process's name.
            name: Option<String>,
            /// Bytes written so far.
            bytes: u64,
            /// Lines written so far.
            lines: u64,
            /// Bytes since the last heartbeat.
            new_bytes: u64,
            /// The end of the output so far.
            cursor: u64,
            /// The last 200 characters, without escape sequences.
            output: String,
        }
        /// The program waits for input.
        NeedsInput = 10, "needs_input", r#"{"name":"setup","pid":4711,"echo":false,"prompt":"Password: ","cursor":10}"# {
            /// The process's name.
            name: Option<String>,
            /// The pid that reads: the program or a descendant.
            pid: i32,
            /// False if the terminal does not show what is typed. Null without a terminal.
            echo: Option<bool>,
            /// The last line of the output, if it has no newline.
            prompt: String,
            /// The end of the output so far.
            cursor: u64,
        }
        /// The restart policy of a process does not start it again: it ended too often in a row, or cannot be started.
        RestartGaveUp = 11, "restart_gave_up", r#"{"name":"web","restarts":10,"exit_code":1,"signal":null,"message":"it ended after 10 restarts in a row"}"# {
            /// The process's name.
            name: Option<String>,
            /// Restarts in a row by the policy, this run included.
            restarts: u32,
            /// The exit code of the last run. Null if unknown.
            exit_code: Option<i32>,
            /// The signal that ended the last run.
            signal: Option<String>,
            /// The reason, for a person.
            message: String,
        }
        /// Nothing of a staged process is left: its changes wait for `stage.commit` or `stage.discard`.
        StageReady = 21, "stage_ready", r#"{"name":"web","roots":["/home/me/project"],"files":3,"bytes":8192}"# {
            /// The process's name.
            name: Option<String>,
            /// Directories on which it saw an overlay.
            roots: Vec<String>,
            /// Number of changes. Null if they cannot be read now.
            files: Option<u64>,
            /// Bytes of the changed files on the disk. Null if they cannot be read now.
            bytes: Option<u64>,
            /// The reason why the changes cannot be read, for a person.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(with = "String")]
            message: Option<String>,
        }
        /// A process inside a job made a call that it must not make: any call from inside a sandbox, a decision from inside any job.
        InsideRefused = 25, "inside_refused", r#"{"name":"web","pid":4711,"program":"toolctl","sandboxed":true,"what":"connect"}"# {
            /// The process's name.
            name: Option<String>,
            /// The process that called.
            pid: i32,
            /// Its program.
            program: String,
            /// The job is in a sandbox.
            sandboxed: bool,
            /// The method that was refused, or `connect`: all of them.
            what: String,
        }
        /// The rule files were read: at the start, or by `policy.reload`.
        PolicyLoaded = 30, "policy_loaded", r#"{"ok":false,"rules":12,"files":2,"errors":["30-net.toml: rule 2: example \"curl x\": the rule does not match it"]}"# {
            /// True if every file holds. False at a reload: the old rules stay.
            ok: bool,
            /// Number of rules in force.
            rules: u64,
            /// Number of files that they come from.
            files: u64,
            /// The files that were refused, with the reason.
            errors: Vec<String>,
        }
        /// The policy refused an `exec`. Nothing was started, and nothing else is recorded.
        Denied = 31, "denied", r#"{"command":"curl example.org","cwd":"/home/me/project","reason":"no downloads","rule":{"file":"30-net.toml","index":2},"uid":1000,"pid":4711}"# {
            /// The command line, at most 2000 characters of it.
            command: String,
            cwd: String,
            reason: String,
            /// The rule that denies it. Null: the reason is another one.
            rule: Option<RuleRef>,
            /// The caller.
            uid: u32,
            pid: i32,
        }
        /// The sandbox refused a call of a process: the first of each operation and target, at most 20 a process.
        Denial = 32, "denial", r#"{"name":"build","op":"open","path":"/etc/hosts","address":null,"via":null,"errno":30}"# {
            /// The process's name.
            name: Option<String>,
            /// The system call.
            op: String,
            /// The file concerned, resolved.
            path: Option<String>,
            /// The address concerned, of a network call.
            address: Option<String>,
            /// The path that the program named, if a link led from it to `path`.
            via: Option<String>,
            /// The error that the program got.
            errno: i32,
        }
        /// A process made a path that would have been protected if it had existed before.
        ProtectedCreated = 33, "protected_created", r#"{"name":"build","path":"/home/me/project/.envrc"}"# {
            /// The process's name.
            name: Option<String>,
            /// The path.
            path: String,
        }
        /// A forbidden act was possible in a sandbox: the check of the machine found it.
        SandboxGap = 34, "sandbox_gap", r#"{"mechanism":"landlock","act":"kill","measure":"signals","message":"a confined process could do it: kill"}"# {
            /// The mechanism that was checked.
            mechanism: String,
            /// The act.
            act: String,
            /// The measure that should have refused it.
            measure: String,
            /// The finding, for a person.
            message: String,
        }
        /// A patch was applied. Of no process; `session_key` and `task_id` are those of the call.
        PatchApplied = 35, "patch_applied", r#"{"patch_id":"patch_0123456789ab","cwd":"/home/me/web","files":["src/main.rs"],"count":1,"added":3,"removed":1}"# {
            /// For `patch.revert`.
            patch_id: String,
            /// The directory from which the paths are meant.
            cwd: String,
            /// The first 64 files that were changed, as the patch names them.
            files: Vec<String>,
            /// The number of all files.
            count: u64,
            /// Lines.
            added: u64,
            /// Lines.
            removed: u64,
        }
        /// A patch was undone. Of no process; `session_key` and `task_id` are those of the call.
        PatchReverted = 36, "patch_reverted", r#"{"patch_id":"patch_0123456789ab","cwd":"/home/me/web","files":["src/main.rs"],"count":1}"# {
            /// The patch that was undone.
            patch_id: String,
            /// The directory from which the paths are meant.
            cwd: String,
            /// The first 64 files, as the patch named them.
            files: Vec<String>,
            /// The number of all files.
            count: u64,
        }
        /// A person is asked. `id` is the process that waits, or the script whose call does.
        ApprovalRequested = 40, "approval_requested", r#"{"approval":"appr_0123456789ab","kind":"exec","command":"rm -rf build","cwd":"/home/me/project","why":[{"label":"danger","text":"forced removal"}],"digest":"c3059bac08a3bbdfde19f03cb026942b7f070083acb3c2cdb5f73ce1bd8cfff6","expires_at":"2026-11-16T03:38:50.123Z","requested_by":{"uid":1000,"pid":4711,"program":"/usr/bin/agent"}}"# {
            approval: ApprovalId,
            kind: ApprovalKind,
            /// The command or the files, at most 2000 characters of it.
            command: String,
            cwd: Option<String>,
            /// The reasons for the question.
            why: Vec<Why>,
            /// The digest that a decision must name.
            digest: String,
            /// The deadline. It denies.
            expires_at: String,
            requested_by: Caller,
        }
        /// A question was answered, withdrawn, or not answered in time.
        ApprovalDecided = 41, "approval_decided", r#"{"approval":"appr_0123456789ab","state":"approved","scope":"once","decided_by":{"uid":1000,"pid":4712,"program":"/usr/bin/toolctl"},"message":null,"command":"rm -rf build","digest":"c3059bac08a3bbdfde19f03cb026942b7f070083acb3c2cdb5f73ce1bd8cfff6"}"# {
            approval: ApprovalId,
            /// `approved`, `denied`, `aborted`, `timeout` or `withdrawn`.
            state: ApprovalState,
            /// The reach of a decision. Null: none was made.
            scope: Option<Scope>,
            /// The one who decided or withdrew it, or `timeout`.
            decided_by: DecidedBy,
            /// The message of the one who decided.
            message: Option<String>,
            /// The command or the files, at most 2000 characters of it.
            command: String,
            digest: String,
        }
        /// A person allowed the same action for the rest of a session, or a tool for the rest of a script.
        GrantAdded = 42, "grant_added", r#"{"grant":"grant_0123456789ab","approval":"appr_0123456789ab","scope":"session","owner":{"uid":1000,"pid":4712,"program":"/usr/bin/toolctl"},"covers":{"argv":["make","install"],"cwd":"/home/me/project","profile":"full"},"expires_at":null}"# {
            grant: GrantId,
            approval: ApprovalId,
            scope: Scope,
            /// The one who gave it.
            owner: Caller,
            /// The commands or paths that it covers.
            covers: Covers,
            /// Null: it ends with the session, or with the script.
            expires_at: Option<String>,
        }
        /// A grant ended: it was revoked, or its session or script ended.
        GrantRevoked = 43, "grant_revoked", r#"{"grant":"grant_0123456789ab","uses":3,"revoked_by":{"uid":1000,"pid":4712,"program":"/usr/bin/toolctl"},"reason":null}"# {
            grant: GrantId,
            /// Number of actions that it allowed.
            uses: u64,
            revoked_by: Caller,
            /// The reason why it ended, if no person ended it.
            reason: Option<String>,
        }
        /// A script runs.
        ScriptStarted = 50, "script_started", r#"{"name":"report","language":"python","tools":["terminal","read_file"],"max_calls":500}"# {
            /// The process's name.
            name: Option<String>,
            /// Null: any program.
            language: Option<Language>,
            /// The tools that it may call.
            tools: Vec<String>,
            max_calls: u64,
        }
        /// A call of a tool has ended. Only with `events.calls` in the config.
        ScriptCall = 51, "script_call", r#"{"call":"5f3a0c12-7","tool":"terminal","status":"ok","ms":120,"bytes":300,"error":null}"# {
            call: String,
            tool: String,
            status: CallStatus,
            ms: u64,
            /// Length of the result as JSON.
            bytes: u64,
            /// The kind of the error. Null: it succeeded.
            error: Option<String>,
        }
        /// A script published a note.
        ScriptNote = 52, "script_note", r#"{"name":"report","text":"3 of 12 files done"}"# {
            /// The process's name.
            name: Option<String>,
            text: String,
        }
        /// A script has ended, and its calls too.
        ScriptFinished = 53, "script_finished", r#"{"name":"report","status":"ok","exit_code":0,"signal":null,"calls":{"made":12,"refused":0,"failed":1,"unknown":0},"redacted":[],"output":"done\n","duration_ms":1500}"# {
            /// The process's name.
            name: Option<String>,
            status: ScriptStatus,
            exit_code: Option<i32>,
            signal: Option<String>,
            calls: FinishedCalls,
            /// Secrets that were hidden in `output`.
            redacted: Vec<RedactedRule>,
            /// The last 2000 characters of its standard output.
            output: String,
            duration_ms: u64,
        }
        /// A provider of tools changed its state. Of no process; `session_key` is that of its registration, if it serves one session.
        ToolProvider = 54, "tool_provider", r#"{"provider":"linear","state":"ready","tools":2,"why":null}"# {
            /// The name before the dot in the names of its tools.
            provider: String,
            state: ProviderState,
            /// Number of its tools.
            tools: u64,
            /// The reason of a state other than `ready`, for a person.
            why: Option<String>,
        }
    }
    pushes {
        /// The subscriber missed a range of events or output, because retention removed it or the subscriber read too slowly.
        Lagged = "lagged", r#"{"of":"output","id":"proc_0123456789ab","from":65536,"to":131072}"# {
            /// The kind of range: event numbers, both missed, or cursors in the output of `id`.
            of: LaggedOf,
            /// The process. Null for events.
            id: Option<ProcId>,
            /// The first that was missed.
            from: u64,
            /// The last event that was missed; for output, the first byte after it.
            to: u64,
        }
        /// New output of a process. Only with `output` in `events.subscribe`.
        Output = "output", r#"{"id":"proc_0123456789ab","cursor":0,"next_cursor":6,"stream":"stdout","data":"hello\n","name":"web","at":"2026-11-16T03:28:50.123Z"}"# {
            /// The process.
            id: ProcId,
            /// The start of `data` in the output.
            cursor: u64,
            /// The end of `data` in the output.
            next_cursor: u64,
            /// The stream that the text came from.
            stream: Stream,
            /// The text. A character or an escape sequence is never split between two pushes.
            data: String,
            /// The process's name.
            #[serde(default)]
            name: Option<String>,
            /// The time at which the first of it arrived, RFC 3339, UTC.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(with = "String")]
            at: Option<String>,
        }
    }
}
