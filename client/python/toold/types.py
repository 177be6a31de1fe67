"""The types of parameters, results and events.

Generated from the list of methods by `UPDATE_GOLDEN=1 cargo test -p toold-proto clients`. Do not edit.
"""

from __future__ import annotations

from typing import Any, Dict, List, Literal, TypedDict, Union

__all__ = [
    "Action",
    "ActionFile",
    "AllowedBy",
    "Approval",
    "ApprovalDecidedEvent",
    "ApprovalRequestedEvent",
    "ApprovalsDecideResult",
    "ApprovalsListResult",
    "Artifact",
    "Breaker",
    "CallCounts",
    "CallSummary",
    "Caller",
    "CheckedSandbox",
    "CloseResult",
    "ClosedEvent",
    "CompletionEvent",
    "Consumer",
    "Counts",
    "Covers",
    "DaemonInfoResult",
    "DaemonPaths",
    "DangerReport",
    "DenialEvent",
    "Denials",
    "DeniedEvent",
    "Entry",
    "Escalate",
    "EventMessage",
    "EventMessageParams",
    "EventsAckResult",
    "EventsNextResult",
    "Excerpt",
    "ExecResult",
    "ExitedEvent",
    "Failure",
    "FinishedCalls",
    "ForgetResult",
    "Forgotten",
    "FsEditResult",
    "FsListResult",
    "FsReadResult",
    "FsSearchResult",
    "FsWriteResult",
    "Gap",
    "Grant",
    "GrantAddedEvent",
    "GrantRevokedEvent",
    "GrantTerms",
    "GrantsListResult",
    "GrantsRevokeResult",
    "HeartbeatEvent",
    "InputWait",
    "InsideRefusedEvent",
    "InspectResult",
    "Journal",
    "JournalledCall",
    "KernelCloseResult",
    "KernelInterruptResult",
    "KernelOpenResult",
    "KernelResetResult",
    "KillResult",
    "Killed",
    "LaggedPush",
    "LimitReport",
    "Limits",
    "ListResult",
    "Listed",
    "ListedTool",
    "Listener",
    "LogMatch",
    "LogResult",
    "Mechanisms",
    "Member",
    "NearestPlace",
    "NeedsInputEvent",
    "NotEnforced",
    "Offer",
    "OutputPush",
    "PatchAppliedEvent",
    "PatchFailure",
    "PatchFile",
    "PatchResult",
    "PatchRevertResult",
    "PatchRevertedEvent",
    "PatternRegex",
    "PauseResult",
    "PendingOn",
    "PolicyCheckResult",
    "PolicyLoadedEvent",
    "PolicyReloadResult",
    "PolicyReport",
    "PolicySuggestResult",
    "PollResult",
    "PositionDamage",
    "ProbedAct",
    "ProbedMechanism",
    "Process",
    "ProcessKernel",
    "ProcessRetry",
    "ProcessScript",
    "ProcessStage",
    "ProfileChange",
    "ProtectedCreatedEvent",
    "PtySize",
    "Queue",
    "QueuesListResult",
    "RedactedRule",
    "RefusedCall",
    "ResizeResult",
    "RestartDue",
    "RestartGaveUpEvent",
    "RestartOptions",
    "RestartResult",
    "ResumeResult",
    "RuleMatch",
    "RuleRef",
    "Sandbox",
    "SandboxGapEvent",
    "SandboxOptions",
    "SandboxProbeResult",
    "ScreenCursor",
    "ScreenResult",
    "ScriptCallEvent",
    "ScriptCallsResult",
    "ScriptCancelResult",
    "ScriptError",
    "ScriptFinishedEvent",
    "ScriptNoteEvent",
    "ScriptRunResult",
    "ScriptStartedEvent",
    "SearchMatch",
    "SeqRange",
    "SessionActiveResult",
    "SessionEndResult",
    "SessionGetResult",
    "SessionInfo",
    "ShutdownResult",
    "SignalResult",
    "Signatures",
    "Span",
    "StageCommitResult",
    "StageDiffResult",
    "StageDiscardResult",
    "StageReadyEvent",
    "StagedFile",
    "StartedBy",
    "StartedEvent",
    "ToolDefinition",
    "ToolProviderEvent",
    "ToolProviderInfo",
    "ToolsCallResult",
    "ToolsListResult",
    "ToolsRefreshResult",
    "ToolsRegisterResult",
    "ToolsUnregisterResult",
    "Truncated",
    "TypedText",
    "Unreadable",
    "UntilMatch",
    "UntilPort",
    "UntilQuietMs",
    "Usage",
    "VerdictReason",
    "WaitResult",
    "Waited",
    "Watch",
    "WatchDisabledEvent",
    "WatchMatchEvent",
    "WatchOverflowReleasedEvent",
    "WatchOverflowTrippedEvent",
    "Why",
    "WriteResult",
    "Ansi",
    "ApprovalId",
    "ApprovalKind",
    "ApprovalPolicy",
    "ApprovalState",
    "BreakerState",
    "CallDetail",
    "CallStatus",
    "Charset",
    "ConsumerStart",
    "Deadline",
    "DecidedBy",
    "Decision",
    "EditStrategy",
    "Effect",
    "Encoding",
    "EntryType",
    "EnvMode",
    "Event",
    "EventType",
    "GrantId",
    "HardLinks",
    "IfBusy",
    "IfRunning",
    "Key",
    "KillStatus",
    "LaggedOf",
    "Language",
    "LineEnding",
    "ListedState",
    "Measure",
    "Network",
    "Notification",
    "PatchMode",
    "PatchOp",
    "PatchStatus",
    "Pattern",
    "PrefixPart",
    "ProcId",
    "ProfileMode",
    "ProviderState",
    "Pty",
    "Ready",
    "Reason",
    "RestartPolicy",
    "RestartSetting",
    "SandboxSetting",
    "Scope",
    "ScriptStatus",
    "SearchMode",
    "StageState",
    "StagedKind",
    "StagedOp",
    "Status",
    "Stdin",
    "StdinMode",
    "Stream",
    "ToolEntries",
    "ToolState",
    "ToolsDetail",
    "ToolsFormat",
    "Toolset",
    "Until",
    "Verdict",
    "View",
    "WaitMode",
    "WaitStatus",
    "WatchState",
]


class Action(TypedDict, total=False):
    """The action that an approval is about. `digest` of the approval is SHA-256 of its JSON."""

    # The program and its arguments; for shell text, those of the shell.
    argv: List[str]
    # The command as a person would type it.
    command: Union[str, None]
    # The file that is executed.
    program: Union[str, None]
    cwd: Union[str, None]
    # Names of the variables that the call sets.
    env_names: List[str]
    profile: Union[ProfileChange, None]
    # The process that failed in its sandbox, if it is to run once more without.
    retry_of: Union[ProcId, None]
    files: List[ActionFile]
    # The change of the files as text.
    diff: Union[str, None]
    # The tool that is called.
    tool: Union[str, None]
    # The arguments of the tool as JSON, at most 4000 characters of it.
    args: Union[str, None]
    # SHA-256 of all arguments, in hex.
    args_sha256: Union[str, None]


class _ActionFileRequired(TypedDict):
    path: str
    # `add`, `update`, `delete`, `move` or `write`.
    op: str


class ActionFile(_ActionFileRequired, total=False):
    """A file that an action changes."""

    # SHA-256 of the new content, in hex, if it is known.
    sha256: Union[str, None]


class _AllowedByRequired(TypedDict):
    # The rules that allowed its commands.
    rules: List[RuleRef]


class AllowedBy(_AllowedByRequired, total=False):
    """The permission under which a process was started."""

    # The approval that it waited for, with who decided, and when.
    approval: Union[Approval, None]
    # The grant that covered it.
    grant: Union[Grant, None]


class _ApprovalRequired(TypedDict):
    id: ApprovalId
    state: ApprovalState
    kind: ApprovalKind
    requested_by: Caller
    # RFC 3339, UTC.
    at: str
    # The deadline. It denies.
    expires_at: str
    why: List[Why]
    action: Action
    # SHA-256 of the action, in hex. A decision must name it.
    digest: str
    offers: List[Offer]


class Approval(_ApprovalRequired, total=False):
    """A question that waits for a person, or its answer."""

    # The process that waits for it. Of kind `retry`: the one that failed in its sandbox.
    process: Union[ProcId, None]
    # The process that waits for it and would run without the sandbox, of kind `retry`.
    retry: Union[ProcId, None]
    # The script whose call asks.
    script: Union[ProcId, None]
    session_key: Union[str, None]
    task_id: Union[str, None]
    decided_by: Union[DecidedBy, None]
    decided_at: Union[str, None]
    decision: Union[Decision, None]
    scope: Union[Scope, None]
    # The grant that the decision made.
    grant: Union[GrantId, None]
    message: Union[str, None]
    # The reason why scope `always` added no rule: it was approved once. Null: the rule is there, or none was wanted.
    rule_error: Union[str, None]


class ApprovalDecidedEvent(TypedDict):
    """A question was answered, withdrawn, or not answered in time."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["approval_decided"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    approval: ApprovalId
    # `approved`, `denied`, `aborted`, `timeout` or `withdrawn`.
    state: ApprovalState
    # The reach of a decision. Null: none was made.
    scope: Union[Scope, None]
    # The one who decided or withdrew it, or `timeout`.
    decided_by: DecidedBy
    # The message of the one who decided.
    message: Union[str, None]
    # The command or the files, at most 2000 characters of it.
    command: str
    digest: str


class ApprovalRequestedEvent(TypedDict):
    """A person is asked. `id` is the process that waits, or the script whose call does."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["approval_requested"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    approval: ApprovalId
    kind: ApprovalKind
    # The command or the files, at most 2000 characters of it.
    command: str
    cwd: Union[str, None]
    # The reasons for the question.
    why: List[Why]
    # The digest that a decision must name.
    digest: str
    # The deadline. It denies.
    expires_at: str
    requested_by: Caller


class _ApprovalsDecideResultRequired(TypedDict):
    approval: Approval


class ApprovalsDecideResult(_ApprovalsDecideResultRequired, total=False):
    # The approvals that `abort` withdrew.
    withdrawn: List[ApprovalId]
    # The grant that scope `session` or `script` made.
    grant: Union[Grant, None]


class ApprovalsListResult(TypedDict):
    """Approvals, oldest first."""

    approvals: List[Approval]
    # Number of those that were selected. `limit` may leave the newest out.
    total: int


class Artifact(TypedDict):
    """A file that a script named as its product."""

    path: str
    bytes: int
    sha256: str


class _BreakerRequired(TypedDict):
    state: BreakerState
    # Matches in the current window.
    recent: int
    # Matches suppressed in this cooldown.
    dropped: int


class Breaker(_BreakerRequired, total=False):
    # Milliseconds until the cooldown is over.
    release_ms: Union[int, None]


class CallCounts(TypedDict):
    """The calls of a script."""

    # Calls that count: those in the journal.
    made: int
    refused: int
    failed: int
    # Calls that may have happened.
    unknown: int
    # The first and the last 50.
    log: List[CallSummary]


class _CallSummaryRequired(TypedDict):
    call: str
    tool: str
    # The first 80 characters of the arguments.
    args_preview: str
    status: CallStatus
    # Length of the result as JSON.
    bytes: int


class CallSummary(_CallSummaryRequired, total=False):
    """A call in the result of a script."""

    # Null: it has not ended.
    ms: Union[int, None]


class _CallerRequired(TypedDict):
    uid: int
    pid: int


class Caller(_CallerRequired, total=False):
    """A process that called: the peer of the socket, as the kernel reports it."""

    # Its program. Null if it had ended, or may not be looked at.
    program: Union[str, None]


class _CheckedSandboxRequired(TypedDict):
    profile: str
    mode: ProfileMode
    network: Network
    # The directories that it may write in. Empty without a sandbox: it is not confined.
    roots: List[str]


class CheckedSandbox(_CheckedSandboxRequired, total=False):
    """The confinement that a call would get."""

    # Paths inside a root that stay read-only.
    protect: List[str]
    # Protected names that are not protected: they do not exist, or a link leads to them.
    unprotected: List[str]
    # The measures that are enforced.
    enforced: List[Measure]
    # The measures without which it does not start.
    require: List[Measure]
    # The mechanisms that enforce them.
    by: Union[Mechanisms, None]


class CloseResult(TypedDict):
    id: ProcId
    stdin: Stdin


class ClosedEvent(TypedDict):
    """Both output streams are at their end."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["closed"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # All bytes written.
    bytes: int
    # All lines written.
    lines: int


class _CompletionEventRequired(TypedDict):
    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["completion"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # The command line, at most 2000 characters of it.
    command: str
    # The program's exit code; 128+n after signal n. Null if unknown.
    exit_code: Union[int, None]
    # The signal that ended it.
    signal: Union[str, None]
    # The cause of the end.
    reason: Union[Reason, None]
    # The caller, the limit or the timeout that ended it, if toold did.
    killed_by: Union[str, None]
    # Milliseconds from the start to the exit.
    duration_ms: int


class CompletionEvent(_CompletionEventRequired, total=False):
    """The program ended, with the end of its output; for processes started with `notify`."""

    # Matching lines that no `watch_match` reported. Only with a watch.
    suppressed: int
    # Bytes that the log dropped before the watch scanned them. Only with a watch.
    unseen_bytes: int
    # The reason why the program never ran, or why its end was not observed. Only then.
    failure: Failure
    # The last 2000 characters, without escape sequences.
    output: str
    # The file with the first bytes of output. Null if there is none.
    output_path: Union[str, None]
    # Bytes written up to the exit.
    bytes: int
    # Lines written up to the exit.
    lines: int
    # SHA-256 of all these bytes, in hex. Null if the log does not hold all of them.
    sha256: Union[str, None]
    # Bytes that the log dropped: the middle beyond `log_max_bytes`.
    dropped_bytes: int
    # Bytes that could not be written to disk.
    unstored_bytes: int
    # True if `session.end` ended it. Such an event is not pushed.
    cancelled: bool
    # The error that kept toold from reading the output. The fields on the output are missing then.
    output_error: str


class Consumer(TypedDict):
    name: str
    position: int
    used_at: str


class _CountsRequired(TypedDict):
    starting: int
    running: int
    exited: int
    lost: int
    connections: int


class Counts(_CountsRequired, total=False):
    # Processes that wait for their turn.
    pending: int


class Covers(TypedDict, total=False):
    """The content of a grant: the commands or paths that it covers."""

    argv: List[str]
    cwd: Union[str, None]
    profile: Union[str, None]
    # The directory in which files may be changed.
    root: Union[str, None]
    # The identity of that directory when it was granted: device and inode.
    root_id: Union[str, None]
    # The beginning of the command that a rule in `rules/approved.toml` would allow.
    prefix: List[str]
    # The script whose calls it covers.
    script: Union[ProcId, None]
    # The tool whose calls it covers.
    tool: Union[str, None]
    # SHA-256 of the arguments of that tool, in hex: only calls with exactly these.
    args_sha256: Union[str, None]
    # Arguments of that tool: only calls that have these, with these values.
    args_like: Union[Dict[str, Any], None]
    # The most actions that it allows. Null: any number.
    uses: Union[int, None]


class _DaemonInfoResultRequired(TypedDict):
    version: str
    protocol: int
    pid: int
    started_at: str
    uptime_ms: int
    counts: Counts
    # Resources of all process trees and the daemon together.
    usage: Usage
    daemon: Usage
    # Every config key and the value in use.
    limits: Dict[str, Any]
    # Features of this system: pidfd, cgroup, landlock ABI and so on.
    features: Dict[str, Any]
    paths: DaemonPaths
    # Files that were found damaged, with where they were quarantined, and records that cannot be read now.
    damaged: List[str]
    events: Journal
    watch: Breaker


class DaemonInfoResult(_DaemonInfoResultRequired, total=False):
    # The rules in force.
    policy: PolicyReport
    # The last check of the sandbox. Null: it was not checked yet.
    sandbox: Union[SandboxProbeResult, None]
    # Clients that serve tools, by name.
    tool_providers: List[ToolProviderInfo]
    # The sessions that have a client or a process that runs, by key.
    sessions: List[SessionInfo]


class _DaemonPathsRequired(TypedDict):
    socket: str
    state_dir: str


class DaemonPaths(_DaemonPathsRequired, total=False):
    config: Union[str, None]


class DangerReport(TypedDict):
    """A dangerous command that was found."""

    # `forced_removal`.
    kind: str
    # The command as it was found, at most 16 arguments of it.
    command: List[str]


class DenialEvent(TypedDict):
    """The sandbox refused a call of a process: the first of each operation and target, at most 20 a process."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["denial"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # The system call.
    op: str
    # The file concerned, resolved.
    path: Union[str, None]
    # The address concerned, of a network call.
    address: Union[str, None]
    # The path that the program named, if a link led from it to `path`.
    via: Union[str, None]
    # The error that the program got.
    errno: int


class Denials(TypedDict):
    """The calls that the sandbox refused, as the kernel reported them."""

    # The measures whose refusals are seen: `fs_write`, `network`.
    observed: List[str]
    # Refusals that are not seen: `fs_read`.
    unknown: List[str]
    # All refusals.
    count: int
    # The first 64 that differ, oldest first.
    list: List[RefusedCall]


class DeniedEvent(TypedDict):
    """The policy refused an `exec`. Nothing was started, and nothing else is recorded."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["denied"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The command line, at most 2000 characters of it.
    command: str
    cwd: str
    reason: str
    # The rule that denies it. Null: the reason is another one.
    rule: Union[RuleRef, None]
    # The caller.
    uid: int
    pid: int


class _EntryRequired(TypedDict):
    # `path` of the call and the rest, so that it can be read with the same `cwd`.
    path: str
    name: str
    type: EntryType


class Entry(_EntryRequired, total=False):
    """One name in a directory."""

    # Size of a file. Null for others.
    bytes: Union[int, None]
    # Time of the last change of the content. RFC 3339, UTC. Null: not known.
    modified_at: Union[str, None]
    # The path in a link. Null for others.
    target: Union[str, None]


class Escalate(TypedDict):
    """The wish to run a command under a wider profile."""

    # The profile.
    to: str
    # The reason, for the person who decides.
    reason: str


class EventMessage(TypedDict):
    """The notification that a subscription sends, as it is on the wire."""

    jsonrpc: Literal["2.0"]
    method: Literal["events.event"]
    params: EventMessageParams


class EventMessageParams(TypedDict):
    """The parameters of `events.event`."""

    # The number that `events.subscribe` returned.
    subscription: int
    result: Notification


class EventsAckResult(TypedDict):
    consumer: str
    position: int


class _EventsNextResultRequired(TypedDict):
    consumer: str
    events: List[Event]
    # The last acknowledged event.
    position: int
    # The newest event in the journal.
    last: int
    # True if the consumer is new.
    created: bool


class EventsNextResult(_EventsNextResultRequired, total=False):
    # Events after the position that the journal does not have any more.
    missing: Union[SeqRange, None]
    # The earlier consumer of this name, if it expired after `events.consumer_ttl_ms` without use.
    forgotten: Union[Forgotten, None]
    # Damage to the stored position, until the consumer acknowledges an event or its `position`: it may receive events again.
    damaged: Union[PositionDamage, None]


class Excerpt(TypedDict):
    """The part of a text that was kept."""

    # Bytes of the whole text, without escape sequences.
    total: int
    # Bytes of it that are here.
    kept: int
    # Bytes of it that are not.
    omitted: int
    # Bytes that are here from its beginning.
    head: int
    # Bytes that are here from its end.
    tail: int


class _ProcessRequired(TypedDict):
    id: ProcId
    # The shell text, or the argv quoted for a shell.
    command: str
    argv: List[str]
    cwd: str
    backend: str
    status: Status
    # Both output streams are at their end.
    closed: bool
    core_dumped: bool
    # RFC 3339, UTC. Of a process that has not started: the time of the call.
    started_at: str
    uptime_ms: int
    pty: bool
    stdin: Stdin
    labels: Dict[str, str]
    notify: bool
    # All bytes written so far.
    bytes: int
    lines: int
    # The end of the output so far.
    cursor: int
    # Bytes that the log dropped: the middle beyond `log_max_bytes`.
    dropped_bytes: int
    # Bytes that could not be written to disk.
    unstored_bytes: int
    limits: Dict[str, LimitReport]
    sandbox: Sandbox


class Process(_ProcessRequired, total=False):
    """One run of a program. With `fields` or `view`, only the selected fields are there."""

    name: Union[str, None]
    pid: Union[int, None]
    # The program is stopped, by `pause`, by a signal or by itself. `resume` continues it.
    stopped: bool
    # The reasons why it waits, while `status` is `pending`.
    pending_on: Union[PendingOn, None]
    # The program's own code; 128+n after signal n. Null while unknown.
    exit_code: Union[int, None]
    signal: Union[str, None]
    reason: Union[Reason, None]
    killed_by: Union[str, None]
    failure: Union[Failure, None]
    exited_at: Union[str, None]
    pty_size: Union[PtySize, None]
    # The wait for input in which the program is, as the kernel shows it. Null: it is in none, or that cannot be known.
    needs_input: Union[InputWait, None]
    # The number of processes of its tree that live on after its exit.
    descendants: int
    task_id: Union[str, None]
    session_key: Union[str, None]
    # The client that started it. Null: an earlier version did not record it.
    started_by: Union[StartedBy, None]
    watch: Union[Watch, None]
    # True while it is held back: the log is full of output that the connection which follows it has not read. Null: it was started without `hold`.
    held_back: Union[bool, None]
    # The stage on which it ran. Null: it was started without `stage`.
    stage: Union[ProcessStage, None]
    # The script or kernel that it is. Null: it is neither.
    script: Union[ProcessScript, None]
    # The kernel that it is. Null: it is none.
    kernel: Union[ProcessKernel, None]
    # True while its shim runs but does not answer.
    detached: Union[bool, None]
    # The reason why its shim cannot be reached from this daemon, and what to do. Null: it can, or the reason is not known.
    unreachable: Union[str, None]
    request_id: Union[str, None]
    # The previous run, if this is a restart.
    restart_of: Union[ProcId, None]
    # The approval that it waits for, or that let it start or not.
    approval: Union[ApprovalId, None]
    # The process that failed in its sandbox, if this one is its approved retry.
    retry_of: Union[ProcId, None]
    # Its retry without the sandbox, in which it failed. Null: there is none.
    retry: Union[ProcessRetry, None]
    # The result of the patch that it applied: its command was `apply_patch`.
    patch: Union[PatchResult, None]
    # Damage found in its files: what cannot be read, or is not known any more. Null: none was found.
    damaged: Union[List[str], None]
    # The fields whose values are too long for this answer and cut in it. A text that is cut ends in `…`.
    cut: Union[List[str], None]


class _ExecResultRequired(Process):
    output: str
    next_cursor: int


class ExecResult(_ExecResultRequired, total=False):
    """One run of a program. With `fields` or `view`, only the selected fields are there."""

    # The part that `max_output_tokens` cut. Null: nothing was cut.
    truncated: Union[Truncated, None]
    gap: Union[Gap, None]
    # True if this call started nothing: the process was running already, with `if_running: "return"`, or an earlier call with the same `request_id` started it.
    existing: bool
    # The reason for the answer of a call with `ready`.
    ready: Union[Ready, None]


class _ExitedEventRequired(TypedDict):
    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["exited"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # The command line, at most 2000 characters of it.
    command: str
    # The program's exit code; 128+n after signal n. Null if unknown.
    exit_code: Union[int, None]
    # The signal that ended it.
    signal: Union[str, None]
    # The cause of the end.
    reason: Union[Reason, None]
    # The caller, the limit or the timeout that ended it, if toold did.
    killed_by: Union[str, None]
    # Milliseconds from the start to the exit.
    duration_ms: int
    # `exited`, or `lost` if toold could not observe the exit.
    status: Status
    # Bytes written so far. A descendant may write more.
    bytes: int
    # Lines written so far.
    lines: int


class ExitedEvent(_ExitedEventRequired, total=False):
    """The program ended, or could not start."""

    # Matching lines that no `watch_match` reported. Only with a watch.
    suppressed: int
    # Bytes that the log dropped before the watch scanned them. Only with a watch.
    unseen_bytes: int
    # The reason why the program never ran, or why its end was not observed. Only then.
    failure: Failure


class _FailureRequired(TypedDict):
    # The step of a start that failed: `exec`, `chdir`, `pty`, ... Of a lost process: `launch` or `shim` if its shim died before or after it reported the start, `reboot`, `record` if its record is damaged, or `unknown`.
    step: str
    errno: int
    # `ENOENT` and the like.
    error: str
    # The program or directory concerned.
    path: str


class Failure(_FailureRequired, total=False):
    """The reason why a start failed, or why an end was not observed."""

    # The reason, for a person. Absent from events of earlier versions.
    message: str


class FinishedCalls(TypedDict):
    """The number of calls of a script that has ended."""

    made: int
    refused: int
    failed: int
    unknown: int


class ForgetResult(TypedDict):
    forgotten: List[ProcId]
    skipped: List[ProcId]


class Forgotten(TypedDict):
    # Its last position.
    position: int
    # The time at which it expired.
    at: str


class _FsEditResultRequired(TypedDict):
    # Absolute, without links.
    path: str
    # Replaced places.
    count: int
    sha256: str
    before_sha256: str


class FsEditResult(_FsEditResultRequired, total=False):
    # Null with `no_change`.
    strategy: Union[EditStrategy, None]
    # The change as a unified diff. Null if it is too large.
    diff: Union[str, None]
    # True if the file has `new` already and `old` nowhere. Nothing was written.
    no_change: bool
    # Properties of the old file that the new one could not get: `owner`, `xattr …`.
    not_kept: List[str]


class _FsListResultRequired(TypedDict):
    # Absolute, without links.
    path: str
    # In the order of the names; a directory before its content.
    entries: List[Entry]


class FsListResult(_FsListResultRequired, total=False):
    # `after` of the next page. Null: there is none.
    next: Union[str, None]
    # Directories that could not be read, with the reason. At most 10.
    unreadable: List[Unreadable]


class _FsReadResultRequired(TypedDict):
    # Absolute, without links.
    path: str
    # Lines with their line ends; or base64. Empty for a binary file that is read as text.
    content: str
    # Size of the file.
    bytes: int
    # True if the file goes on after `content`.
    truncated: bool
    # The file begins with a byte order mark. `content` does not.
    bom: bool
    charset: Charset


class FsReadResult(_FsReadResultRequired, total=False):
    # Lines of the file. Null: the file is larger than `fs.max_file_bytes`.
    total_lines: Union[int, None]
    # Hash of all bytes of the file, for `expect`. Null: the file is larger than `fs.max_file_bytes`.
    sha256: Union[str, None]
    # `offset` of the next page. Null: there is none.
    next_offset: Union[int, None]
    # `from_byte` of the next page. Null: there is none, or the page consists of lines.
    next_byte: Union[int, None]
    # Null: no line ends, or not known.
    line_ending: Union[LineEnding, None]
    # The file is not text.
    binary: bool
    # Bytes that are not valid in the charset are U+FFFD in `content`.
    lossy: bool


class _FsSearchResultRequired(TypedDict):
    # In the order of paths and lines.
    matches: List[SearchMatch]
    # All lines that match; with `files`, all files. At least that many if `complete` is false.
    total: int
    # Files with a line that matches.
    files: int
    # False if not everything was searched.
    complete: bool


class FsSearchResult(_FsSearchResultRequired, total=False):
    # The cause if `complete` is false.
    reason: Union[str, None]
    # `after` of the next page. Null: there is none.
    next: Union[str, None]
    # Files that could not be read. At most 10.
    unreadable: List[Unreadable]


class _FsWriteResultRequired(TypedDict):
    # Absolute, without links.
    path: str
    bytes: int
    sha256: str
    # True if there was no such file.
    created: bool


class FsWriteResult(_FsWriteResultRequired, total=False):
    # Hash of the old content. Null: the file is new, or larger than `fs.max_file_bytes`.
    before_sha256: Union[str, None]
    # The change as a unified diff. Empty if the content was the same already; null if a side is binary or too large.
    diff: Union[str, None]
    # Properties of the old file that the new one could not get: `owner`, `xattr …`.
    not_kept: List[str]


_GapKeywords = TypedDict("_GapKeywords", {"from": "int"})


class Gap(_GapKeywords):
    """A range of output that the log dropped."""

    to: int


class _GrantRequired(TypedDict):
    id: GrantId
    scope: Scope
    # The approval that made it.
    approval: ApprovalId
    # The one who gave it.
    owner: Caller
    covers: Covers
    at: str
    # Number of actions that it allowed.
    uses: int


class Grant(_GrantRequired, total=False):
    """A permission that a person gave."""

    session_key: Union[str, None]
    # Null: it ends with the session, or with the script.
    expires_at: Union[str, None]
    last_used_at: Union[str, None]
    revoked_at: Union[str, None]
    revoked_by: Union[Caller, None]
    # The reason why it ended, if no person ended it.
    revoke_reason: Union[str, None]


class GrantAddedEvent(TypedDict):
    """A person allowed the same action for the rest of a session, or a tool for the rest of a script."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["grant_added"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    grant: GrantId
    approval: ApprovalId
    scope: Scope
    # The one who gave it.
    owner: Caller
    # The commands or paths that it covers.
    covers: Covers
    # Null: it ends with the session, or with the script.
    expires_at: Union[str, None]


class GrantRevokedEvent(TypedDict):
    """A grant ended: it was revoked, or its session or script ended."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["grant_revoked"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    grant: GrantId
    # Number of actions that it allowed.
    uses: int
    revoked_by: Caller
    # The reason why it ended, if no person ended it.
    reason: Union[str, None]


class GrantTerms(TypedDict, total=False):
    """The terms of a grant."""

    # The grant ends after this time, in milliseconds. Default: with the session, or with the script.
    expires_ms: Union[int, None]
    # The directory to grant: the one that is offered, or one below it.
    root: Union[str, None]
    # With scope `script`, the tool to grant: the one that is offered.
    tool: Union[str, None]
    # With scope `script`, arguments that a call must have, with these values. Default: any.
    args_like: Union[Dict[str, Any], None]
    # With scope `script`, the most later calls that it allows. Default: any number.
    uses: Union[int, None]


class GrantsListResult(TypedDict):
    grants: List[Grant]


class GrantsRevokeResult(TypedDict):
    # The grants that this call revoked.
    revoked: List[Grant]
    # The processes that still run under them.
    running: List[ProcId]
    # The trees that `kill` ended.
    killed: List[Killed]


class HeartbeatEvent(TypedDict):
    """There is new output; for processes started with a heartbeat."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["heartbeat"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # Bytes written so far.
    bytes: int
    # Lines written so far.
    lines: int
    # Bytes since the last heartbeat.
    new_bytes: int
    # The end of the output so far.
    cursor: int
    # The last 200 characters, without escape sequences.
    output: str


class _InputWaitRequired(TypedDict):
    # The time at which it was first seen to wait. RFC 3339, UTC.
    since: str
    # The last line of the output if it has no newline, at most its last 200 characters. Else empty.
    prompt: str


class InputWait(_InputWaitRequired, total=False):
    """A wait of a program for input."""

    # True if its terminal shows what is typed. Null: it has no terminal, or that cannot be known.
    echo: Union[bool, None]


class InsideRefusedEvent(TypedDict):
    """A process inside a job made a call that it must not make: any call from inside a sandbox, a decision from inside any job."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["inside_refused"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # The process that called.
    pid: int
    # Its program.
    program: str
    # The job is in a sandbox.
    sandboxed: bool
    # The method that was refused, or `connect`: all of them.
    what: str


class _InspectResultRequired(Process):
    tree: List[Member]
    usage: Usage
    state_path: str
    env_names: List[str]


class InspectResult(_InspectResultRequired, total=False):
    """One run of a program. With `fields` or `view`, only the selected fields are there."""

    # The TCP ports on which the tree listens, by port, with the process and the address of each.
    listeners: List[Listener]
    # The file with the first bytes of output; null before the first byte.
    log_path: Union[str, None]
    # All files of output, in order: the first, and `log.<offset>` from that byte on. They hold the bytes as they came.
    log_files: List[str]
    shim_pid: Union[int, None]
    timeout_ms: Union[int, None]
    heartbeat_ms: Union[int, None]
    # The approval, the grant or the rules that let it start. Null: it needed none.
    allowed_by: Union[AllowedBy, None]


class Journal(TypedDict):
    oldest: int
    last: int
    bytes: int
    consumers: List[Consumer]


class _JournalledCallRequired(TypedDict):
    call: str
    tool: str
    # The arguments, or their first 80 characters as text.
    args: Any
    status: CallStatus
    # RFC 3339, UTC.
    at: str
    # Length of the result as JSON.
    bytes: int


class JournalledCall(_JournalledCallRequired, total=False):
    """A call in the journal of a script."""

    ended_at: Union[str, None]
    ms: Union[int, None]
    # The kind of the error, if it failed.
    error: Union[str, None]
    # The process that it started.
    process: Union[str, None]
    # The approval that it waited for.
    approval: Union[ApprovalId, None]
    # The cell of a kernel.
    cell: Union[int, None]


class _KernelCloseResultRequired(TypedDict):
    id: ProcId
    status: KillStatus


class KernelCloseResult(_KernelCloseResultRequired, total=False):
    """The result of `kernel.close`."""

    # Processes of the tree that survived.
    survivors: List[int]


class _KernelInterruptResultRequired(TypedDict):
    id: ProcId
    # False: the interpreter did not stop in time and was killed, or it ended by the signal.
    state_kept: bool


class KernelInterruptResult(_KernelInterruptResultRequired, total=False):
    """The result of `kernel.interrupt`."""

    # The cell that was interrupted. Null: none ran.
    cell: Union[int, None]


class KernelOpenResult(Process, total=False):
    """One run of a program. With `fields` or `view`, only the selected fields are there."""

    # True if this call started nothing: an earlier one with the same `request_id` did.
    existing: bool


class _KernelResetResultRequired(TypedDict):
    id: ProcId
    # The number that the reset has among the cells.
    cell: int
    # The cells that waited and will not run.
    dropped: List[int]


class KernelResetResult(_KernelResetResultRequired, total=False):
    """The result of `kernel.reset`."""

    # The cell that ran and was interrupted. Null: none ran.
    interrupted: Union[int, None]


class KillResult(TypedDict):
    status: KillStatus
    results: List[Killed]


class _KilledRequired(TypedDict):
    id: ProcId
    status: KillStatus
    signals_sent: List[str]
    survivors: List[Member]


class Killed(_KilledRequired, total=False):
    exit_code: Union[int, None]
    signal: Union[str, None]
    reason: Union[Reason, None]
    # The reason why `survivors` does not list all that is left, or why the shim could not be asked.
    note: Union[str, None]


_LaggedPushKeywords = TypedDict("_LaggedPushKeywords", {"from": "int"})


class LaggedPush(_LaggedPushKeywords):
    """The subscriber missed a range of events or output, because retention removed it or the subscriber read too slowly."""

    type: Literal["lagged"]
    # The kind of range: event numbers, both missed, or cursors in the output of `id`.
    of: LaggedOf
    # The process. Null for events.
    id: Union[ProcId, None]
    # The last event that was missed; for output, the first byte after it.
    to: int


class _LimitReportRequired(TypedDict):
    requested: int


class LimitReport(_LimitReportRequired, total=False):
    """One requested limit."""

    # `cgroup2`, `cgroup1` or `shim`. Null: not enforced here.
    enforced_by: Union[str, None]
    # The reason why it is not enforced, or a remark.
    note: Union[str, None]
    # Processes of the tree that the kernel had killed for memory when the program ended. Absent: none.
    oom_kills: Union[int, None]


class Limits(TypedDict, total=False):
    """Limits of one process tree. `limits` in the result reports those that this machine cannot enforce."""

    # Memory of the whole tree.
    memory_bytes: Union[int, None]
    # Percent of one CPU; 200 is two CPUs.
    cpu_percent: Union[int, None]
    # Processes and threads in the tree.
    pids: Union[int, None]
    # Output kept on disk, below `log_max_bytes`.
    output_bytes: Union[int, None]
    # Kill the process after this time without output and input, in milliseconds.
    idle_ms: Union[int, None]


class _ListResultRequired(TypedDict):
    processes: List[Listed]
    total: int


class ListResult(_ListResultRequired, total=False):
    # Processes within `limit` that did not fit into the answer, the oldest.
    omitted: Union[int, None]
    # Processes that `ended_within_ms` left out.
    older: Union[int, None]


class _ListedRequired(Process):
    # The last 200 characters.
    preview: str


class Listed(_ListedRequired, total=False):
    """One run of a program. With `fields` or `view`, only the selected fields are there."""

    # Resources of the tree. Only with `usage`, while a process of the tree runs.
    usage: Union[Usage, None]
    # The TCP ports on which the tree listens. Only with `usage`, while a process of the tree runs.
    ports: Union[List[int], None]


class _ListedToolRequired(TypedDict):
    name: str


class ListedTool(_ListedToolRequired, total=False):
    """A tool in the detail that was asked for."""

    provider: str
    # With `summary` the first line.
    description: str
    effect: Effect
    idempotent: bool
    parallel: bool
    timeout_ms: int
    state: ToolState
    # The reason why it is not ready.
    why: str
    # Only with `full`, like all that follows.
    input_schema: Any
    output_schema: Any
    signatures: Signatures


class Listener(TypedDict):
    pid: int
    port: int
    # The local address of the socket.
    address: str


class _LogMatchRequired(TypedDict):
    id: ProcId
    # The number of the line in its log, from 0, as `offset` takes it.
    line: int
    text: str


class LogMatch(_LogMatchRequired, total=False):
    name: Union[str, None]


class _LogResultRequired(TypedDict):
    # The lines. In a search of several logs each is `name:line:text`, with the id of a process without a name.
    output: str
    # The lines of the log, or of all logs that were searched.
    total_lines: int
    # Number of the first line in `output`, from 0. With `grep`: of the first match.
    first_line: int
    lines_shown: int
    # True if the output was cut to fit, or not all logs could be searched in the time for one call.
    truncated: bool


class LogResult(_LogResultRequired, total=False):
    # Null in the result of a search of several logs.
    id: Union[ProcId, None]
    # Matching lines in the whole log, or in all logs that were searched. Only with `grep`.
    matched_lines: Union[int, None]
    # The `offset` of the next page. Null: the end was reached.
    next_offset: Union[int, None]
    gap: Union[Gap, None]
    # The matching lines of a search of several logs, newest process first, and of each its last ones in their order.
    matches: Union[List[LogMatch], None]
    # The number of logs that were searched.
    searched: Union[int, None]
    # The number of logs that were not searched to their ends: `limit` was reached, the time was over, or they cannot be read.
    unsearched: Union[int, None]


class _MechanismsRequired(TypedDict):
    # A filter of system calls is used.
    seccomp: bool
    # The namespaces of its own: `user`, `mnt`, `net`.
    namespaces: List[str]


class Mechanisms(_MechanismsRequired, total=False):
    """The mechanisms of the kernel that confine a process."""

    # The version of Landlock that is used. Null: it is not.
    landlock: Union[int, None]


class Member(TypedDict):
    """One member of a process tree."""

    pid: int
    ppid: int
    command: str
    # The kernel's letter: R, S, D, Z, T...
    state: str
    threads: int
    # CPU time used so far.
    cpu_ms: int
    rss_bytes: int


class NearestPlace(TypedDict):
    """A place in a file."""

    # From 1.
    line: int
    text: str


class NeedsInputEvent(TypedDict):
    """The program waits for input."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["needs_input"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # The pid that reads: the program or a descendant.
    pid: int
    # False if the terminal does not show what is typed. Null without a terminal.
    echo: Union[bool, None]
    # The last line of the output, if it has no newline.
    prompt: str
    # The end of the output so far.
    cursor: int


class NotEnforced(TypedDict):
    """A measure that is not in force."""

    what: Measure
    # The reason, for a person.
    why: str


class _OfferRequired(TypedDict):
    scope: Scope


class Offer(_OfferRequired, total=False):
    """A scope that a decision may choose, and the grant that it makes."""

    # Null for `once`.
    grant: Union[Covers, None]


class _OutputPushRequired(TypedDict):
    type: Literal["output"]
    # The process.
    id: ProcId
    # The start of `data` in the output.
    cursor: int
    # The end of `data` in the output.
    next_cursor: int
    # The stream that the text came from.
    stream: Stream
    # The text. A character or an escape sequence is never split between two pushes.
    data: str
    # The process's name.
    name: Union[str, None]


class OutputPush(_OutputPushRequired, total=False):
    """New output of a process. Only with `output` in `events.subscribe`."""

    # The time at which the first of it arrived, RFC 3339, UTC.
    at: str


class PatchAppliedEvent(TypedDict):
    """A patch was applied. Of no process; `session_key` and `task_id` are those of the call."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["patch_applied"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # For `patch.revert`.
    patch_id: str
    # The directory from which the paths are meant.
    cwd: str
    # The first 64 files that were changed, as the patch names them.
    files: List[str]
    # The number of all files.
    count: int
    # Lines.
    added: int
    # Lines.
    removed: int


class _PatchFailureRequired(TypedDict):
    # The reason, for a person.
    message: str


class PatchFailure(_PatchFailureRequired, total=False):
    """The operation that a patch failed at."""

    # The line of the patch, from 1.
    line: int
    # The file, as the patch names it.
    path: str
    # The places of the file that are most like the missing lines, best first.
    nearest: List[NearestPlace]


class _PatchFileRequired(TypedDict):
    # As the patch names it.
    path: str
    op: PatchOp
    # Lines.
    added: int
    # Lines.
    removed: int
    # The loosest comparison by which lines were found: 0 equal, 1 without blanks at their ends, 2 also without those at their starts, 3 also with other dashes, quotes and spaces.
    fuzz: int


class PatchFile(_PatchFileRequired, total=False):
    """One file of a patch."""

    # The new name.
    to: str
    # SHA-256 in hexadecimal digits. Null: there was no file.
    before_sha256: Union[str, None]
    # Null: there is no file.
    after_sha256: Union[str, None]


class _PatchResultRequired(TypedDict):
    status: PatchStatus
    files: List[PatchFile]
    # A unified diff of all files.
    diff: str


class PatchResult(_PatchResultRequired, total=False):
    """The result of `patch.apply`, and of a process that ran `apply_patch`."""

    # For `patch.revert`. Null: nothing happened.
    patch_id: Union[str, None]
    # The diff is longer and cut.
    diff_truncated: bool
    failed: PatchFailure


class PatchRevertResult(TypedDict):
    """The result of `patch.revert`."""

    patch_id: str
    status: PatchStatus
    # The operations that undid the patch.
    files: List[PatchFile]


class PatchRevertedEvent(TypedDict):
    """A patch was undone. Of no process; `session_key` and `task_id` are those of the call."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["patch_reverted"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The patch that was undone.
    patch_id: str
    # The directory from which the paths are meant.
    cwd: str
    # The first 64 files, as the patch named them.
    files: List[str]
    # The number of all files.
    count: int


class PatternRegex(TypedDict):
    regex: str


class PauseResult(Process):
    """One run of a program. With `fields` or `view`, only the selected fields are there."""


class PendingOn(TypedDict, total=False):
    """The reasons why a pending process waits."""

    # The queue in which it waits for a slot.
    queue: Union[str, None]
    # The processes of `after` that have not ended yet.
    after: Union[List[ProcId], None]
    # The restart that is due.
    restart: Union[RestartDue, None]
    # The approval that a person has not given yet.
    approval: Union[ApprovalId, None]


class _PolicyCheckResultRequired(TypedDict):
    verdict: Verdict
    # True if every command is known. Only then can a rule allow it.
    plain: bool
    # The commands. Empty if not every one is known.
    commands: List[List[str]]
    # The rules that matched, in the order of their files.
    matches: List[RuleMatch]
    sandbox: CheckedSandbox
    # The measures that this machine cannot enforce. With one of `sandbox.require` among them, `exec` is `unavailable`.
    not_enforced: List[NotEnforced]
    # Every reason, the one of the strictest verdict first.
    reasons: List[VerdictReason]


class PolicyCheckResult(_PolicyCheckResultRequired, total=False):
    danger: Union[DangerReport, None]


class PolicyLoadedEvent(TypedDict):
    """The rule files were read: at the start, or by `policy.reload`."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["policy_loaded"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # True if every file holds. False at a reload: the old rules stay.
    ok: bool
    # Number of rules in force.
    rules: int
    # Number of files that they come from.
    files: int
    # The files that were refused, with the reason.
    errors: List[str]


class PolicyReloadResult(TypedDict):
    # Number of rules in force.
    rules: int
    # Number of files that they come from.
    files: int


class PolicyReport(TypedDict):
    """The rules in force, in `daemon.info`."""

    rules: int
    files: int
    # Files that could not be loaded, with the reason. Commands that they may have judged are asked about.
    errors: List[str]


class _PolicySuggestResultRequired(TypedDict):
    id: ProcId
    # Refused calls that the suggestion covers.
    denials: int
    # Directories that it would have to write in.
    roots: List[str]


class PolicySuggestResult(_PolicySuggestResultRequired, total=False):
    # The network that it would have needed. Null: it needed no other.
    network: Union[Network, None]
    # Sockets of the host that it would have needed.
    unix_sockets: List[str]
    # The profile as text for the config. Null: there is nothing to change.
    profile: Union[str, None]
    # Rules as text for a file in `rules`. Null: its commands are not known, or too wide to be allowed.
    rules: Union[str, None]


_PollResultKeywords = TypedDict("_PollResultKeywords", {"from": "int"})


class _PollResultRequired(Process, _PollResultKeywords):
    output: str
    next_cursor: int


class PollResult(_PollResultRequired, total=False):
    """One run of a program. With `fields` or `view`, only the selected fields are there."""

    # Bytes between the requested cursor and this page that the log dropped.
    gap: Union[Gap, None]
    spans: Union[List[Span], None]


class PositionDamage(TypedDict):
    # The time at which the damage was found.
    at: str


class ProbedAct(TypedDict):
    """An act that was tried."""

    mechanism: str
    # `write`, `chmod`, `rename_protected`, `tcp`, `udp`, `abstract_socket`, `unix_socket`, `kill`, `ptrace`, `mount`, `setuid` or `read_hidden`.
    act: str
    # The measure that refuses it.
    measure: str
    # `refused`, or `not_enforced` if this mechanism does not promise it.
    expected: str
    # `refused`, `done`, or `unknown` if the process did not report it.
    got: str


class _ProbedMechanismRequired(TypedDict):
    # `auto`: all that this machine has, `namespaces` or `landlock`, as in the config.
    mechanism: str
    # A process could be confined by it.
    available: bool


class ProbedMechanism(_ProbedMechanismRequired, total=False):
    """A mechanism that was tried."""

    # The reason why it is not available.
    why: Union[str, None]
    # The parts that confined the process.
    by: Union[Mechanisms, None]


class _ProcessKernelRequired(TypedDict):
    # Cells that have started.
    cells: int
    # A cell runs or waits.
    busy: bool


class ProcessKernel(_ProcessKernelRequired, total=False):
    """The kernel that a process is."""

    language: Union[Language, None]


class _ProcessRetryRequired(TypedDict):
    # The process that runs the program again. It is `pending` until the approval is given.
    process: ProcId


class ProcessRetry(_ProcessRetryRequired, total=False):
    """The retry of a process that failed because of its sandbox."""

    # The approval that it waits for, or that let it start or not. Null: a grant or a rule let it start.
    approval: Union[ApprovalId, None]


class _ProcessScriptRequired(TypedDict):
    tools: List[str]
    # Calls so far.
    calls: int
    max_calls: int


class ProcessScript(_ProcessScriptRequired, total=False):
    """The script that a process is."""

    # Null: any program, given as `argv`.
    language: Union[Language, None]


class ProcessStage(TypedDict):
    """The stage of a process, in its description."""

    state: StageState
    # Directories on which the process sees an overlay. What it writes elsewhere is not staged.
    roots: List[str]


_ProfileChangeKeywords = TypedDict("_ProfileChangeKeywords", {"from": "str"})


class ProfileChange(_ProfileChangeKeywords):
    """A change of profile."""

    to: str


class ProtectedCreatedEvent(TypedDict):
    """A process made a path that would have been protected if it had existed before."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["protected_created"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # The path.
    path: str


class PtySize(TypedDict):
    """The size of a terminal, in characters."""

    rows: int
    cols: int


class Queue(TypedDict):
    name: str
    # Number of its processes that may run at the same time.
    slots: int
    # True: no process is started from it.
    paused: bool
    # Processes of the queue that run or are starting.
    running: int
    # Processes that wait for their turn in it.
    pending: int


class QueuesListResult(TypedDict):
    # By name. A queue is listed if it is configured, was set, or has processes.
    queues: List[Queue]


class RedactedRule(TypedDict):
    """A number of secrets of one kind that were hidden."""

    rule: str
    count: int


class _RefusedCallRequired(TypedDict):
    # The system call: `openat`, `connect`, ...
    op: str
    # The error that the program got.
    errno: int
    count: int
    # RFC 3339, UTC.
    first_at: str


class RefusedCall(_RefusedCallRequired, total=False):
    """A call that the sandbox refused."""

    # The file concerned, resolved.
    path: Union[str, None]
    # The address concerned, of a network call.
    address: Union[str, None]
    # The path that the program named, if it led to `path` by a link.
    via: Union[str, None]


class ResizeResult(TypedDict):
    id: ProcId
    rows: int
    cols: int


class RestartDue(TypedDict):
    """The time of a restart."""

    # RFC 3339, UTC.
    at: str


class RestartGaveUpEvent(TypedDict):
    """The restart policy of a process does not start it again: it ended too often in a row, or cannot be started."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["restart_gave_up"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # Restarts in a row by the policy, this run included.
    restarts: int
    # The exit code of the last run. Null if unknown.
    exit_code: Union[int, None]
    # The signal that ended the last run.
    signal: Union[str, None]
    # The reason, for a person.
    message: str


class _RestartOptionsRequired(TypedDict):
    policy: RestartPolicy


class RestartOptions(_RestartOptionsRequired, total=False):
    """A policy with its numbers."""

    # Restarts in a row before toold gives up. Default: 10.
    max: Union[int, None]
    # Delay before the first restart; it doubles with each. Default: 1000.
    backoff_ms: Union[int, None]
    # Maximum delay. Default: 60000.
    max_backoff_ms: Union[int, None]


class RestartResult(Process):
    """One run of a program. With `fields` or `view`, only the selected fields are there."""


class ResumeResult(Process):
    """One run of a program. With `fields` or `view`, only the selected fields are there."""


class RuleMatch(TypedDict):
    """A rule that matched."""

    # The file in the directory `rules`.
    file: str
    # Its place in the file, from 0.
    index: int
    # The beginning of the commands that it matches.
    prefix: List[PrefixPart]
    verdict: Verdict
    reason: str


class RuleRef(TypedDict):
    """A rule, by its place."""

    # The file in the directory `rules`.
    file: str
    # Its place in the file, from 0.
    index: int


class Sandbox(TypedDict, total=False):
    """The confinement of a process. `kind` and `enforced` are always there, the rest unless `kind` is `none`."""

    # `none`: the process is not confined. `namespaces`: by mounts of its own, and by what `by` has beside them. `landlock`: by Landlock without namespaces.
    kind: str
    # The profile that was asked for.
    profile: Union[str, None]
    # The directories that it may write in, beside its private `/tmp`.
    roots: Union[List[str], None]
    # Paths inside a root that stay read-only.
    protect: Union[List[str], None]
    # Protected names that did not exist at its start, or that a link leads to: they are not protected. `/**` at the end: the directory was too large to search for repositories.
    unprotected: Union[List[str], None]
    network: Union[Network, None]
    # The measures that are in force: `fs_write`, `hide`, ...
    enforced: List[str]
    # The measures that this machine cannot enforce.
    not_enforced: Union[List[NotEnforced], None]
    by: Union[Mechanisms, None]
    denials: Union[Denials, None]


class SandboxGapEvent(TypedDict):
    """A forbidden act was possible in a sandbox: the check of the machine found it."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["sandbox_gap"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The mechanism that was checked.
    mechanism: str
    # The act.
    act: str
    # The measure that should have refused it.
    measure: str
    # The finding, for a person.
    message: str


class SandboxOptions(TypedDict, total=False):
    """A profile by its name, by its keys, or by a name and the keys that differ."""

    # The profile to begin with. Default: that of a call without `sandbox`, or `workspace-write` if that is `full`.
    profile: Union[str, None]
    mode: Union[ProfileMode, None]
    # Directories to write in, beside the working directory and those of the profile. Absolute.
    roots: List[str]
    network: Union[Network, None]
    # Measures without which nothing starts, beside those of the profile.
    require: List[Measure]
    # Sockets of the host that stay in reach, beside those of the profile.
    unix_sockets: List[str]
    # The caches of cargo, npm, go, uv and pip are roots.
    caches: Union[bool, None]


class SandboxProbeResult(TypedDict):
    """The forbidden acts that were tried, and those that were possible."""

    # RFC 3339, UTC.
    at: str
    mechanisms: List[ProbedMechanism]
    acts: List[ProbedAct]
    # Those of `acts` that were expected to be refused and were not.
    gaps: List[ProbedAct]


class ScreenCursor(TypedDict):
    # From 0.
    row: int
    # From 0.
    col: int
    # False if the program hides it.
    visible: bool


class _ScreenResultRequired(TypedDict):
    id: ProcId
    rows: int
    cols: int
    # The rows from the first on, separated by newlines, without spaces at their ends and without empty rows at the end.
    text: str
    cursor: ScreenCursor
    # The alternate screen is shown, as by `vim` and `less`.
    alternate: bool
    # The end of the output that the screen shows, as a cursor for `poll`.
    next_cursor: int


class ScreenResult(_ScreenResultRequired, total=False):
    # The title that the program gave the terminal. Null: none.
    title: Union[str, None]


class ScriptCallEvent(TypedDict):
    """A call of a tool has ended. Only with `events.calls` in the config."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["script_call"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    call: str
    tool: str
    status: CallStatus
    ms: int
    # Length of the result as JSON.
    bytes: int
    # The kind of the error. Null: it succeeded.
    error: Union[str, None]


class _ScriptCallsResultRequired(TypedDict):
    id: ProcId
    calls: List[JournalledCall]
    # Number of all calls.
    total: int


class ScriptCallsResult(_ScriptCallsResultRequired, total=False):
    """The calls of a script, the oldest first."""

    # More calls follow: `after` for the next page.
    next: Union[str, None]


class _ScriptCancelResultRequired(TypedDict):
    id: ProcId
    # `cancelled`, or `ended` if there was nothing to cancel.
    status: str
    # The calls that were cancelled.
    calls: List[str]


class ScriptCancelResult(_ScriptCancelResultRequired, total=False):
    """The result of `script.cancel`."""

    # Processes of the tree that survived.
    survivors: List[int]


class _ScriptErrorRequired(TypedDict):
    type: str
    message: str


class ScriptError(_ScriptErrorRequired, total=False):
    """An uncaught error of a script, as its language describes it."""

    # The line of the script.
    line: Union[int, None]
    traceback: str


class ScriptFinishedEvent(TypedDict):
    """A script has ended, and its calls too."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["script_finished"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    status: ScriptStatus
    exit_code: Union[int, None]
    signal: Union[str, None]
    calls: FinishedCalls
    # Secrets that were hidden in `output`.
    redacted: List[RedactedRule]
    # The last 2000 characters of its standard output.
    output: str
    duration_ms: int


class ScriptNoteEvent(TypedDict):
    """A script published a note."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["script_note"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    text: str


_ScriptRunResultKeywords = TypedDict("_ScriptRunResultKeywords", {"from": "Union[int, None]"}, total=False)


class _ScriptRunResultRequired(_ScriptRunResultKeywords):
    id: ProcId
    status: ScriptStatus
    # The standard output.
    output: str
    stderr: str
    calls: CallCounts
    artifacts: List[Artifact]
    redacted: List[RedactedRule]
    # Advice for the author of the script.
    hints: List[str]
    duration_ms: int
    log_path: str
    process: Process


class ScriptRunResult(_ScriptRunResultRequired, total=False):
    """The result of a script."""

    exit_code: Union[int, None]
    signal: Union[str, None]
    # Null: `output` is complete.
    output_truncated: Union[Excerpt, None]
    # Null: `stderr` is complete.
    stderr_truncated: Union[Excerpt, None]
    # The value that the script gave to `result`; of a cell, the text of its last expression.
    value: Any
    error: Union[ScriptError, None]
    # Layers of the redaction that could not be applied: `known_values`.
    redacted_without: List[str]
    # True if this call started nothing: an earlier one with the same `request_id` did.
    existing: bool
    # The number of the cell.
    cell: Union[int, None]
    # The end of the cell's output in the log.
    to: Union[int, None]


class ScriptStartedEvent(TypedDict):
    """A script runs."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["script_started"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # Null: any program.
    language: Union[Language, None]
    # The tools that it may call.
    tools: List[str]
    max_calls: int


class _SearchMatchRequired(TypedDict):
    # `path` of the call and the rest, so that it can be read with the same `cwd`.
    path: str


class SearchMatch(_SearchMatchRequired, total=False):
    """One result of a search."""

    # From 1 on. Null with `files` and `count`.
    line: Union[int, None]
    # The line without its end, at most 500 characters. Null with `files` and `count`.
    text: Union[str, None]
    # True if the line is longer than `text`.
    cut: bool
    # Lines before the match, with `context`.
    before: List[str]
    # Lines after the match, with `context`.
    after: List[str]
    # Lines of the file that match, with `count`.
    count: Union[int, None]


_SeqRangeKeywords = TypedDict("_SeqRangeKeywords", {"from": "int"})


class SeqRange(_SeqRangeKeywords):
    """Events `from` to `to`, both included."""

    to: int


class SessionActiveResult(TypedDict):
    count: int
    ids: List[ProcId]


class SessionEndResult(TypedDict):
    session_key: str
    killed: List[Killed]
    count: int


class _SessionGetResultRequired(TypedDict):
    session_key: str
    # False: `session.configure` has set nothing.
    configured: bool
    # The cases in which a person is asked, from the session or else from the config.
    approval: ApprovalPolicy
    roots: List[str]
    env_pass: List[str]
    # Its processes that run.
    running: List[ProcId]
    # Its grants that are in force.
    grants: List[Grant]
    # Its questions that wait for a person, oldest first.
    approvals: List[Approval]


class SessionGetResult(_SessionGetResultRequired, total=False):
    # The working directory of calls without one.
    cwd: Union[str, None]
    # The profile of calls without one, and the widest of the session. Null: those of the config.
    sandbox: Union[SandboxSetting, None]


class SessionInfo(TypedDict):
    session_key: str
    # True while a connection is open that started something in this session, or waits for its processes or its events.
    live: bool
    # Its processes that run.
    running: int


class ShutdownResult(TypedDict):
    stopping: bool
    killed: List[Killed]


class SignalResult(TypedDict):
    id: ProcId
    signal: str


class Signatures(TypedDict):
    """The call of a tool in the languages of scripts."""

    python: str
    javascript: str
    shell: str


_SpanKeywords = TypedDict("_SpanKeywords", {"from": "int"})


class Span(_SpanKeywords):
    """Bytes `from..to` of the output came from one stream."""

    stream: Stream
    to: int
    # Time of its first byte, milliseconds since 1970.
    at_ms: int


class _StageCommitResultRequired(TypedDict):
    id: ProcId
    # `committed`, or `ready` if `paths` left changes.
    state: StageState
    # Changes that were made.
    files: List[StagedFile]
    # Number of them.
    total: int
    # True if `files` does not have all of them.
    truncated: bool
    # Number of changes that are left.
    left: int


class StageCommitResult(_StageCommitResultRequired, total=False):
    """The result of a commit."""

    # The digest of those. Null if none is left.
    digest: Union[str, None]


class _StageDiffResultRequired(TypedDict):
    id: ProcId
    state: StageState
    roots: List[str]
    # In the order of paths.
    files: List[StagedFile]
    # Number of all changes.
    total: int
    # A unified diff of text files.
    diff: str
    # True if `files` or `diff` does not have everything. A commit has.
    truncated: bool
    # Pipes, sockets and devices that the process made. They are not carried over.
    skipped: List[str]


class StageDiffResult(_StageDiffResultRequired, total=False):
    """The changes of a stage."""

    # Names the changes for `stage.commit`. Null while the process runs, and after a commit or discard.
    digest: Union[str, None]


class StageDiscardResult(TypedDict):
    """The result of a discard."""

    id: ProcId
    state: StageState


class _StageReadyEventRequired(TypedDict):
    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["stage_ready"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # Directories on which it saw an overlay.
    roots: List[str]
    # Number of changes. Null if they cannot be read now.
    files: Union[int, None]
    # Bytes of the changed files on the disk. Null if they cannot be read now.
    bytes: Union[int, None]


class StageReadyEvent(_StageReadyEventRequired, total=False):
    """Nothing of a staged process is left: its changes wait for `stage.commit` or `stage.discard`."""

    # The reason why the changes cannot be read, for a person.
    message: str


class _StagedFileRequired(TypedDict):
    # Absolute.
    path: str
    op: StagedOp
    # The kind after the change, or before a removal.
    kind: StagedKind


class StagedFile(_StagedFileRequired, total=False):
    """A changed file, directory or link."""

    # Permissions after the change, in octal.
    mode: str
    # Permissions before the change, in octal.
    before_mode: str
    # Bytes of a file after the change.
    bytes: int
    sha256: str
    before_sha256: str
    # Lines in the diff. Absent if the diff does not show the file.
    added: int
    removed: int
    # True if it is not text.
    binary: bool
    # True if it was changed below the overlay meanwhile: a commit of it is refused.
    conflict: bool


class _StartedByRequired(TypedDict):
    # The process that was connected. It may have ended.
    pid: int
    uid: int


class StartedBy(_StartedByRequired, total=False):
    """The client that started a process."""

    # The label `client` of the start, else the name of the program that was connected. Null: neither is known.
    client: Union[str, None]


class StartedEvent(TypedDict):
    """The program runs."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["started"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The program's pid.
    pid: int
    # The process's name.
    name: Union[str, None]
    # The command line, at most 2000 characters of it.
    command: str


class _ToolDefinitionRequired(TypedDict):
    # The name without that of the provider.
    name: str
    # The JSON schema of its arguments, an object.
    input_schema: Any


class ToolDefinition(_ToolDefinitionRequired, total=False):
    """A tool that a client offers."""

    # For models. The first line is a summary.
    description: str
    # The JSON schema of its result.
    output_schema: Any
    # Default: `write`.
    effect: Union[Effect, None]
    # A call may be repeated without another effect: after a reconnect it is sent again.
    idempotent: bool
    # Calls may be sent while others are running. Default: true.
    parallel: Union[bool, None]
    # The time that a call may take, unless it has a limit of its own.
    timeout_ms: Union[int, None]


class ToolProviderEvent(TypedDict):
    """A provider of tools changed its state. Of no process; `session_key` is that of its registration, if it serves one session."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["tool_provider"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The name before the dot in the names of its tools.
    provider: str
    state: ProviderState
    # Number of its tools.
    tools: int
    # The reason of a state other than `ready`, for a person.
    why: Union[str, None]


class _ToolProviderInfoRequired(TypedDict):
    provider: str
    # `ready` or `gone`.
    state: ProviderState
    # Number of its tools.
    tools: int
    # The client that serves it, or served it last.
    client: Caller
    # Calls that were sent to it and have no answer yet.
    in_flight: int
    # Answers of its connections that no open call had asked for: sent twice, late or with an unknown id.
    ignored_answers: int


class ToolProviderInfo(_ToolProviderInfoRequired, total=False):
    """A client that serves tools, in `daemon.info`."""

    # The session that it serves. Null: every session.
    session_key: Union[str, None]


class ToolsCallResult(TypedDict):
    # The result of the tool, by its `output_schema` if it has one.
    result: Any
    # The call, in the journal and for the provider.
    call: str


class _ToolsListResultRequired(TypedDict):
    # The tools. With another `format` than `json` they are ready for the field `tools` of a request to a model.
    tools: ToolEntries


class ToolsListResult(_ToolsListResultRequired, total=False):
    # With another `format`: the name for `tools.call` of each name in `tools` that differs from it. An API has fewer characters for names.
    names: Dict[str, str]


class ToolsRefreshResult(TypedDict):
    # The full names of all of its tools.
    tools: List[str]
    # Names that are new.
    added: List[str]
    # Names that are gone.
    removed: List[str]


class ToolsRegisterResult(TypedDict):
    provider: str
    # The full names.
    tools: List[str]
    # True if another live connection had the name.
    replaced: bool


class ToolsUnregisterResult(TypedDict):
    # The full names that are not listed any more.
    tools: List[str]
    # Calls in flight that ended.
    ended: int


_TruncatedKeywords = TypedDict("_TruncatedKeywords", {"from": "int"})


class Truncated(_TruncatedKeywords):
    """The middle part of the output that `max_output_tokens` cut."""

    # The first byte after the cut.
    to: int
    omitted_bytes: int
    # At about 4 bytes per token.
    omitted_tokens: int


class TypedText(TypedDict):
    """Text in `keys` that is never the name of a key."""

    text: str


class Unreadable(TypedDict):
    """A file or directory that could not be read."""

    path: str
    why: str


class UntilMatch(TypedDict):
    match: Pattern


class UntilPort(TypedDict):
    port: int


class UntilQuietMs(TypedDict):
    quiet_ms: int


class Usage(TypedDict):
    """The resources that a process tree uses."""

    processes: int
    cpu_ms: int
    rss_bytes: int


class VerdictReason(TypedDict):
    """A reason for a verdict."""

    # The origin: `rule`, `danger`, `unmatched`, `void` (an allow that does not hold), `nested`, `bad_file` or `never`.
    label: str
    text: str


class _WaitResultRequired(TypedDict):
    status: WaitStatus
    processes: List[Waited]
    # The timeout that was used.
    timeout_ms: int
    # True if the requested timeout exceeded `max_wait_ms`.
    clamped: bool


class WaitResult(_WaitResultRequired, total=False):
    note: Union[str, None]


class _WaitedRequired(Process):
    # The last 2000 characters.
    output: str
    next_cursor: int


class Waited(_WaitedRequired, total=False):
    """One run of a program. With `fields` or `view`, only the selected fields are there."""

    # The line that matched.
    matched: Union[str, None]
    # The process that listens on the port.
    listener: Union[Listener, None]


class _WatchRequired(TypedDict):
    patterns: List[Pattern]
    # Lines that matched.
    hits: int
    # Matching lines that no event reported.
    suppressed: int
    disabled: bool
    state: WatchState
    # Consecutive intervals in which matches were suppressed.
    strikes: int
    # Milliseconds until the next match can be published.
    quiet_ms: int


class Watch(_WatchRequired, total=False):
    """Watch patterns and their counts so far."""

    # Bytes that the log dropped before the watch scanned them.
    unseen_bytes: int
    # The reason why no match is published, for a person.
    note: Union[str, None]


class WatchDisabledEvent(TypedDict):
    """The watch ended because too many lines matched in several intervals in a row, or because its patterns take too long. `notify` is on from here."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["watch_disabled"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # Matching lines since the last `watch_match` that no event reported.
    suppressed: int
    # The reason, for a person.
    message: str


class WatchMatchEvent(TypedDict):
    """Lines matched a watch pattern."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["watch_match"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # The process's name.
    name: Union[str, None]
    # The text or regular expression that matched first.
    pattern: str
    # Its place in `watch`, from 0.
    pattern_index: int
    # The lines that matched.
    output: str
    # Number of lines that matched.
    matches: int
    # True if `output` does not hold all of them in full.
    truncated: bool
    # Matching lines since the last `watch_match` that no event reported.
    suppressed: int


class WatchOverflowReleasedEvent(TypedDict):
    """The cooldown is over. Matches are published again."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["watch_overflow_released"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # Matching lines of the cooldown that no event reported.
    suppressed: int
    # The summary, for a person.
    message: str


class WatchOverflowTrippedEvent(TypedDict):
    """Too many matches over all processes. No `watch_match` is published during the cooldown."""

    # The event's number.
    seq: int
    # The time of the event. RFC 3339, UTC.
    at: str
    type: Literal["watch_overflow_tripped"]
    # The process. Null if the event is about no process.
    id: Union[str, None]
    # The session of the process.
    session_key: Union[str, None]
    # The task of the process.
    task_id: Union[str, None]
    # `watch.global_max`.
    limit: int
    # `watch.global_window_ms`.
    window_ms: int
    # `watch.global_cooldown_ms`.
    cooldown_ms: int
    # The reason, for a person.
    message: str


class Why(TypedDict):
    """A reason for a question."""

    # The origin of the reason: `rule`, `danger`, `right` (a right that is missing), `caller` (the caller's own), `policy` or `denials`.
    label: str
    text: str


class _WriteResultRequired(TypedDict):
    id: ProcId
    bytes_written: int
    # True if all bytes were written.
    complete: bool
    # True if a write with this `write_id` was done before.
    duplicate: bool


class WriteResult(_WriteResultRequired, total=False):
    # The number of `write_id`s of this process that are remembered. Only for a write with one.
    remembered_write_ids: Union[int, None]


# Treatment of terminal escape sequences.
Ansi = Literal["strip", "keep"]


ApprovalId = str


# The kind of the action that an approval is about.
ApprovalKind = Literal["patch", "write", "exec", "escalate", "retry", "network", "tool"]


# The cases in which a person is asked.
ApprovalPolicy = Literal["never", "on-request", "on-failure", "untrusted"]


# The state of an approval. Only `pending` changes, once.
ApprovalState = Literal["pending", "approved", "denied", "aborted", "timeout", "withdrawn"]


# The state of the breaker over all watches.
BreakerState = Literal["passing", "silent"]


# The detail of a list of calls.
CallDetail = Literal["preview", "full"]


# The state of a call.
CallStatus = Literal["running", "ok", "failed", "cancelled", "unknown"]


# The encoding of a file, as its first bytes show it.
Charset = Literal["utf-8", "utf-16le", "utf-16be"]


# The first event of a new consumer.
ConsumerStart = Literal["oldest", "now"]


# The deadline of an approval.
Deadline = Literal["timeout"]


# The one who ended an approval: a caller, or the deadline.
DecidedBy = Union[Deadline, Caller]


# The decision of a person.
Decision = Literal["approve", "deny", "abort"]


# The way in which `fs.edit` found the text.
EditStrategy = Literal["exact", "line_trimmed", "whitespace_normalized", "escape_normalized", "unicode_normalized", "block_anchor", "similar_lines"]


# The kind of effect that a call of a tool has.
Effect = Literal["read", "write", "exec", "network"]


# Conversion of output bytes to a JSON string.
Encoding = Literal["text", "base64"]


# The type of a directory entry.
EntryType = Literal["file", "dir", "symlink", "fifo", "socket", "device", "other"]


# The variables of the daemon's environment that a process gets. `env` overrides them. `toolctl` sends its caller's with `replace`.
EnvMode = Literal["clean", "inherit", "replace"]


# An event, by its `type`. The fields of the type follow the common ones. A client must accept types and fields that it does not know.
Event = Union[StartedEvent, ExitedEvent, ClosedEvent, CompletionEvent, WatchMatchEvent, WatchDisabledEvent, WatchOverflowTrippedEvent, WatchOverflowReleasedEvent, HeartbeatEvent, NeedsInputEvent, RestartGaveUpEvent, StageReadyEvent, InsideRefusedEvent, PolicyLoadedEvent, DeniedEvent, DenialEvent, ProtectedCreatedEvent, SandboxGapEvent, PatchAppliedEvent, PatchRevertedEvent, ApprovalRequestedEvent, ApprovalDecidedEvent, GrantAddedEvent, GrantRevokedEvent, ScriptStartedEvent, ScriptCallEvent, ScriptNoteEvent, ScriptFinishedEvent, ToolProviderEvent]


# The type of an event. Its code is frozen: it is on disk.
EventType = Literal["started", "exited", "closed", "completion", "watch_match", "watch_disabled", "watch_overflow_tripped", "watch_overflow_released", "heartbeat", "needs_input", "restart_gave_up", "stage_ready", "inside_refused", "policy_loaded", "denied", "denial", "protected_created", "sandbox_gap", "patch_applied", "patch_reverted", "approval_requested", "approval_decided", "grant_added", "grant_revoked", "script_started", "script_call", "script_note", "script_finished", "tool_provider"]


GrantId = str


# Treatment of a file that has several names.
HardLinks = Literal["refuse", "break"]


# The treatment of a cell for a kernel that is busy.
IfBusy = Literal["queue", "error"]


# Action of an `exec` if a process of that name is running.
IfRunning = Literal["error", "return", "restart"]


# A key (Enter, Tab, Esc, Space, Backspace, Up, Down, Right, Left, Home, End, Insert, Delete, PageUp, PageDown, F1, F2, F3, F4, F5, F6, F7, F8, F9, F10, F11, F12; with C-, M- or S- before it, as in C-c), or text. {text} is always text.
Key = Union[str, TypedText]


# The end of a kill. Ordered from best to worst.
KillStatus = Literal["already_exited", "killed", "starting", "survivors"]


# The sequence of which a subscriber missed a range.
LaggedOf = Literal["events", "output"]


# The language of a script.
Language = Literal["python", "javascript", "bash"]


# The line ends of a text.
LineEnding = Literal["lf", "crlf", "cr", "mixed"]


# The approvals that `approvals.list` returns.
ListedState = Literal["pending", "approved", "denied", "aborted", "timeout", "withdrawn", "all"]


# Something that a sandbox enforces.
Measure = Literal["fs_write", "fs_metadata", "protect", "hide", "tmp", "network", "loopback", "unix_sockets", "abstract_sockets", "signals", "ptrace", "setuid"]


# The network of a confined process.
Network = Literal["off", "loopback", "full"]


# An event, or a push that is not in the journal.
Notification = Union[Event, LaggedPush, OutputPush]


# The treatment of operations that depend on each other.
PatchMode = Literal["atomic", "sequential"]


# The operation on a file.
PatchOp = Literal["add", "update", "delete"]


# The outcome of a patch.
PatchStatus = Literal["applied", "checked", "partial", "failed", "reverted"]


Pattern = Union[str, PatternRegex]


# One position in the beginning of a command: a text, or any of several.
PrefixPart = Union[str, List[str]]


ProcId = str


# The rights of a profile.
ProfileMode = Literal["full", "workspace-write", "read-only"]


# The state of a provider of tools.
ProviderState = Literal["ready", "gone", "replaced", "removed"]


Pty = Union[bool, PtySize]


# The reason for the answer of an `exec` with `ready`.
Ready = Literal["ready", "exited", "timeout"]


# The cause of a process's end.
Reason = Literal["exited", "signaled", "killed", "timeout", "oom", "failed_start", "lost", "dependency", "denied"]


# The ends after which a process is started again. One that was killed by a client is never.
RestartPolicy = Literal["no", "always", "on-failure"]


RestartSetting = Union[RestartPolicy, RestartOptions]


SandboxSetting = Union[str, SandboxOptions]


# The reach of an approval.
Scope = Literal["once", "session", "always", "script"]


# The state of a script or a cell.
ScriptStatus = Literal["running", "ok", "error", "timeout", "interrupted", "killed", "lost"]


# The form of the results of `fs.search`.
SearchMode = Literal["content", "files", "count"]


# The state of a stage.
StageState = Literal["committed", "discarded", "running", "ready"]


# The kind of a changed entry.
StagedKind = Literal["file", "dir", "symlink", "special"]


# The form of a change.
StagedOp = Literal["add", "update", "delete", "metadata"]


# The state of a process.
Status = Literal["pending", "starting", "running", "exited", "lost"]


# The current standard input of a process.
Stdin = Literal["null", "pipe", "pty", "closed"]


# The standard input of a new process.
StdinMode = Literal["null", "pipe"]


# One of the two output streams. A PTY has only `stdout`.
Stream = Literal["stdout", "stderr"]


# Tools in a list.
ToolEntries = Union[List[ListedTool], List[Any]]


# The readiness of a tool.
ToolState = Literal["ready", "starting", "unavailable"]


# The amount of detail in a list of tools.
ToolsDetail = Literal["summary", "names", "full"]


# The form of a list of tools.
ToolsFormat = Literal["json", "responses", "chat", "messages", "mcp"]


# A set of tools with names and texts that certain models know.
Toolset = Literal["toold", "hermes", "codex"]


Until = Union[Literal["exit", "closed", "input"], UntilMatch, UntilPort, UntilQuietMs]


# The verdict on a call. The strictest of all that apply counts.
Verdict = Literal["allow", "deny", "ask"]


# The fields of each process in a result.
View = Literal["full", "short"]


# Number of processes for which `wait` must see its condition.
WaitMode = Literal["any", "all"]


# The end of a `wait`.
WaitStatus = Literal["exited", "matched", "timeout", "input"]


# The state of a process's watch.
WatchState = Literal["watching", "cooldown", "silent", "disabled", "ended"]
