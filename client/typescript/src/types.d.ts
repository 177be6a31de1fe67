// The types of parameters, results and events.
// Generated from the list of methods by `UPDATE_GOLDEN=1 cargo test -p toold-proto clients`. Do not edit.

/** The action that an approval is about. `digest` of the approval is SHA-256 of its JSON. */
export interface Action {
  /** The program and its arguments; for shell text, those of the shell. */
  argv?: string[];
  /** The command as a person would type it. */
  command?: string | null;
  /** The file that is executed. */
  program?: string | null;
  cwd?: string | null;
  /** Names of the variables that the call sets. */
  env_names?: string[];
  profile?: ProfileChange | null;
  /** The process that failed in its sandbox, if it is to run once more without. */
  retry_of?: ProcId | null;
  files?: ActionFile[];
  /** The change of the files as text. */
  diff?: string | null;
  /** The tool that is called. */
  tool?: string | null;
  /** The arguments of the tool as JSON, at most 4000 characters of it. */
  args?: string | null;
  /** SHA-256 of all arguments, in hex. */
  args_sha256?: string | null;
}

/** A file that an action changes. */
export interface ActionFile {
  path: string;
  /** `add`, `update`, `delete`, `move` or `write`. */
  op: string;
  /** SHA-256 of the new content, in hex, if it is known. */
  sha256?: string | null;
}

/** The permission under which a process was started. */
export interface AllowedBy {
  /** The approval that it waited for, with who decided, and when. */
  approval?: Approval | null;
  /** The grant that covered it. */
  grant?: Grant | null;
  /** The rules that allowed its commands. */
  rules: RuleRef[];
}

/** A question that waits for a person, or its answer. */
export interface Approval {
  id: ApprovalId;
  state: ApprovalState;
  kind: ApprovalKind;
  /** The process that waits for it. Of kind `retry`: the one that failed in its sandbox. */
  process?: ProcId | null;
  /** The process that waits for it and would run without the sandbox, of kind `retry`. */
  retry?: ProcId | null;
  /** The script whose call asks. */
  script?: ProcId | null;
  session_key?: string | null;
  task_id?: string | null;
  requested_by: Caller;
  /** RFC 3339, UTC. */
  at: string;
  /** The deadline. It denies. */
  expires_at: string;
  why: Why[];
  action: Action;
  /** SHA-256 of the action, in hex. A decision must name it. */
  digest: string;
  offers: Offer[];
  decided_by?: DecidedBy | null;
  decided_at?: string | null;
  decision?: Decision | null;
  scope?: Scope | null;
  /** The grant that the decision made. */
  grant?: GrantId | null;
  message?: string | null;
  /** The reason why scope `always` added no rule: it was approved once. Null: the rule is there, or none was wanted. */
  rule_error?: string | null;
}

/** A question was answered, withdrawn, or not answered in time. */
export interface ApprovalDecidedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "approval_decided";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  approval: ApprovalId;
  /** `approved`, `denied`, `aborted`, `timeout` or `withdrawn`. */
  state: ApprovalState;
  /** The reach of a decision. Null: none was made. */
  scope: Scope | null;
  /** The one who decided or withdrew it, or `timeout`. */
  decided_by: DecidedBy;
  /** The message of the one who decided. */
  message: string | null;
  /** The command or the files, at most 2000 characters of it. */
  command: string;
  digest: string;
}

/** A person is asked. `id` is the process that waits, or the script whose call does. */
export interface ApprovalRequestedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "approval_requested";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  approval: ApprovalId;
  kind: ApprovalKind;
  /** The command or the files, at most 2000 characters of it. */
  command: string;
  cwd: string | null;
  /** The reasons for the question. */
  why: Why[];
  /** The digest that a decision must name. */
  digest: string;
  /** The deadline. It denies. */
  expires_at: string;
  requested_by: Caller;
}

export interface ApprovalsDecideResult {
  approval: Approval;
  /** The approvals that `abort` withdrew. */
  withdrawn?: ApprovalId[];
  /** The grant that scope `session` or `script` made. */
  grant?: Grant | null;
}

/** Approvals, oldest first. */
export interface ApprovalsListResult {
  approvals: Approval[];
  /** Number of those that were selected. `limit` may leave the newest out. */
  total: number;
}

/** A file that a script named as its product. */
export interface Artifact {
  path: string;
  bytes: number;
  sha256: string;
}

export interface Breaker {
  state: BreakerState;
  /** Matches in the current window. */
  recent: number;
  /** Matches suppressed in this cooldown. */
  dropped: number;
  /** Milliseconds until the cooldown is over. */
  release_ms?: number | null;
}

/** The calls of a script. */
export interface CallCounts {
  /** Calls that count: those in the journal. */
  made: number;
  refused: number;
  failed: number;
  /** Calls that may have happened. */
  unknown: number;
  /** The first and the last 50. */
  log: CallSummary[];
}

/** A call in the result of a script. */
export interface CallSummary {
  call: string;
  tool: string;
  /** The first 80 characters of the arguments. */
  args_preview: string;
  status: CallStatus;
  /** Null: it has not ended. */
  ms?: number | null;
  /** Length of the result as JSON. */
  bytes: number;
}

/** A process that called: the peer of the socket, as the kernel reports it. */
export interface Caller {
  uid: number;
  pid: number;
  /** Its program. Null if it had ended, or may not be looked at. */
  program?: string | null;
}

/** The confinement that a call would get. */
export interface CheckedSandbox {
  profile: string;
  mode: ProfileMode;
  network: Network;
  /** The directories that it may write in. Empty without a sandbox: it is not confined. */
  roots: string[];
  /** Paths inside a root that stay read-only. */
  protect?: string[];
  /** Protected names that are not protected: they do not exist, or a link leads to them. */
  unprotected?: string[];
  /** The measures that are enforced. */
  enforced?: Measure[];
  /** The measures without which it does not start. */
  require?: Measure[];
  /** The mechanisms that enforce them. */
  by?: Mechanisms | null;
}

export interface CloseResult {
  id: ProcId;
  stdin: Stdin;
}

/** Both output streams are at their end. */
export interface ClosedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "closed";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** All bytes written. */
  bytes: number;
  /** All lines written. */
  lines: number;
}

/** The program ended, with the end of its output; for processes started with `notify`. */
export interface CompletionEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "completion";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** The command line, at most 2000 characters of it. */
  command: string;
  /** The program's exit code; 128+n after signal n. Null if unknown. */
  exit_code: number | null;
  /** The signal that ended it. */
  signal: string | null;
  /** The cause of the end. */
  reason: Reason | null;
  /** The caller, the limit or the timeout that ended it, if toold did. */
  killed_by: string | null;
  /** Milliseconds from the start to the exit. */
  duration_ms: number;
  /** Matching lines that no `watch_match` reported. Only with a watch. */
  suppressed?: number;
  /** Bytes that the log dropped before the watch scanned them. Only with a watch. */
  unseen_bytes?: number;
  /** The reason why the program never ran, or why its end was not observed. Only then. */
  failure?: Failure;
  /** The last 2000 characters, without escape sequences. */
  output?: string;
  /** The file with the first bytes of output. Null if there is none. */
  output_path?: string | null;
  /** Bytes written up to the exit. */
  bytes?: number;
  /** Lines written up to the exit. */
  lines?: number;
  /** SHA-256 of all these bytes, in hex. Null if the log does not hold all of them. */
  sha256?: string | null;
  /** Bytes that the log dropped: the middle beyond `log_max_bytes`. */
  dropped_bytes?: number;
  /** Bytes that could not be written to disk. */
  unstored_bytes?: number;
  /** True if `session.end` ended it. Such an event is not pushed. */
  cancelled?: boolean;
  /** The error that kept toold from reading the output. The fields on the output are missing then. */
  output_error?: string;
}

export interface Consumer {
  name: string;
  position: number;
  used_at: string;
}

export interface Counts {
  /** Processes that wait for their turn. */
  pending?: number;
  starting: number;
  running: number;
  exited: number;
  lost: number;
  connections: number;
}

/** The content of a grant: the commands or paths that it covers. */
export interface Covers {
  argv?: string[];
  cwd?: string | null;
  profile?: string | null;
  /** The directory in which files may be changed. */
  root?: string | null;
  /** The identity of that directory when it was granted: device and inode. */
  root_id?: string | null;
  /** The beginning of the command that a rule in `rules/approved.toml` would allow. */
  prefix?: string[];
  /** The script whose calls it covers. */
  script?: ProcId | null;
  /** The tool whose calls it covers. */
  tool?: string | null;
  /** SHA-256 of the arguments of that tool, in hex: only calls with exactly these. */
  args_sha256?: string | null;
  /** Arguments of that tool: only calls that have these, with these values. */
  args_like?: Record<string, unknown> | null;
  /** The most actions that it allows. Null: any number. */
  uses?: number | null;
}

export interface DaemonInfoResult {
  version: string;
  protocol: number;
  pid: number;
  started_at: string;
  uptime_ms: number;
  counts: Counts;
  /** Resources of all process trees and the daemon together. */
  usage: Usage;
  daemon: Usage;
  /** Every config key and the value in use. */
  limits: Record<string, unknown>;
  /** Features of this system: pidfd, cgroup, landlock ABI and so on. */
  features: Record<string, unknown>;
  paths: DaemonPaths;
  /** Files that were found damaged, with where they were quarantined, and records that cannot be read now. */
  damaged: string[];
  events: Journal;
  watch: Breaker;
  /** The rules in force. */
  policy?: PolicyReport;
  /** The last check of the sandbox. Null: it was not checked yet. */
  sandbox?: SandboxProbeResult | null;
  /** Clients that serve tools, by name. */
  tool_providers?: ToolProviderInfo[];
  /** The sessions that have a client or a process that runs, by key. */
  sessions?: SessionInfo[];
}

export interface DaemonPaths {
  socket: string;
  state_dir: string;
  config?: string | null;
}

/** A dangerous command that was found. */
export interface DangerReport {
  /** `forced_removal`. */
  kind: string;
  /** The command as it was found, at most 16 arguments of it. */
  command: string[];
}

/** The sandbox refused a call of a process: the first of each operation and target, at most 20 a process. */
export interface DenialEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "denial";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** The system call. */
  op: string;
  /** The file concerned, resolved. */
  path: string | null;
  /** The address concerned, of a network call. */
  address: string | null;
  /** The path that the program named, if a link led from it to `path`. */
  via: string | null;
  /** The error that the program got. */
  errno: number;
}

/** The calls that the sandbox refused, as the kernel reported them. */
export interface Denials {
  /** The measures whose refusals are seen: `fs_write`, `network`. */
  observed: string[];
  /** Refusals that are not seen: `fs_read`. */
  unknown: string[];
  /** All refusals. */
  count: number;
  /** The first 64 that differ, oldest first. */
  list: RefusedCall[];
}

/** The policy refused an `exec`. Nothing was started, and nothing else is recorded. */
export interface DeniedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "denied";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The command line, at most 2000 characters of it. */
  command: string;
  cwd: string;
  reason: string;
  /** The rule that denies it. Null: the reason is another one. */
  rule: RuleRef | null;
  /** The caller. */
  uid: number;
  pid: number;
}

/** One name in a directory. */
export interface Entry {
  /** `path` of the call and the rest, so that it can be read with the same `cwd`. */
  path: string;
  name: string;
  type: EntryType;
  /** Size of a file. Null for others. */
  bytes?: number | null;
  /** Time of the last change of the content. RFC 3339, UTC. Null: not known. */
  modified_at?: string | null;
  /** The path in a link. Null for others. */
  target?: string | null;
}

/** The wish to run a command under a wider profile. */
export interface Escalate {
  /** The profile. */
  to: string;
  /** The reason, for the person who decides. */
  reason: string;
}

/** The notification that a subscription sends, as it is on the wire. */
export interface EventMessage {
  jsonrpc: "2.0";
  method: "events.event";
  params: EventMessageParams;
}

/** The parameters of `events.event`. */
export interface EventMessageParams {
  /** The number that `events.subscribe` returned. */
  subscription: number;
  result: Notification;
}

export interface EventsAckResult {
  consumer: string;
  position: number;
}

export interface EventsNextResult {
  consumer: string;
  events: Event[];
  /** The last acknowledged event. */
  position: number;
  /** The newest event in the journal. */
  last: number;
  /** Events after the position that the journal does not have any more. */
  missing?: SeqRange | null;
  /** True if the consumer is new. */
  created: boolean;
  /** The earlier consumer of this name, if it expired after `events.consumer_ttl_ms` without use. */
  forgotten?: Forgotten | null;
  /** Damage to the stored position, until the consumer acknowledges an event or its `position`: it may receive events again. */
  damaged?: PositionDamage | null;
}

/** The part of a text that was kept. */
export interface Excerpt {
  /** Bytes of the whole text, without escape sequences. */
  total: number;
  /** Bytes of it that are here. */
  kept: number;
  /** Bytes of it that are not. */
  omitted: number;
  /** Bytes that are here from its beginning. */
  head: number;
  /** Bytes that are here from its end. */
  tail: number;
}

/** One run of a program. With `fields` or `view`, only the selected fields are there. */
export interface ExecResult extends Process {
  output: string;
  next_cursor: number;
  /** The part that `max_output_tokens` cut. Null: nothing was cut. */
  truncated?: Truncated | null;
  gap?: Gap | null;
  /** True if this call started nothing: the process was running already, with `if_running: "return"`, or an earlier call with the same `request_id` started it. */
  existing?: boolean;
  /** The reason for the answer of a call with `ready`. */
  ready?: Ready | null;
}

/** The program ended, or could not start. */
export interface ExitedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "exited";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** The command line, at most 2000 characters of it. */
  command: string;
  /** The program's exit code; 128+n after signal n. Null if unknown. */
  exit_code: number | null;
  /** The signal that ended it. */
  signal: string | null;
  /** The cause of the end. */
  reason: Reason | null;
  /** The caller, the limit or the timeout that ended it, if toold did. */
  killed_by: string | null;
  /** Milliseconds from the start to the exit. */
  duration_ms: number;
  /** Matching lines that no `watch_match` reported. Only with a watch. */
  suppressed?: number;
  /** Bytes that the log dropped before the watch scanned them. Only with a watch. */
  unseen_bytes?: number;
  /** The reason why the program never ran, or why its end was not observed. Only then. */
  failure?: Failure;
  /** `exited`, or `lost` if toold could not observe the exit. */
  status: Status;
  /** Bytes written so far. A descendant may write more. */
  bytes: number;
  /** Lines written so far. */
  lines: number;
}

/** The reason why a start failed, or why an end was not observed. */
export interface Failure {
  /** The step of a start that failed: `exec`, `chdir`, `pty`, ... Of a lost process: `launch` or `shim` if its shim died before or after it reported the start, `reboot`, `record` if its record is damaged, or `unknown`. */
  step: string;
  errno: number;
  /** `ENOENT` and the like. */
  error: string;
  /** The program or directory concerned. */
  path: string;
  /** The reason, for a person. Absent from events of earlier versions. */
  message?: string;
}

/** The number of calls of a script that has ended. */
export interface FinishedCalls {
  made: number;
  refused: number;
  failed: number;
  unknown: number;
}

export interface ForgetResult {
  forgotten: ProcId[];
  skipped: ProcId[];
}

export interface Forgotten {
  /** Its last position. */
  position: number;
  /** The time at which it expired. */
  at: string;
}

export interface FsEditResult {
  /** Absolute, without links. */
  path: string;
  /** Null with `no_change`. */
  strategy?: EditStrategy | null;
  /** Replaced places. */
  count: number;
  /** The change as a unified diff. Null if it is too large. */
  diff?: string | null;
  sha256: string;
  before_sha256: string;
  /** True if the file has `new` already and `old` nowhere. Nothing was written. */
  no_change?: boolean;
  /** Properties of the old file that the new one could not get: `owner`, `xattr …`. */
  not_kept?: string[];
}

export interface FsListResult {
  /** Absolute, without links. */
  path: string;
  /** In the order of the names; a directory before its content. */
  entries: Entry[];
  /** `after` of the next page. Null: there is none. */
  next?: string | null;
  /** Directories that could not be read, with the reason. At most 10. */
  unreadable?: Unreadable[];
}

export interface FsReadResult {
  /** Absolute, without links. */
  path: string;
  /** Lines with their line ends; or base64. Empty for a binary file that is read as text. */
  content: string;
  /** Lines of the file. Null: the file is larger than `fs.max_file_bytes`. */
  total_lines?: number | null;
  /** Size of the file. */
  bytes: number;
  /** Hash of all bytes of the file, for `expect`. Null: the file is larger than `fs.max_file_bytes`. */
  sha256?: string | null;
  /** True if the file goes on after `content`. */
  truncated: boolean;
  /** `offset` of the next page. Null: there is none. */
  next_offset?: number | null;
  /** `from_byte` of the next page. Null: there is none, or the page consists of lines. */
  next_byte?: number | null;
  /** Null: no line ends, or not known. */
  line_ending?: LineEnding | null;
  /** The file begins with a byte order mark. `content` does not. */
  bom: boolean;
  charset: Charset;
  /** The file is not text. */
  binary?: boolean;
  /** Bytes that are not valid in the charset are U+FFFD in `content`. */
  lossy?: boolean;
}

export interface FsSearchResult {
  /** In the order of paths and lines. */
  matches: SearchMatch[];
  /** All lines that match; with `files`, all files. At least that many if `complete` is false. */
  total: number;
  /** Files with a line that matches. */
  files: number;
  /** False if not everything was searched. */
  complete: boolean;
  /** The cause if `complete` is false. */
  reason?: string | null;
  /** `after` of the next page. Null: there is none. */
  next?: string | null;
  /** Files that could not be read. At most 10. */
  unreadable?: Unreadable[];
}

export interface FsWriteResult {
  /** Absolute, without links. */
  path: string;
  bytes: number;
  sha256: string;
  /** Hash of the old content. Null: the file is new, or larger than `fs.max_file_bytes`. */
  before_sha256?: string | null;
  /** The change as a unified diff. Empty if the content was the same already; null if a side is binary or too large. */
  diff?: string | null;
  /** True if there was no such file. */
  created: boolean;
  /** Properties of the old file that the new one could not get: `owner`, `xattr …`. */
  not_kept?: string[];
}

/** A range of output that the log dropped. */
export interface Gap {
  from: number;
  to: number;
}

/** A permission that a person gave. */
export interface Grant {
  id: GrantId;
  session_key?: string | null;
  scope: Scope;
  /** The approval that made it. */
  approval: ApprovalId;
  /** The one who gave it. */
  owner: Caller;
  covers: Covers;
  at: string;
  /** Null: it ends with the session, or with the script. */
  expires_at?: string | null;
  /** Number of actions that it allowed. */
  uses: number;
  last_used_at?: string | null;
  revoked_at?: string | null;
  revoked_by?: Caller | null;
  /** The reason why it ended, if no person ended it. */
  revoke_reason?: string | null;
}

/** A person allowed the same action for the rest of a session, or a tool for the rest of a script. */
export interface GrantAddedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "grant_added";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  grant: GrantId;
  approval: ApprovalId;
  scope: Scope;
  /** The one who gave it. */
  owner: Caller;
  /** The commands or paths that it covers. */
  covers: Covers;
  /** Null: it ends with the session, or with the script. */
  expires_at: string | null;
}

/** A grant ended: it was revoked, or its session or script ended. */
export interface GrantRevokedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "grant_revoked";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  grant: GrantId;
  /** Number of actions that it allowed. */
  uses: number;
  revoked_by: Caller;
  /** The reason why it ended, if no person ended it. */
  reason: string | null;
}

/** The terms of a grant. */
export interface GrantTerms {
  /** The grant ends after this time, in milliseconds. Default: with the session, or with the script. */
  expires_ms?: number | null;
  /** The directory to grant: the one that is offered, or one below it. */
  root?: string | null;
  /** With scope `script`, the tool to grant: the one that is offered. */
  tool?: string | null;
  /** With scope `script`, arguments that a call must have, with these values. Default: any. */
  args_like?: Record<string, unknown> | null;
  /** With scope `script`, the most later calls that it allows. Default: any number. */
  uses?: number | null;
}

export interface GrantsListResult {
  grants: Grant[];
}

export interface GrantsRevokeResult {
  /** The grants that this call revoked. */
  revoked: Grant[];
  /** The processes that still run under them. */
  running: ProcId[];
  /** The trees that `kill` ended. */
  killed: Killed[];
}

/** There is new output; for processes started with a heartbeat. */
export interface HeartbeatEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "heartbeat";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** Bytes written so far. */
  bytes: number;
  /** Lines written so far. */
  lines: number;
  /** Bytes since the last heartbeat. */
  new_bytes: number;
  /** The end of the output so far. */
  cursor: number;
  /** The last 200 characters, without escape sequences. */
  output: string;
}

/** A wait of a program for input. */
export interface InputWait {
  /** The time at which it was first seen to wait. RFC 3339, UTC. */
  since: string;
  /** The last line of the output if it has no newline, at most its last 200 characters. Else empty. */
  prompt: string;
  /** True if its terminal shows what is typed. Null: it has no terminal, or that cannot be known. */
  echo?: boolean | null;
}

/** A process inside a job made a call that it must not make: any call from inside a sandbox, a decision from inside any job. */
export interface InsideRefusedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "inside_refused";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** The process that called. */
  pid: number;
  /** Its program. */
  program: string;
  /** The job is in a sandbox. */
  sandboxed: boolean;
  /** The method that was refused, or `connect`: all of them. */
  what: string;
}

/** One run of a program. With `fields` or `view`, only the selected fields are there. */
export interface InspectResult extends Process {
  tree: Member[];
  usage: Usage;
  /** The TCP ports on which the tree listens, by port, with the process and the address of each. */
  listeners?: Listener[];
  /** The file with the first bytes of output; null before the first byte. */
  log_path?: string | null;
  /** All files of output, in order: the first, and `log.<offset>` from that byte on. They hold the bytes as they came. */
  log_files?: string[];
  state_path: string;
  env_names: string[];
  shim_pid?: number | null;
  timeout_ms?: number | null;
  heartbeat_ms?: number | null;
  /** The approval, the grant or the rules that let it start. Null: it needed none. */
  allowed_by?: AllowedBy | null;
}

export interface Journal {
  oldest: number;
  last: number;
  bytes: number;
  consumers: Consumer[];
}

/** A call in the journal of a script. */
export interface JournalledCall {
  call: string;
  tool: string;
  /** The arguments, or their first 80 characters as text. */
  args: unknown;
  status: CallStatus;
  /** RFC 3339, UTC. */
  at: string;
  ended_at?: string | null;
  ms?: number | null;
  /** Length of the result as JSON. */
  bytes: number;
  /** The kind of the error, if it failed. */
  error?: string | null;
  /** The process that it started. */
  process?: string | null;
  /** The approval that it waited for. */
  approval?: ApprovalId | null;
  /** The cell of a kernel. */
  cell?: number | null;
}

/** The result of `kernel.close`. */
export interface KernelCloseResult {
  id: ProcId;
  status: KillStatus;
  /** Processes of the tree that survived. */
  survivors?: number[];
}

/** The result of `kernel.interrupt`. */
export interface KernelInterruptResult {
  id: ProcId;
  /** The cell that was interrupted. Null: none ran. */
  cell?: number | null;
  /** False: the interpreter did not stop in time and was killed, or it ended by the signal. */
  state_kept: boolean;
}

/** One run of a program. With `fields` or `view`, only the selected fields are there. */
export interface KernelOpenResult extends Process {
  /** True if this call started nothing: an earlier one with the same `request_id` did. */
  existing?: boolean;
}

/** The result of `kernel.reset`. */
export interface KernelResetResult {
  id: ProcId;
  /** The number that the reset has among the cells. */
  cell: number;
  /** The cell that ran and was interrupted. Null: none ran. */
  interrupted?: number | null;
  /** The cells that waited and will not run. */
  dropped: number[];
}

export interface KillResult {
  status: KillStatus;
  results: Killed[];
}

export interface Killed {
  id: ProcId;
  status: KillStatus;
  signals_sent: string[];
  survivors: Member[];
  exit_code?: number | null;
  signal?: string | null;
  reason?: Reason | null;
  /** The reason why `survivors` does not list all that is left, or why the shim could not be asked. */
  note?: string | null;
}

/** The subscriber missed a range of events or output, because retention removed it or the subscriber read too slowly. */
export interface LaggedPush {
  type: "lagged";
  /** The kind of range: event numbers, both missed, or cursors in the output of `id`. */
  of: LaggedOf;
  /** The process. Null for events. */
  id: ProcId | null;
  /** The first that was missed. */
  from: number;
  /** The last event that was missed; for output, the first byte after it. */
  to: number;
}

/** One requested limit. */
export interface LimitReport {
  requested: number;
  /** `cgroup2`, `cgroup1` or `shim`. Null: not enforced here. */
  enforced_by?: string | null;
  /** The reason why it is not enforced, or a remark. */
  note?: string | null;
  /** Processes of the tree that the kernel had killed for memory when the program ended. Absent: none. */
  oom_kills?: number | null;
}

/** Limits of one process tree. `limits` in the result reports those that this machine cannot enforce. */
export interface Limits {
  /** Memory of the whole tree. */
  memory_bytes?: number | null;
  /** Percent of one CPU; 200 is two CPUs. */
  cpu_percent?: number | null;
  /** Processes and threads in the tree. */
  pids?: number | null;
  /** Output kept on disk, below `log_max_bytes`. */
  output_bytes?: number | null;
  /** Kill the process after this time without output and input, in milliseconds. */
  idle_ms?: number | null;
}

export interface ListResult {
  processes: Listed[];
  total: number;
  /** Processes within `limit` that did not fit into the answer, the oldest. */
  omitted?: number | null;
  /** Processes that `ended_within_ms` left out. */
  older?: number | null;
}

/** One run of a program. With `fields` or `view`, only the selected fields are there. */
export interface Listed extends Process {
  /** The last 200 characters. */
  preview: string;
  /** Resources of the tree. Only with `usage`, while a process of the tree runs. */
  usage?: Usage | null;
  /** The TCP ports on which the tree listens. Only with `usage`, while a process of the tree runs. */
  ports?: number[] | null;
}

/** A tool in the detail that was asked for. */
export interface ListedTool {
  name: string;
  provider?: string;
  /** With `summary` the first line. */
  description?: string;
  effect?: Effect;
  idempotent?: boolean;
  parallel?: boolean;
  timeout_ms?: number;
  state?: ToolState;
  /** The reason why it is not ready. */
  why?: string;
  /** Only with `full`, like all that follows. */
  input_schema?: unknown;
  output_schema?: unknown;
  signatures?: Signatures;
}

export interface Listener {
  pid: number;
  port: number;
  /** The local address of the socket. */
  address: string;
}

export interface LogMatch {
  id: ProcId;
  name?: string | null;
  /** The number of the line in its log, from 0, as `offset` takes it. */
  line: number;
  text: string;
}

export interface LogResult {
  /** Null in the result of a search of several logs. */
  id?: ProcId | null;
  /** The lines. In a search of several logs each is `name:line:text`, with the id of a process without a name. */
  output: string;
  /** The lines of the log, or of all logs that were searched. */
  total_lines: number;
  /** Number of the first line in `output`, from 0. With `grep`: of the first match. */
  first_line: number;
  lines_shown: number;
  /** Matching lines in the whole log, or in all logs that were searched. Only with `grep`. */
  matched_lines?: number | null;
  /** The `offset` of the next page. Null: the end was reached. */
  next_offset?: number | null;
  /** True if the output was cut to fit, or not all logs could be searched in the time for one call. */
  truncated: boolean;
  gap?: Gap | null;
  /** The matching lines of a search of several logs, newest process first, and of each its last ones in their order. */
  matches?: LogMatch[] | null;
  /** The number of logs that were searched. */
  searched?: number | null;
  /** The number of logs that were not searched to their ends: `limit` was reached, the time was over, or they cannot be read. */
  unsearched?: number | null;
}

/** The mechanisms of the kernel that confine a process. */
export interface Mechanisms {
  /** The version of Landlock that is used. Null: it is not. */
  landlock?: number | null;
  /** A filter of system calls is used. */
  seccomp: boolean;
  /** The namespaces of its own: `user`, `mnt`, `net`. */
  namespaces: string[];
}

/** One member of a process tree. */
export interface Member {
  pid: number;
  ppid: number;
  command: string;
  /** The kernel's letter: R, S, D, Z, T... */
  state: string;
  threads: number;
  /** CPU time used so far. */
  cpu_ms: number;
  rss_bytes: number;
}

/** A place in a file. */
export interface NearestPlace {
  /** From 1. */
  line: number;
  text: string;
}

/** The program waits for input. */
export interface NeedsInputEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "needs_input";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** The pid that reads: the program or a descendant. */
  pid: number;
  /** False if the terminal does not show what is typed. Null without a terminal. */
  echo: boolean | null;
  /** The last line of the output, if it has no newline. */
  prompt: string;
  /** The end of the output so far. */
  cursor: number;
}

/** A measure that is not in force. */
export interface NotEnforced {
  what: Measure;
  /** The reason, for a person. */
  why: string;
}

/** A scope that a decision may choose, and the grant that it makes. */
export interface Offer {
  scope: Scope;
  /** Null for `once`. */
  grant?: Covers | null;
}

/** New output of a process. Only with `output` in `events.subscribe`. */
export interface OutputPush {
  type: "output";
  /** The process. */
  id: ProcId;
  /** The start of `data` in the output. */
  cursor: number;
  /** The end of `data` in the output. */
  next_cursor: number;
  /** The stream that the text came from. */
  stream: Stream;
  /** The text. A character or an escape sequence is never split between two pushes. */
  data: string;
  /** The process's name. */
  name: string | null;
  /** The time at which the first of it arrived, RFC 3339, UTC. */
  at?: string;
}

/** A patch was applied. Of no process; `session_key` and `task_id` are those of the call. */
export interface PatchAppliedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "patch_applied";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** For `patch.revert`. */
  patch_id: string;
  /** The directory from which the paths are meant. */
  cwd: string;
  /** The first 64 files that were changed, as the patch names them. */
  files: string[];
  /** The number of all files. */
  count: number;
  /** Lines. */
  added: number;
  /** Lines. */
  removed: number;
}

/** The operation that a patch failed at. */
export interface PatchFailure {
  /** The reason, for a person. */
  message: string;
  /** The line of the patch, from 1. */
  line?: number;
  /** The file, as the patch names it. */
  path?: string;
  /** The places of the file that are most like the missing lines, best first. */
  nearest?: NearestPlace[];
}

/** One file of a patch. */
export interface PatchFile {
  /** As the patch names it. */
  path: string;
  op: PatchOp;
  /** The new name. */
  to?: string;
  /** SHA-256 in hexadecimal digits. Null: there was no file. */
  before_sha256?: string | null;
  /** Null: there is no file. */
  after_sha256?: string | null;
  /** Lines. */
  added: number;
  /** Lines. */
  removed: number;
  /** The loosest comparison by which lines were found: 0 equal, 1 without blanks at their ends, 2 also without those at their starts, 3 also with other dashes, quotes and spaces. */
  fuzz: number;
}

/** The result of `patch.apply`, and of a process that ran `apply_patch`. */
export interface PatchResult {
  /** For `patch.revert`. Null: nothing happened. */
  patch_id?: string | null;
  status: PatchStatus;
  files: PatchFile[];
  /** A unified diff of all files. */
  diff: string;
  /** The diff is longer and cut. */
  diff_truncated?: boolean;
  failed?: PatchFailure;
}

/** The result of `patch.revert`. */
export interface PatchRevertResult {
  patch_id: string;
  status: PatchStatus;
  /** The operations that undid the patch. */
  files: PatchFile[];
}

/** A patch was undone. Of no process; `session_key` and `task_id` are those of the call. */
export interface PatchRevertedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "patch_reverted";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The patch that was undone. */
  patch_id: string;
  /** The directory from which the paths are meant. */
  cwd: string;
  /** The first 64 files, as the patch named them. */
  files: string[];
  /** The number of all files. */
  count: number;
}

export interface PatternRegex {
  regex: string;
}

/** One run of a program. With `fields` or `view`, only the selected fields are there. */
export interface PauseResult extends Process {
}

/** The reasons why a pending process waits. */
export interface PendingOn {
  /** The queue in which it waits for a slot. */
  queue?: string | null;
  /** The processes of `after` that have not ended yet. */
  after?: ProcId[] | null;
  /** The restart that is due. */
  restart?: RestartDue | null;
  /** The approval that a person has not given yet. */
  approval?: ApprovalId | null;
}

export interface PolicyCheckResult {
  verdict: Verdict;
  /** True if every command is known. Only then can a rule allow it. */
  plain: boolean;
  /** The commands. Empty if not every one is known. */
  commands: string[][];
  /** The rules that matched, in the order of their files. */
  matches: RuleMatch[];
  danger?: DangerReport | null;
  sandbox: CheckedSandbox;
  /** The measures that this machine cannot enforce. With one of `sandbox.require` among them, `exec` is `unavailable`. */
  not_enforced: NotEnforced[];
  /** Every reason, the one of the strictest verdict first. */
  reasons: VerdictReason[];
}

/** The rule files were read: at the start, or by `policy.reload`. */
export interface PolicyLoadedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "policy_loaded";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** True if every file holds. False at a reload: the old rules stay. */
  ok: boolean;
  /** Number of rules in force. */
  rules: number;
  /** Number of files that they come from. */
  files: number;
  /** The files that were refused, with the reason. */
  errors: string[];
}

export interface PolicyReloadResult {
  /** Number of rules in force. */
  rules: number;
  /** Number of files that they come from. */
  files: number;
}

/** The rules in force, in `daemon.info`. */
export interface PolicyReport {
  rules: number;
  files: number;
  /** Files that could not be loaded, with the reason. Commands that they may have judged are asked about. */
  errors: string[];
}

export interface PolicySuggestResult {
  id: ProcId;
  /** Refused calls that the suggestion covers. */
  denials: number;
  /** Directories that it would have to write in. */
  roots: string[];
  /** The network that it would have needed. Null: it needed no other. */
  network?: Network | null;
  /** Sockets of the host that it would have needed. */
  unix_sockets?: string[];
  /** The profile as text for the config. Null: there is nothing to change. */
  profile?: string | null;
  /** Rules as text for a file in `rules`. Null: its commands are not known, or too wide to be allowed. */
  rules?: string | null;
}

/** One run of a program. With `fields` or `view`, only the selected fields are there. */
export interface PollResult extends Process {
  output: string;
  /** The cursor of the first byte of this page. */
  from: number;
  next_cursor: number;
  /** Bytes between the requested cursor and this page that the log dropped. */
  gap?: Gap | null;
  spans?: Span[] | null;
}

export interface PositionDamage {
  /** The time at which the damage was found. */
  at: string;
}

/** An act that was tried. */
export interface ProbedAct {
  mechanism: string;
  /** `write`, `chmod`, `rename_protected`, `tcp`, `udp`, `abstract_socket`, `unix_socket`, `kill`, `ptrace`, `mount`, `setuid` or `read_hidden`. */
  act: string;
  /** The measure that refuses it. */
  measure: string;
  /** `refused`, or `not_enforced` if this mechanism does not promise it. */
  expected: string;
  /** `refused`, `done`, or `unknown` if the process did not report it. */
  got: string;
}

/** A mechanism that was tried. */
export interface ProbedMechanism {
  /** `auto`: all that this machine has, `namespaces` or `landlock`, as in the config. */
  mechanism: string;
  /** A process could be confined by it. */
  available: boolean;
  /** The reason why it is not available. */
  why?: string | null;
  /** The parts that confined the process. */
  by?: Mechanisms | null;
}

/** One run of a program. With `fields` or `view`, only the selected fields are there. */
export interface Process {
  id: ProcId;
  name?: string | null;
  /** The shell text, or the argv quoted for a shell. */
  command: string;
  argv: string[];
  cwd: string;
  backend: string;
  pid?: number | null;
  status: Status;
  /** The program is stopped, by `pause`, by a signal or by itself. `resume` continues it. */
  stopped?: boolean;
  /** The reasons why it waits, while `status` is `pending`. */
  pending_on?: PendingOn | null;
  /** Both output streams are at their end. */
  closed: boolean;
  /** The program's own code; 128+n after signal n. Null while unknown. */
  exit_code?: number | null;
  signal?: string | null;
  core_dumped: boolean;
  reason?: Reason | null;
  killed_by?: string | null;
  failure?: Failure | null;
  /** RFC 3339, UTC. Of a process that has not started: the time of the call. */
  started_at: string;
  exited_at?: string | null;
  uptime_ms: number;
  pty: boolean;
  pty_size?: PtySize | null;
  stdin: Stdin;
  /** The wait for input in which the program is, as the kernel shows it. Null: it is in none, or that cannot be known. */
  needs_input?: InputWait | null;
  /** The number of processes of its tree that live on after its exit. */
  descendants?: number;
  task_id?: string | null;
  session_key?: string | null;
  /** The client that started it. Null: an earlier version did not record it. */
  started_by?: StartedBy | null;
  labels: Record<string, string>;
  notify: boolean;
  watch?: Watch | null;
  /** All bytes written so far. */
  bytes: number;
  lines: number;
  /** The end of the output so far. */
  cursor: number;
  /** True while it is held back: the log is full of output that the connection which follows it has not read. Null: it was started without `hold`. */
  held_back?: boolean | null;
  /** Bytes that the log dropped: the middle beyond `log_max_bytes`. */
  dropped_bytes: number;
  /** Bytes that could not be written to disk. */
  unstored_bytes: number;
  limits: Record<string, LimitReport>;
  sandbox: Sandbox;
  /** The stage on which it ran. Null: it was started without `stage`. */
  stage?: ProcessStage | null;
  /** The script or kernel that it is. Null: it is neither. */
  script?: ProcessScript | null;
  /** The kernel that it is. Null: it is none. */
  kernel?: ProcessKernel | null;
  /** True while its shim runs but does not answer. */
  detached?: boolean | null;
  /** The reason why its shim cannot be reached from this daemon, and what to do. Null: it can, or the reason is not known. */
  unreachable?: string | null;
  request_id?: string | null;
  /** The previous run, if this is a restart. */
  restart_of?: ProcId | null;
  /** The approval that it waits for, or that let it start or not. */
  approval?: ApprovalId | null;
  /** The process that failed in its sandbox, if this one is its approved retry. */
  retry_of?: ProcId | null;
  /** Its retry without the sandbox, in which it failed. Null: there is none. */
  retry?: ProcessRetry | null;
  /** The result of the patch that it applied: its command was `apply_patch`. */
  patch?: PatchResult | null;
  /** Damage found in its files: what cannot be read, or is not known any more. Null: none was found. */
  damaged?: string[] | null;
  /** The fields whose values are too long for this answer and cut in it. A text that is cut ends in `…`. */
  cut?: string[] | null;
}

/** The kernel that a process is. */
export interface ProcessKernel {
  /** Cells that have started. */
  cells: number;
  /** A cell runs or waits. */
  busy: boolean;
  language?: Language | null;
}

/** The retry of a process that failed because of its sandbox. */
export interface ProcessRetry {
  /** The process that runs the program again. It is `pending` until the approval is given. */
  process: ProcId;
  /** The approval that it waits for, or that let it start or not. Null: a grant or a rule let it start. */
  approval?: ApprovalId | null;
}

/** The script that a process is. */
export interface ProcessScript {
  /** Null: any program, given as `argv`. */
  language?: Language | null;
  tools: string[];
  /** Calls so far. */
  calls: number;
  max_calls: number;
}

/** The stage of a process, in its description. */
export interface ProcessStage {
  state: StageState;
  /** Directories on which the process sees an overlay. What it writes elsewhere is not staged. */
  roots: string[];
}

/** A change of profile. */
export interface ProfileChange {
  from: string;
  to: string;
}

/** A process made a path that would have been protected if it had existed before. */
export interface ProtectedCreatedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "protected_created";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** The path. */
  path: string;
}

/** The size of a terminal, in characters. */
export interface PtySize {
  rows: number;
  cols: number;
}

export interface Queue {
  name: string;
  /** Number of its processes that may run at the same time. */
  slots: number;
  /** True: no process is started from it. */
  paused: boolean;
  /** Processes of the queue that run or are starting. */
  running: number;
  /** Processes that wait for their turn in it. */
  pending: number;
}

export interface QueuesListResult {
  /** By name. A queue is listed if it is configured, was set, or has processes. */
  queues: Queue[];
}

/** A number of secrets of one kind that were hidden. */
export interface RedactedRule {
  rule: string;
  count: number;
}

/** A call that the sandbox refused. */
export interface RefusedCall {
  /** The system call: `openat`, `connect`, ... */
  op: string;
  /** The file concerned, resolved. */
  path?: string | null;
  /** The address concerned, of a network call. */
  address?: string | null;
  /** The path that the program named, if it led to `path` by a link. */
  via?: string | null;
  /** The error that the program got. */
  errno: number;
  count: number;
  /** RFC 3339, UTC. */
  first_at: string;
}

export interface ResizeResult {
  id: ProcId;
  rows: number;
  cols: number;
}

/** The time of a restart. */
export interface RestartDue {
  /** RFC 3339, UTC. */
  at: string;
}

/** The restart policy of a process does not start it again: it ended too often in a row, or cannot be started. */
export interface RestartGaveUpEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "restart_gave_up";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** Restarts in a row by the policy, this run included. */
  restarts: number;
  /** The exit code of the last run. Null if unknown. */
  exit_code: number | null;
  /** The signal that ended the last run. */
  signal: string | null;
  /** The reason, for a person. */
  message: string;
}

/** A policy with its numbers. */
export interface RestartOptions {
  policy: RestartPolicy;
  /** Restarts in a row before toold gives up. Default: 10. */
  max?: number | null;
  /** Delay before the first restart; it doubles with each. Default: 1000. */
  backoff_ms?: number | null;
  /** Maximum delay. Default: 60000. */
  max_backoff_ms?: number | null;
}

/** One run of a program. With `fields` or `view`, only the selected fields are there. */
export interface RestartResult extends Process {
}

/** One run of a program. With `fields` or `view`, only the selected fields are there. */
export interface ResumeResult extends Process {
}

/** A rule that matched. */
export interface RuleMatch {
  /** The file in the directory `rules`. */
  file: string;
  /** Its place in the file, from 0. */
  index: number;
  /** The beginning of the commands that it matches. */
  prefix: PrefixPart[];
  verdict: Verdict;
  reason: string;
}

/** A rule, by its place. */
export interface RuleRef {
  /** The file in the directory `rules`. */
  file: string;
  /** Its place in the file, from 0. */
  index: number;
}

/** The confinement of a process. `kind` and `enforced` are always there, the rest unless `kind` is `none`. */
export interface Sandbox {
  /** `none`: the process is not confined. `namespaces`: by mounts of its own, and by what `by` has beside them. `landlock`: by Landlock without namespaces. */
  kind?: string;
  /** The profile that was asked for. */
  profile?: string | null;
  /** The directories that it may write in, beside its private `/tmp`. */
  roots?: string[] | null;
  /** Paths inside a root that stay read-only. */
  protect?: string[] | null;
  /** Protected names that did not exist at its start, or that a link leads to: they are not protected. `/**` at the end: the directory was too large to search for repositories. */
  unprotected?: string[] | null;
  network?: Network | null;
  /** The measures that are in force: `fs_write`, `hide`, ... */
  enforced?: string[];
  /** The measures that this machine cannot enforce. */
  not_enforced?: NotEnforced[] | null;
  by?: Mechanisms | null;
  denials?: Denials | null;
}

/** A forbidden act was possible in a sandbox: the check of the machine found it. */
export interface SandboxGapEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "sandbox_gap";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The mechanism that was checked. */
  mechanism: string;
  /** The act. */
  act: string;
  /** The measure that should have refused it. */
  measure: string;
  /** The finding, for a person. */
  message: string;
}

/** A profile by its name, by its keys, or by a name and the keys that differ. */
export interface SandboxOptions {
  /** The profile to begin with. Default: that of a call without `sandbox`, or `workspace-write` if that is `full`. */
  profile?: string | null;
  mode?: ProfileMode | null;
  /** Directories to write in, beside the working directory and those of the profile. Absolute. */
  roots?: string[];
  network?: Network | null;
  /** Measures without which nothing starts, beside those of the profile. */
  require?: Measure[];
  /** Sockets of the host that stay in reach, beside those of the profile. */
  unix_sockets?: string[];
  /** The caches of cargo, npm, go, uv and pip are roots. */
  caches?: boolean | null;
}

/** The forbidden acts that were tried, and those that were possible. */
export interface SandboxProbeResult {
  /** RFC 3339, UTC. */
  at: string;
  mechanisms: ProbedMechanism[];
  acts: ProbedAct[];
  /** Those of `acts` that were expected to be refused and were not. */
  gaps: ProbedAct[];
}

export interface ScreenCursor {
  /** From 0. */
  row: number;
  /** From 0. */
  col: number;
  /** False if the program hides it. */
  visible: boolean;
}

export interface ScreenResult {
  id: ProcId;
  rows: number;
  cols: number;
  /** The rows from the first on, separated by newlines, without spaces at their ends and without empty rows at the end. */
  text: string;
  cursor: ScreenCursor;
  /** The title that the program gave the terminal. Null: none. */
  title?: string | null;
  /** The alternate screen is shown, as by `vim` and `less`. */
  alternate: boolean;
  /** The end of the output that the screen shows, as a cursor for `poll`. */
  next_cursor: number;
}

/** A call of a tool has ended. Only with `events.calls` in the config. */
export interface ScriptCallEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "script_call";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  call: string;
  tool: string;
  status: CallStatus;
  ms: number;
  /** Length of the result as JSON. */
  bytes: number;
  /** The kind of the error. Null: it succeeded. */
  error: string | null;
}

/** The calls of a script, the oldest first. */
export interface ScriptCallsResult {
  id: ProcId;
  calls: JournalledCall[];
  /** Number of all calls. */
  total: number;
  /** More calls follow: `after` for the next page. */
  next?: string | null;
}

/** The result of `script.cancel`. */
export interface ScriptCancelResult {
  id: ProcId;
  /** `cancelled`, or `ended` if there was nothing to cancel. */
  status: string;
  /** The calls that were cancelled. */
  calls: string[];
  /** Processes of the tree that survived. */
  survivors?: number[];
}

/** An uncaught error of a script, as its language describes it. */
export interface ScriptError {
  type: string;
  message: string;
  /** The line of the script. */
  line?: number | null;
  traceback?: string;
}

/** A script has ended, and its calls too. */
export interface ScriptFinishedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "script_finished";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  status: ScriptStatus;
  exit_code: number | null;
  signal: string | null;
  calls: FinishedCalls;
  /** Secrets that were hidden in `output`. */
  redacted: RedactedRule[];
  /** The last 2000 characters of its standard output. */
  output: string;
  duration_ms: number;
}

/** A script published a note. */
export interface ScriptNoteEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "script_note";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  text: string;
}

/** The result of a script. */
export interface ScriptRunResult {
  id: ProcId;
  status: ScriptStatus;
  exit_code?: number | null;
  signal?: string | null;
  /** The standard output. */
  output: string;
  stderr: string;
  /** Null: `output` is complete. */
  output_truncated?: Excerpt | null;
  /** Null: `stderr` is complete. */
  stderr_truncated?: Excerpt | null;
  /** The value that the script gave to `result`; of a cell, the text of its last expression. */
  value?: unknown;
  error?: ScriptError | null;
  calls: CallCounts;
  artifacts: Artifact[];
  redacted: RedactedRule[];
  /** Layers of the redaction that could not be applied: `known_values`. */
  redacted_without?: string[];
  /** Advice for the author of the script. */
  hints: string[];
  duration_ms: number;
  log_path: string;
  process: Process;
  /** True if this call started nothing: an earlier one with the same `request_id` did. */
  existing?: boolean;
  /** The number of the cell. */
  cell?: number | null;
  /** The start of the cell's output in the log. */
  from?: number | null;
  /** The end of the cell's output in the log. */
  to?: number | null;
}

/** A script runs. */
export interface ScriptStartedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "script_started";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** Null: any program. */
  language: Language | null;
  /** The tools that it may call. */
  tools: string[];
  max_calls: number;
}

/** One result of a search. */
export interface SearchMatch {
  /** `path` of the call and the rest, so that it can be read with the same `cwd`. */
  path: string;
  /** From 1 on. Null with `files` and `count`. */
  line?: number | null;
  /** The line without its end, at most 500 characters. Null with `files` and `count`. */
  text?: string | null;
  /** True if the line is longer than `text`. */
  cut?: boolean;
  /** Lines before the match, with `context`. */
  before?: string[];
  /** Lines after the match, with `context`. */
  after?: string[];
  /** Lines of the file that match, with `count`. */
  count?: number | null;
}

/** Events `from` to `to`, both included. */
export interface SeqRange {
  from: number;
  to: number;
}

export interface SessionActiveResult {
  count: number;
  ids: ProcId[];
}

export interface SessionEndResult {
  session_key: string;
  killed: Killed[];
  count: number;
}

export interface SessionGetResult {
  session_key: string;
  /** False: `session.configure` has set nothing. */
  configured: boolean;
  /** The working directory of calls without one. */
  cwd?: string | null;
  /** The profile of calls without one, and the widest of the session. Null: those of the config. */
  sandbox?: SandboxSetting | null;
  /** The cases in which a person is asked, from the session or else from the config. */
  approval: ApprovalPolicy;
  roots: string[];
  env_pass: string[];
  /** Its processes that run. */
  running: ProcId[];
  /** Its grants that are in force. */
  grants: Grant[];
  /** Its questions that wait for a person, oldest first. */
  approvals: Approval[];
}

export interface SessionInfo {
  session_key: string;
  /** True while a connection is open that started something in this session, or waits for its processes or its events. */
  live: boolean;
  /** Its processes that run. */
  running: number;
}

export interface ShutdownResult {
  stopping: boolean;
  killed: Killed[];
}

export interface SignalResult {
  id: ProcId;
  signal: string;
}

/** The call of a tool in the languages of scripts. */
export interface Signatures {
  python: string;
  javascript: string;
  shell: string;
}

/** Bytes `from..to` of the output came from one stream. */
export interface Span {
  stream: Stream;
  from: number;
  to: number;
  /** Time of its first byte, milliseconds since 1970. */
  at_ms: number;
}

/** The result of a commit. */
export interface StageCommitResult {
  id: ProcId;
  /** `committed`, or `ready` if `paths` left changes. */
  state: StageState;
  /** Changes that were made. */
  files: StagedFile[];
  /** Number of them. */
  total: number;
  /** True if `files` does not have all of them. */
  truncated: boolean;
  /** Number of changes that are left. */
  left: number;
  /** The digest of those. Null if none is left. */
  digest?: string | null;
}

/** The changes of a stage. */
export interface StageDiffResult {
  id: ProcId;
  state: StageState;
  roots: string[];
  /** Names the changes for `stage.commit`. Null while the process runs, and after a commit or discard. */
  digest?: string | null;
  /** In the order of paths. */
  files: StagedFile[];
  /** Number of all changes. */
  total: number;
  /** A unified diff of text files. */
  diff: string;
  /** True if `files` or `diff` does not have everything. A commit has. */
  truncated: boolean;
  /** Pipes, sockets and devices that the process made. They are not carried over. */
  skipped: string[];
}

/** The result of a discard. */
export interface StageDiscardResult {
  id: ProcId;
  state: StageState;
}

/** Nothing of a staged process is left: its changes wait for `stage.commit` or `stage.discard`. */
export interface StageReadyEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "stage_ready";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** Directories on which it saw an overlay. */
  roots: string[];
  /** Number of changes. Null if they cannot be read now. */
  files: number | null;
  /** Bytes of the changed files on the disk. Null if they cannot be read now. */
  bytes: number | null;
  /** The reason why the changes cannot be read, for a person. */
  message?: string;
}

/** A changed file, directory or link. */
export interface StagedFile {
  /** Absolute. */
  path: string;
  op: StagedOp;
  /** The kind after the change, or before a removal. */
  kind: StagedKind;
  /** Permissions after the change, in octal. */
  mode?: string;
  /** Permissions before the change, in octal. */
  before_mode?: string;
  /** Bytes of a file after the change. */
  bytes?: number;
  sha256?: string;
  before_sha256?: string;
  /** Lines in the diff. Absent if the diff does not show the file. */
  added?: number;
  removed?: number;
  /** True if it is not text. */
  binary?: boolean;
  /** True if it was changed below the overlay meanwhile: a commit of it is refused. */
  conflict?: boolean;
}

/** The client that started a process. */
export interface StartedBy {
  /** The label `client` of the start, else the name of the program that was connected. Null: neither is known. */
  client?: string | null;
  /** The process that was connected. It may have ended. */
  pid: number;
  uid: number;
}

/** The program runs. */
export interface StartedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "started";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The program's pid. */
  pid: number;
  /** The process's name. */
  name: string | null;
  /** The command line, at most 2000 characters of it. */
  command: string;
}

/** A tool that a client offers. */
export interface ToolDefinition {
  /** The name without that of the provider. */
  name: string;
  /** The JSON schema of its arguments, an object. */
  input_schema: unknown;
  /** For models. The first line is a summary. */
  description?: string;
  /** The JSON schema of its result. */
  output_schema?: unknown;
  /** Default: `write`. */
  effect?: Effect | null;
  /** A call may be repeated without another effect: after a reconnect it is sent again. */
  idempotent?: boolean;
  /** Calls may be sent while others are running. Default: true. */
  parallel?: boolean | null;
  /** The time that a call may take, unless it has a limit of its own. */
  timeout_ms?: number | null;
}

/** A provider of tools changed its state. Of no process; `session_key` is that of its registration, if it serves one session. */
export interface ToolProviderEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "tool_provider";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The name before the dot in the names of its tools. */
  provider: string;
  state: ProviderState;
  /** Number of its tools. */
  tools: number;
  /** The reason of a state other than `ready`, for a person. */
  why: string | null;
}

/** A client that serves tools, in `daemon.info`. */
export interface ToolProviderInfo {
  provider: string;
  /** `ready` or `gone`. */
  state: ProviderState;
  /** Number of its tools. */
  tools: number;
  /** The session that it serves. Null: every session. */
  session_key?: string | null;
  /** The client that serves it, or served it last. */
  client: Caller;
  /** Calls that were sent to it and have no answer yet. */
  in_flight: number;
  /** Answers of its connections that no open call had asked for: sent twice, late or with an unknown id. */
  ignored_answers: number;
}

export interface ToolsCallResult {
  /** The result of the tool, by its `output_schema` if it has one. */
  result: unknown;
  /** The call, in the journal and for the provider. */
  call: string;
}

export interface ToolsListResult {
  /** The tools. With another `format` than `json` they are ready for the field `tools` of a request to a model. */
  tools: ToolEntries;
  /** With another `format`: the name for `tools.call` of each name in `tools` that differs from it. An API has fewer characters for names. */
  names?: Record<string, string>;
}

export interface ToolsRefreshResult {
  /** The full names of all of its tools. */
  tools: string[];
  /** Names that are new. */
  added: string[];
  /** Names that are gone. */
  removed: string[];
}

export interface ToolsRegisterResult {
  provider: string;
  /** The full names. */
  tools: string[];
  /** True if another live connection had the name. */
  replaced: boolean;
}

export interface ToolsUnregisterResult {
  /** The full names that are not listed any more. */
  tools: string[];
  /** Calls in flight that ended. */
  ended: number;
}

/** The middle part of the output that `max_output_tokens` cut. */
export interface Truncated {
  /** The first byte that was cut, as a cursor. */
  from: number;
  /** The first byte after the cut. */
  to: number;
  omitted_bytes: number;
  /** At about 4 bytes per token. */
  omitted_tokens: number;
}

/** Text in `keys` that is never the name of a key. */
export interface TypedText {
  text: string;
}

/** A file or directory that could not be read. */
export interface Unreadable {
  path: string;
  why: string;
}

export interface UntilMatch {
  match: Pattern;
}

export interface UntilPort {
  port: number;
}

export interface UntilQuietMs {
  quiet_ms: number;
}

/** The resources that a process tree uses. */
export interface Usage {
  processes: number;
  cpu_ms: number;
  rss_bytes: number;
}

/** A reason for a verdict. */
export interface VerdictReason {
  /** The origin: `rule`, `danger`, `unmatched`, `void` (an allow that does not hold), `nested`, `bad_file` or `never`. */
  label: string;
  text: string;
}

export interface WaitResult {
  status: WaitStatus;
  processes: Waited[];
  /** The timeout that was used. */
  timeout_ms: number;
  /** True if the requested timeout exceeded `max_wait_ms`. */
  clamped: boolean;
  note?: string | null;
}

/** One run of a program. With `fields` or `view`, only the selected fields are there. */
export interface Waited extends Process {
  /** The last 2000 characters. */
  output: string;
  next_cursor: number;
  /** The line that matched. */
  matched?: string | null;
  /** The process that listens on the port. */
  listener?: Listener | null;
}

/** Watch patterns and their counts so far. */
export interface Watch {
  patterns: Pattern[];
  /** Lines that matched. */
  hits: number;
  /** Matching lines that no event reported. */
  suppressed: number;
  disabled: boolean;
  state: WatchState;
  /** Consecutive intervals in which matches were suppressed. */
  strikes: number;
  /** Milliseconds until the next match can be published. */
  quiet_ms: number;
  /** Bytes that the log dropped before the watch scanned them. */
  unseen_bytes?: number;
  /** The reason why no match is published, for a person. */
  note?: string | null;
}

/** The watch ended because too many lines matched in several intervals in a row, or because its patterns take too long. `notify` is on from here. */
export interface WatchDisabledEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "watch_disabled";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** Matching lines since the last `watch_match` that no event reported. */
  suppressed: number;
  /** The reason, for a person. */
  message: string;
}

/** Lines matched a watch pattern. */
export interface WatchMatchEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "watch_match";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** The process's name. */
  name: string | null;
  /** The text or regular expression that matched first. */
  pattern: string;
  /** Its place in `watch`, from 0. */
  pattern_index: number;
  /** The lines that matched. */
  output: string;
  /** Number of lines that matched. */
  matches: number;
  /** True if `output` does not hold all of them in full. */
  truncated: boolean;
  /** Matching lines since the last `watch_match` that no event reported. */
  suppressed: number;
}

/** The cooldown is over. Matches are published again. */
export interface WatchOverflowReleasedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "watch_overflow_released";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** Matching lines of the cooldown that no event reported. */
  suppressed: number;
  /** The summary, for a person. */
  message: string;
}

/** Too many matches over all processes. No `watch_match` is published during the cooldown. */
export interface WatchOverflowTrippedEvent {
  /** The event's number. */
  seq: number;
  /** The time of the event. RFC 3339, UTC. */
  at: string;
  type: "watch_overflow_tripped";
  /** The process. Null if the event is about no process. */
  id: string | null;
  /** The session of the process. */
  session_key: string | null;
  /** The task of the process. */
  task_id: string | null;
  /** `watch.global_max`. */
  limit: number;
  /** `watch.global_window_ms`. */
  window_ms: number;
  /** `watch.global_cooldown_ms`. */
  cooldown_ms: number;
  /** The reason, for a person. */
  message: string;
}

/** A reason for a question. */
export interface Why {
  /** The origin of the reason: `rule`, `danger`, `right` (a right that is missing), `caller` (the caller's own), `policy` or `denials`. */
  label: string;
  text: string;
}

export interface WriteResult {
  id: ProcId;
  bytes_written: number;
  /** True if all bytes were written. */
  complete: boolean;
  /** True if a write with this `write_id` was done before. */
  duplicate: boolean;
  /** The number of `write_id`s of this process that are remembered. Only for a write with one. */
  remembered_write_ids?: number | null;
}

/** Treatment of terminal escape sequences. */
export type Ansi = "strip" | "keep";

export type ApprovalId = string;

/** The kind of the action that an approval is about. */
export type ApprovalKind = "patch" | "write" | "exec" | "escalate" | "retry" | "network" | "tool";

/** The cases in which a person is asked. */
export type ApprovalPolicy = "never" | "on-request" | "on-failure" | "untrusted";

/** The state of an approval. Only `pending` changes, once. */
export type ApprovalState = "pending" | "approved" | "denied" | "aborted" | "timeout" | "withdrawn";

/** The state of the breaker over all watches. */
export type BreakerState = "passing" | "silent";

/** The detail of a list of calls. */
export type CallDetail = "preview" | "full";

/** The state of a call. */
export type CallStatus = "running" | "ok" | "failed" | "cancelled" | "unknown";

/** The encoding of a file, as its first bytes show it. */
export type Charset = "utf-8" | "utf-16le" | "utf-16be";

/** The first event of a new consumer. */
export type ConsumerStart = "oldest" | "now";

/** The deadline of an approval. */
export type Deadline = "timeout";

/** The one who ended an approval: a caller, or the deadline. */
export type DecidedBy = Deadline | Caller;

/** The decision of a person. */
export type Decision = "approve" | "deny" | "abort";

/** The way in which `fs.edit` found the text. */
export type EditStrategy = "exact" | "line_trimmed" | "whitespace_normalized" | "escape_normalized" | "unicode_normalized" | "block_anchor" | "similar_lines";

/** The kind of effect that a call of a tool has. */
export type Effect = "read" | "write" | "exec" | "network";

/** Conversion of output bytes to a JSON string. */
export type Encoding = "text" | "base64";

/** The type of a directory entry. */
export type EntryType = "file" | "dir" | "symlink" | "fifo" | "socket" | "device" | "other";

/** The variables of the daemon's environment that a process gets. `env` overrides them. `toolctl` sends its caller's with `replace`. */
export type EnvMode = "clean" | "inherit" | "replace";

/** An event, by its `type`. The fields of the type follow the common ones. A client must accept types and fields that it does not know. */
export type Event = StartedEvent | ExitedEvent | ClosedEvent | CompletionEvent | WatchMatchEvent | WatchDisabledEvent | WatchOverflowTrippedEvent | WatchOverflowReleasedEvent | HeartbeatEvent | NeedsInputEvent | RestartGaveUpEvent | StageReadyEvent | InsideRefusedEvent | PolicyLoadedEvent | DeniedEvent | DenialEvent | ProtectedCreatedEvent | SandboxGapEvent | PatchAppliedEvent | PatchRevertedEvent | ApprovalRequestedEvent | ApprovalDecidedEvent | GrantAddedEvent | GrantRevokedEvent | ScriptStartedEvent | ScriptCallEvent | ScriptNoteEvent | ScriptFinishedEvent | ToolProviderEvent;

/** The type of an event. Its code is frozen: it is on disk. */
export type EventType = "started" | "exited" | "closed" | "completion" | "watch_match" | "watch_disabled" | "watch_overflow_tripped" | "watch_overflow_released" | "heartbeat" | "needs_input" | "restart_gave_up" | "stage_ready" | "inside_refused" | "policy_loaded" | "denied" | "denial" | "protected_created" | "sandbox_gap" | "patch_applied" | "patch_reverted" | "approval_requested" | "approval_decided" | "grant_added" | "grant_revoked" | "script_started" | "script_call" | "script_note" | "script_finished" | "tool_provider";

export type GrantId = string;

/** Treatment of a file that has several names. */
export type HardLinks = "refuse" | "break";

/** The treatment of a cell for a kernel that is busy. */
export type IfBusy = "queue" | "error";

/** Action of an `exec` if a process of that name is running. */
export type IfRunning = "error" | "return" | "restart";

/** A key (Enter, Tab, Esc, Space, Backspace, Up, Down, Right, Left, Home, End, Insert, Delete, PageUp, PageDown, F1, F2, F3, F4, F5, F6, F7, F8, F9, F10, F11, F12; with C-, M- or S- before it, as in C-c), or text. {text} is always text. */
export type Key = string | TypedText;

/** The end of a kill. Ordered from best to worst. */
export type KillStatus = "already_exited" | "killed" | "starting" | "survivors";

/** The sequence of which a subscriber missed a range. */
export type LaggedOf = "events" | "output";

/** The language of a script. */
export type Language = "python" | "javascript" | "bash";

/** The line ends of a text. */
export type LineEnding = "lf" | "crlf" | "cr" | "mixed";

/** The approvals that `approvals.list` returns. */
export type ListedState = "pending" | "approved" | "denied" | "aborted" | "timeout" | "withdrawn" | "all";

/** Something that a sandbox enforces. */
export type Measure = "fs_write" | "fs_metadata" | "protect" | "hide" | "tmp" | "network" | "loopback" | "unix_sockets" | "abstract_sockets" | "signals" | "ptrace" | "setuid";

/** The network of a confined process. */
export type Network = "off" | "loopback" | "full";

/** An event, or a push that is not in the journal. */
export type Notification = Event | LaggedPush | OutputPush;

/** The treatment of operations that depend on each other. */
export type PatchMode = "atomic" | "sequential";

/** The operation on a file. */
export type PatchOp = "add" | "update" | "delete";

/** The outcome of a patch. */
export type PatchStatus = "applied" | "checked" | "partial" | "failed" | "reverted";

export type Pattern = string | PatternRegex;

/** One position in the beginning of a command: a text, or any of several. */
export type PrefixPart = string | string[];

export type ProcId = string;

/** The rights of a profile. */
export type ProfileMode = "full" | "workspace-write" | "read-only";

/** The state of a provider of tools. */
export type ProviderState = "ready" | "gone" | "replaced" | "removed";

export type Pty = boolean | PtySize;

/** The reason for the answer of an `exec` with `ready`. */
export type Ready = "ready" | "exited" | "timeout";

/** The cause of a process's end. */
export type Reason = "exited" | "signaled" | "killed" | "timeout" | "oom" | "failed_start" | "lost" | "dependency" | "denied";

/** The ends after which a process is started again. One that was killed by a client is never. */
export type RestartPolicy = "no" | "always" | "on-failure";

export type RestartSetting = RestartPolicy | RestartOptions;

export type SandboxSetting = string | SandboxOptions;

/** The reach of an approval. */
export type Scope = "once" | "session" | "always" | "script";

/** The state of a script or a cell. */
export type ScriptStatus = "running" | "ok" | "error" | "timeout" | "interrupted" | "killed" | "lost";

/** The form of the results of `fs.search`. */
export type SearchMode = "content" | "files" | "count";

/** The state of a stage. */
export type StageState = "committed" | "discarded" | "running" | "ready";

/** The kind of a changed entry. */
export type StagedKind = "file" | "dir" | "symlink" | "special";

/** The form of a change. */
export type StagedOp = "add" | "update" | "delete" | "metadata";

/** The state of a process. */
export type Status = "pending" | "starting" | "running" | "exited" | "lost";

/** The current standard input of a process. */
export type Stdin = "null" | "pipe" | "pty" | "closed";

/** The standard input of a new process. */
export type StdinMode = "null" | "pipe";

/** One of the two output streams. A PTY has only `stdout`. */
export type Stream = "stdout" | "stderr";

/** Tools in a list. */
export type ToolEntries = ListedTool[] | unknown[];

/** The readiness of a tool. */
export type ToolState = "ready" | "starting" | "unavailable";

/** The amount of detail in a list of tools. */
export type ToolsDetail = "summary" | "names" | "full";

/** The form of a list of tools. */
export type ToolsFormat = "json" | "responses" | "chat" | "messages" | "mcp";

/** A set of tools with names and texts that certain models know. */
export type Toolset = "toold" | "hermes" | "codex";

export type Until = "exit" | "closed" | "input" | UntilMatch | UntilPort | UntilQuietMs;

/** The verdict on a call. The strictest of all that apply counts. */
export type Verdict = "allow" | "deny" | "ask";

/** The fields of each process in a result. */
export type View = "full" | "short";

/** Number of processes for which `wait` must see its condition. */
export type WaitMode = "any" | "all";

/** The end of a `wait`. */
export type WaitStatus = "exited" | "matched" | "timeout" | "input";

/** The state of a process's watch. */
export type WatchState = "watching" | "cooldown" | "silent" | "disabled" | "ended";

/** The parameters of `exec`. */
export interface ExecParams {
  /** Shell text. Either this or `argv`. */
  command?: string | null;
  /** The program and its arguments. */
  argv?: string[] | null;
  /** Absolute. Default: the home directory. */
  cwd?: string | null;
  /** Variables that override all others. Values are in memory only: on no disk, in no log and in no answer. */
  env?: Record<string, string>;
  /** Variables like `env`, with their values in base64: for values that are not UTF-8. A name is in one of the two. */
  env_base64?: Record<string, string>;
  env_mode?: EnvMode;
  /** The shell that runs `command`. Default: the user's. */
  shell?: string | null;
  /** Run a login shell. Default: true. */
  login?: boolean | null;
  /** Run in a terminal: true, or its size. */
  pty?: Pty;
  stdin?: StdinMode;
  /** Let stdout and stderr share one pipe, so that their order is exact. All of it is then `stdout`. */
  merge?: boolean;
  /** Keep output beyond the cap for this connection until it has read it: the program is held back instead, like a writer to a full pipe. Ends with the connection. */
  hold?: boolean;
  /** Kill the process after this time. Default: never. */
  timeout_ms?: number | null;
  /** Wait up to this time for the exit before answering. */
  yield_ms?: number;
  /** Maximum output in the result, at about 4 bytes per token. Default: 10000. */
  max_output_tokens?: number | null;
  /** Only the last lines of the output. */
  tail_lines?: number | null;
  /** Show a line that was redrawn with a carriage return as it stood last. Default: true for text without escape sequences. */
  collapse?: boolean | null;
  /** A name, unique among running processes. It must not begin with `proc_` or `@`. */
  name?: string | null;
  task_id?: string | null;
  session_key?: string | null;
  labels?: Record<string, string>;
  /** Publish a `completion` event. */
  notify?: boolean;
  /** Publish `watch_match` events for lines that match one of these. */
  watch?: Pattern[];
  limits?: Limits;
  /** Refuse the start with `unavailable` if one of `limits` cannot be enforced here. Default: start, and report it in `limits`. */
  require_limits?: boolean;
  /** The backend that runs it. Default: `local`. */
  backend?: string | null;
  /** Idempotency key: a call with the same key returns the same process and starts nothing. With another command, directory, names in `env`, `limits`, `backend` or `name` it fails with `conflict`. */
  request_id?: string | null;
  /** Action if a process of this `name` is running. Default: `error`, which fails with `already_exists`. */
  if_running?: IfRunning;
  /** Start it again after it ended: `no`, `on-failure`, `always`, or a policy with its numbers. Default: `no`. */
  restart?: RestartSetting;
  /** Answer when this condition holds (`{match}`, `{port}` or `{quiet_ms}`), when the process exits, or after `ready_timeout_ms`. */
  ready?: Until | null;
  /** Maximum wait for `ready`. Default: 60000. */
  ready_timeout_ms?: number | null;
  /** Publish a `heartbeat` event if there is new output, at most once in this time. At least 60000. */
  heartbeat_ms?: number | null;
  /** Start when this queue has a free slot, in the order of the calls. One that is not configured has 1 slot. */
  queue?: string | null;
  /** Start when these processes have ended: ids or names. */
  after?: Array<string | { readonly id: string }>;
  /** The processes in `after` must exit with code 0; if one does not, this one ends with reason `dependency`. Default: true. */
  after_ok?: boolean | null;
  /** The confinement: the name of a profile, or an object with its keys. Default: `policy.default` of the config. */
  sandbox?: SandboxSetting | null;
  /** An exit that this call returns is acknowledged for this consumer. */
  consumer?: string | null;
  /** Ask a person to run it under a wider profile. */
  escalate?: Escalate | null;
  /** The time that a person has to decide, if someone must be asked. 0: deny instead of asking. Default: 600000. */
  approval_timeout_ms?: number | null;
  /** Run on an overlay: nothing below it changes until `stage.commit`. Refused with `unavailable` if the file system cannot carry one. */
  stage?: boolean;
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `poll`. */
export interface PollParams {
  id: string | { readonly id: string };
  /** Position to read from. Default: the last 1000 characters. */
  cursor?: number | null;
  /** Default: 65536. */
  max_bytes?: number | null;
  /** Wait up to this time for new output, the exit or the end of the output. */
  wait_ms?: number;
  stream?: Stream | null;
  ansi?: Ansi;
  encoding?: Encoding;
  /** Only the last lines of the output. */
  tail_lines?: number | null;
  /** Show a line that was redrawn with a carriage return as it stood last. Default: true for text without escape sequences. */
  collapse?: boolean | null;
  /** Also return the ranges of bytes that came from each stream. */
  spans?: boolean;
  /** Take the hold of a process that was started with `hold`, for this connection: after a lost connection. */
  hold?: boolean;
  /** Hide secrets in the output: values that the process was given, known shapes, dumps of environments. */
  redact?: boolean;
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `log`. */
export interface LogParams {
  /** The process. Without it: a search of several logs, which needs `grep`. */
  id?: string | { readonly id: string } | null;
  /** The processes whose logs are searched. Default without `id`: all, also those that have ended. */
  ids?: Array<string | { readonly id: string }> | null;
  /** The first line to show, from 0. Default: the last lines. Only with `id`. */
  offset?: number | null;
  /** The most lines. Default: 200. */
  limit?: number | null;
  stream?: Stream | null;
  /** Only lines that match this regular expression. */
  grep?: string | null;
  ansi?: Ansi;
  /** Only the last lines of the output. Only with `id`. */
  tail_lines?: number | null;
  /** Show a line that was redrawn with a carriage return as it stood last. Default: true for text without escape sequences. */
  collapse?: boolean | null;
  /** Hide secrets in the output: values that the process was given, known shapes, dumps of environments. */
  redact?: boolean;
}

/** The parameters of `wait`. */
export interface WaitParams {
  id?: string | { readonly id: string } | null;
  ids?: Array<string | { readonly id: string }> | null;
  /** Instead of ids: all processes of this session that run now. If there is none, the answer comes at once. */
  session_key?: string | null;
  mode?: WaitMode;
  until?: Until;
  /** Also answer, with `status: "input"`, when one of the processes waits for input. */
  or_input?: boolean;
  /** Default: 180000. */
  timeout_ms?: number | null;
  /** Only the last lines of the output. */
  tail_lines?: number | null;
  /** Show a line that was redrawn with a carriage return as it stood last. Default: true for text without escape sequences. */
  collapse?: boolean | null;
  /** Exits that this call returns are acknowledged for this consumer. */
  consumer?: string | null;
  /** Hide secrets in the output: values that the process was given, known shapes, dumps of environments. */
  redact?: boolean;
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `kill`. */
export interface KillParams {
  id?: string | { readonly id: string } | null;
  ids?: Array<string | { readonly id: string }> | null;
  task_id?: string | null;
  session_key?: string | null;
  /** Those with this label: `key` or `key=value`. */
  label?: string | null;
  /** Those whose name matches this pattern; `*` is any text, `?` any character. */
  name?: string | null;
  all?: boolean | null;
  /** The first signal. Default: SIGTERM. */
  signal?: string | null;
  /** Time before SIGKILL. Default: 5000. */
  grace_ms?: number | null;
}

/** The parameters of `signal`. */
export interface SignalParams {
  id: string | { readonly id: string };
  signal: string;
}

/** The parameters of `restart`. */
export interface RestartParams {
  id: string | { readonly id: string };
  /** The whole environment of the new run. Default: that of the old one, which its shim keeps while it lives. */
  env?: Record<string, string> | null;
  /** Variables like `env`, with their values in base64: for values that are not UTF-8. */
  env_base64?: Record<string, string> | null;
  /** Time before SIGKILL. Default: 5000. */
  grace_ms?: number | null;
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `pause`. */
export interface PauseParams {
  id: string | { readonly id: string };
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `resume`. */
export interface ResumeParams {
  id: string | { readonly id: string };
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `write`. */
export interface WriteParams {
  id: string | { readonly id: string };
  data?: string | null;
  data_base64?: string | null;
  /** Keys to type instead of `data`, in order: names as `Up`, `C-c` and `Enter`, text, or `{text}`. Only for `write`. */
  keys?: Key[] | null;
  /** Keep it out of events, logs and files. On a terminal, wait until it does not show what is typed. */
  secret?: boolean;
  /** Idempotency key: a write with the same key is acknowledged and not repeated. The last 4096 keys of a process are remembered; the result has the number in `remembered_write_ids`. */
  write_id?: string | null;
  /** Maximum wait for the program to read. Default: 5000. */
  timeout_ms?: number | null;
}

/** The parameters of `submit`. */
export interface SubmitParams {
  id: string | { readonly id: string };
  data?: string | null;
  data_base64?: string | null;
  /** Keys to type instead of `data`, in order: names as `Up`, `C-c` and `Enter`, text, or `{text}`. Only for `write`. */
  keys?: Key[] | null;
  /** Keep it out of events, logs and files. On a terminal, wait until it does not show what is typed. */
  secret?: boolean;
  /** Idempotency key: a write with the same key is acknowledged and not repeated. The last 4096 keys of a process are remembered; the result has the number in `remembered_write_ids`. */
  write_id?: string | null;
  /** Maximum wait for the program to read. Default: 5000. */
  timeout_ms?: number | null;
}

/** The parameters of `close`. */
export interface CloseParams {
  id: string | { readonly id: string };
}

/** The parameters of `screen`. */
export interface ScreenParams {
  id: string | { readonly id: string };
}

/** The parameters of `resize`. */
export interface ResizeParams {
  id: string | { readonly id: string };
  rows: number;
  cols: number;
}

/** The parameters of `list`. */
export interface ListParams {
  task_id?: string | null;
  session_key?: string | null;
  status?: Status | null;
  /** Only processes that ended for this reason. */
  reason?: Reason | null;
  /** Only processes that are stopped, or that are not. */
  stopped?: boolean | null;
  /** `key` or `key=value`. */
  label?: string | null;
  /** The name; `*` stands for any text, `?` for any character. */
  name?: string | null;
  /** Leave out processes that ended longer ago than this. `older` counts them. */
  ended_within_ms?: number | null;
  /** Only processes that failed: lost, not started, ended by a signal, a limit or a timeout, or with a code other than 0. One that a client killed has not failed. */
  failed?: boolean;
  /** Also return the resources that each running tree uses, and the ports on which it listens. */
  usage?: boolean;
  /** Default: 200. */
  limit?: number | null;
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `inspect`. */
export interface InspectParams {
  id: string | { readonly id: string };
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `forget`. */
export interface ForgetParams {
  ids?: Array<string | { readonly id: string }> | null;
  /** All processes that ended at least this long ago. */
  older_than_ms?: number | null;
  /** All that failed, as `list` selects them; with `older_than_ms` those that are as old too. */
  failed?: boolean;
}

/** The parameters of `stage.diff`. */
export interface StageDiffParams {
  id: string | { readonly id: string };
}

/** The parameters of `stage.commit`. */
export interface StageCommitParams {
  id: string | { readonly id: string };
  /** The digest of the changes, from `stage.diff`. */
  digest: string;
  /** Only the changes at and below these paths, absolute or from the working directory. Default: all. */
  paths?: string[] | null;
}

/** The parameters of `stage.discard`. */
export interface StageDiscardParams {
  id: string | { readonly id: string };
}

/** The parameters of `session.active`. */
export interface SessionActiveParams {
  session_key?: string | null;
  task_id?: string | null;
}

/** The parameters of `session.end`. */
export interface SessionEndParams {
  session_key: string;
}

/** The parameters of `session.configure`. */
export interface SessionConfigureParams {
  session_key: string;
  /** The working directory of calls without one. Absolute. */
  cwd?: string | null;
  /** The profile of calls without one, and the widest of the session. */
  sandbox?: SandboxSetting | null;
  /** The cases in which a person is asked. Default: `policy.approval` of the config. */
  approval?: ApprovalPolicy | null;
  /** Directories that its processes may write in, beside their working directory. Absolute. */
  roots?: string[];
  /** Names of variables that a clean environment also has. */
  env_pass?: string[];
}

/** The parameters of `session.get`. */
export interface SessionGetParams {
  session_key: string;
}

/** The parameters of `policy.check`. */
export interface PolicyCheckParams {
  /** Shell text. Either this or `argv`. */
  command?: string | null;
  /** The program and its arguments. */
  argv?: string[] | null;
  /** Absolute. Default: the home directory. */
  cwd?: string | null;
  /** Variables that override all others. Values are in memory only: on no disk, in no log and in no answer. */
  env?: Record<string, string>;
  /** Variables like `env`, with their values in base64: for values that are not UTF-8. A name is in one of the two. */
  env_base64?: Record<string, string>;
  env_mode?: EnvMode;
  /** The shell that runs `command`. Default: the user's. */
  shell?: string | null;
  /** Run a login shell. Default: true. */
  login?: boolean | null;
  /** Run in a terminal: true, or its size. */
  pty?: Pty;
  stdin?: StdinMode;
  /** Let stdout and stderr share one pipe, so that their order is exact. All of it is then `stdout`. */
  merge?: boolean;
  /** Keep output beyond the cap for this connection until it has read it: the program is held back instead, like a writer to a full pipe. Ends with the connection. */
  hold?: boolean;
  /** Kill the process after this time. Default: never. */
  timeout_ms?: number | null;
  /** Wait up to this time for the exit before answering. */
  yield_ms?: number;
  /** Maximum output in the result, at about 4 bytes per token. Default: 10000. */
  max_output_tokens?: number | null;
  /** Only the last lines of the output. */
  tail_lines?: number | null;
  /** Show a line that was redrawn with a carriage return as it stood last. Default: true for text without escape sequences. */
  collapse?: boolean | null;
  /** A name, unique among running processes. It must not begin with `proc_` or `@`. */
  name?: string | null;
  task_id?: string | null;
  session_key?: string | null;
  labels?: Record<string, string>;
  /** Publish a `completion` event. */
  notify?: boolean;
  /** Publish `watch_match` events for lines that match one of these. */
  watch?: Pattern[];
  limits?: Limits;
  /** Refuse the start with `unavailable` if one of `limits` cannot be enforced here. Default: start, and report it in `limits`. */
  require_limits?: boolean;
  /** The backend that runs it. Default: `local`. */
  backend?: string | null;
  /** Idempotency key: a call with the same key returns the same process and starts nothing. With another command, directory, names in `env`, `limits`, `backend` or `name` it fails with `conflict`. */
  request_id?: string | null;
  /** Action if a process of this `name` is running. Default: `error`, which fails with `already_exists`. */
  if_running?: IfRunning;
  /** Start it again after it ended: `no`, `on-failure`, `always`, or a policy with its numbers. Default: `no`. */
  restart?: RestartSetting;
  /** Answer when this condition holds (`{match}`, `{port}` or `{quiet_ms}`), when the process exits, or after `ready_timeout_ms`. */
  ready?: Until | null;
  /** Maximum wait for `ready`. Default: 60000. */
  ready_timeout_ms?: number | null;
  /** Publish a `heartbeat` event if there is new output, at most once in this time. At least 60000. */
  heartbeat_ms?: number | null;
  /** Start when this queue has a free slot, in the order of the calls. One that is not configured has 1 slot. */
  queue?: string | null;
  /** Start when these processes have ended: ids or names. */
  after?: Array<string | { readonly id: string }>;
  /** The processes in `after` must exit with code 0; if one does not, this one ends with reason `dependency`. Default: true. */
  after_ok?: boolean | null;
  /** The confinement: the name of a profile, or an object with its keys. Default: `policy.default` of the config. */
  sandbox?: SandboxSetting | null;
  /** An exit that this call returns is acknowledged for this consumer. */
  consumer?: string | null;
  /** Ask a person to run it under a wider profile. */
  escalate?: Escalate | null;
  /** The time that a person has to decide, if someone must be asked. 0: deny instead of asking. Default: 600000. */
  approval_timeout_ms?: number | null;
  /** Run on an overlay: nothing below it changes until `stage.commit`. Refused with `unavailable` if the file system cannot carry one. */
  stage?: boolean;
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `policy.suggest`. */
export interface PolicySuggestParams {
  id: string | { readonly id: string };
}

/** The parameters of `queues.set`. */
export interface QueuesSetParams {
  /** The queue. A new name makes a new queue. */
  name: string;
  /** Number of its processes that run at the same time, at least 1. */
  slots?: number | null;
  /** True: no process is started from it. */
  paused?: boolean | null;
}

/** The parameters of `approvals.list`. */
export interface ApprovalsListParams {
  state?: ListedState;
  session_key?: string | null;
  task_id?: string | null;
  /** Default: 200. */
  limit?: number | null;
}

/** The parameters of `approvals.get`. */
export interface ApprovalsGetParams {
  id: string | { readonly id: string };
}

/** The parameters of `approvals.decide`. */
export interface ApprovalsDecideParams {
  id: string | { readonly id: string };
  decision: Decision;
  /** The digest of the action that the person saw. */
  digest: string;
  scope?: Scope;
  /** The terms of the grant, with scope `session` or `script`. */
  grant?: GrantTerms | null;
  /** A message for the caller that asked. */
  message?: string | null;
}

/** The parameters of `grants.list`. */
export interface GrantsListParams {
  session_key?: string | null;
  /** Also those that are revoked or over. */
  all?: boolean;
}

/** The parameters of `grants.revoke`. */
export interface GrantsRevokeParams {
  /** One grant. Either this or `session_key`. */
  id?: string | { readonly id: string } | null;
  /** All grants of a session. */
  session_key?: string | null;
  /** Also kill what still runs under them. */
  kill?: boolean;
}

/** The parameters of `patch.apply`. */
export interface PatchApplyParams {
  /** The patch, from `*** Begin Patch` to `*** End Patch`. */
  patch: string;
  /** The directory from which its paths are meant, and the first root. Absolute. Default: that of the session; without one, paths must be absolute. */
  cwd?: string | null;
  mode?: PatchMode;
  /** Check the patch and change nothing. */
  check?: boolean;
  /** The hash of files before the patch, by path: SHA-256 in hexadecimal digits, or `absent`. Another one is a `conflict`. */
  expect?: Record<string, string>;
  hard_links?: HardLinks;
  /** The same id again returns the result of the first call. */
  request_id?: string | null;
  session_key?: string | null;
  task_id?: string | null;
  /** The profile whose roots hold all files. Default: that of the session, or of the config. A person is asked for files outside. */
  sandbox?: SandboxSetting | null;
  /** The time that a person has to decide, if one must be asked; 0 denies instead of asking. Default: `policy.approval_timeout_ms`. */
  approval_timeout_ms?: number | null;
}

/** The parameters of `patch.revert`. */
export interface PatchRevertParams {
  /** The patch, as `patch.apply` returned it. */
  patch_id: string;
  /** The same id again waits for the answer to the same question, if a person is asked. */
  request_id?: string | null;
  session_key?: string | null;
  task_id?: string | null;
  /** The profile whose roots hold all files. Default: that of the session, or of the config. A person is asked for files outside. */
  sandbox?: SandboxSetting | null;
  /** The time that a person has to decide, if one must be asked; 0 denies instead of asking. Default: `policy.approval_timeout_ms`. */
  approval_timeout_ms?: number | null;
}

/** The parameters of `events.subscribe`. */
export interface EventsSubscribeParams {
  /** Only these types. Default: all. */
  types?: EventType[] | null;
  session_key?: string | null;
  task_id?: string | null;
  /** Only events of this process. */
  id?: string | { readonly id: string } | null;
  /** Replay the events after this number first. Default: only new events. */
  after?: string | { readonly id: string } | null;
  /** Also push output as it is written. Pushes are not stored; the log is. */
  output?: boolean;
  ansi?: Ansi;
}

/** The parameters of `events.unsubscribe`. */
export interface EventsUnsubscribeParams {
  /** The number that `events.subscribe` returned. */
  subscription: number | { readonly subscription: number };
}

/** The parameters of `events.next`. */
export interface EventsNextParams {
  /** The consumer's name. Its position is stored under it. */
  consumer: string;
  types?: EventType[] | null;
  session_key?: string | null;
  task_id?: string | null;
  id?: string | { readonly id: string } | null;
  /** Default: 100. */
  limit?: number | null;
  /** Wait up to this time for the first event. */
  wait_ms?: number;
  /** The first event of the consumer if it is new. Default: `oldest`. */
  from?: ConsumerStart;
}

/** The parameters of `events.ack`. */
export interface EventsAckParams {
  consumer: string;
  /** Acknowledge all events up to this number. */
  seq: number;
}

/** The parameters of `fs.read`. */
export interface FsReadParams {
  /** A regular file. Absolute, or relative to `cwd`. */
  path: string;
  /** The directory of a relative path. Absolute. */
  cwd?: string | null;
  /** The first line, from 1 on. Default: 1. */
  offset?: number | null;
  /** Lines, at most 2000. Default: 500. */
  limit?: number | null;
  /** `base64` gives the bytes of the lines unchanged. */
  encoding?: Encoding;
  /** The first byte, from 0 on, in place of lines. Only with `encoding: "base64"`; for binary files and very long lines. */
  from_byte?: number | null;
  /** The profile that the call is judged by. Default: that of an `exec` without `sandbox`. */
  sandbox?: SandboxSetting | null;
  session_key?: string | null;
  task_id?: string | null;
}

/** The parameters of `fs.write`. */
export interface FsWriteParams {
  /** A regular file, or a new name. Absolute, or relative to `cwd`. A link is followed. */
  path: string;
  /** The directory of a relative path. Absolute. */
  cwd?: string | null;
  /** The new content as text. Either this or `content_base64`. */
  content?: string | null;
  content_base64?: string | null;
  /** The sha256 that the file must have, or `absent`. */
  expect?: string | null;
  /** Permissions in octal: `644`. Default: those of the file. */
  mode?: string | null;
  /** Create missing directories. Default: true. */
  create_dirs?: boolean | null;
  hard_links?: HardLinks;
  /** The profile that the call is judged by. Default: that of an `exec` without `sandbox`. */
  sandbox?: SandboxSetting | null;
  session_key?: string | null;
  task_id?: string | null;
  /** A call with the same key and the same change waits for the same approval. */
  request_id?: string | null;
  /** The time that a person has to decide, if the file is outside the roots. 0: deny instead of asking. Default: 600000. */
  approval_timeout_ms?: number | null;
}

/** The parameters of `fs.edit`. */
export interface FsEditParams {
  /** A regular text file. Absolute, or relative to `cwd`. A link is followed. */
  path: string;
  /** The text to replace. Its line ends need not be those of the file. */
  old: string;
  new: string;
  /** The directory of a relative path. Absolute. */
  cwd?: string | null;
  /** Replace every match. Otherwise there must be exactly one. */
  replace_all?: boolean;
  /** Accept a similar text too: strategies `block_anchor` and `similar_lines`. */
  fuzzy?: boolean;
  /** The sha256 that the file must have. */
  expect?: string | null;
  hard_links?: HardLinks;
  /** The profile that the call is judged by. Default: that of an `exec` without `sandbox`. */
  sandbox?: SandboxSetting | null;
  session_key?: string | null;
  task_id?: string | null;
  /** A call with the same key and the same change waits for the same approval. */
  request_id?: string | null;
  /** The time that a person has to decide, if the file is outside the roots. 0: deny instead of asking. Default: 600000. */
  approval_timeout_ms?: number | null;
}

/** The parameters of `fs.list`. */
export interface FsListParams {
  /** A directory. Absolute, or relative to `cwd`. */
  path: string;
  /** The directory of a relative path. Absolute. */
  cwd?: string | null;
  /** Levels of directories, at most 64. Default: 1. */
  depth?: number | null;
  /** Only names that match: `*.rs`; with a slash, paths below `path`: `src/** /*.rs`. */
  glob?: string | null;
  /** Names that begin with a dot too. */
  hidden?: boolean;
  /** Leave out what ignore files name. Default: true. */
  ignore?: boolean | null;
  /** Entries, at most 10000. Default: 1000. */
  limit?: number | null;
  /** `next` of the page before. */
  after?: string | { readonly id: string } | null;
  /** The profile that the call is judged by. Default: that of an `exec` without `sandbox`. */
  sandbox?: SandboxSetting | null;
  session_key?: string | null;
  task_id?: string | null;
}

/** The parameters of `fs.search`. */
export interface FsSearchParams {
  /** A regular expression of ripgrep, for one line. */
  pattern: string;
  /** A directory or a file. Absolute, or relative to `cwd`. */
  path: string;
  /** The directory of a relative path. Absolute. */
  cwd?: string | null;
  /** Only files whose path matches, as `rg --glob`: `*.rs`, `!target`. */
  glob?: string | null;
  mode?: SearchMode;
  /** Lines before and after each match, at most 20. Default: 0. */
  context?: number | null;
  /** Results, at most 10000. Default: 50. */
  limit?: number | null;
  /** `next` of the page before. */
  after?: string | { readonly id: string } | null;
  /** Results that are left out first. With `limit` at most 10000; `after` reaches further. Default: 0. */
  offset?: number | null;
  /** Answer after this time with what was found. Default: 10000. */
  timeout_ms?: number | null;
  /** Files whose name begins with a dot too. */
  hidden?: boolean;
  /** Leave out what ignore files name. Default: true. */
  ignore?: boolean | null;
  /** The profile that the call is judged by. Default: that of an `exec` without `sandbox`. */
  sandbox?: SandboxSetting | null;
  session_key?: string | null;
  task_id?: string | null;
}

/** The parameters of `tools.list`. */
export interface ToolsListParams {
  /** Only tools of this provider: `native`, a client's or an MCP server's. */
  provider?: string | null;
  /** Only tools with this effect. */
  effect?: Effect | null;
  /** Only tools whose name or description has all of these terms, in any case. */
  query?: string | null;
  /** The detail of `tools`. Other formats are always full. */
  detail?: ToolsDetail;
  /** The session that calls. Only tools that it may call are listed. */
  session_key?: string | null;
  toolset?: Toolset;
  format?: ToolsFormat;
}

/** The parameters of `tools.call`. */
export interface ToolsCallParams {
  /** As `tools.list` has it: `terminal`, `linear.create_issue`. */
  name: string;
  /** Checked against the tool's `input_schema`. */
  args?: Record<string, unknown>;
  /** The time that the call may take. Default: that of the tool, or `script.call_timeout_ms`. */
  timeout_ms?: number | null;
  session_key?: string | null;
  task_id?: string | null;
  /** The directory of relative paths in `args`. Absolute. */
  cwd?: string | null;
  /** The same id again returns the same result, and nothing is done twice. */
  request_id?: string | null;
  /** The toolset of `name`. The result of `codex` is a text and that of `hermes` an object, in the form that their models know, also for a call that failed. An error of the call itself has that form in `data.text`. */
  toolset?: Toolset;
}

/** The parameters of `tools.register`. */
export interface ToolsRegisterParams {
  /** `[a-z][a-z0-9_]*`. The tools are `provider.name`. */
  provider: string;
  /** All tools of the provider. They replace those of an earlier registration. */
  tools: ToolDefinition[];
  /** Only this session may call them. Default: all. */
  session_key?: string | null;
  /** The time that calls wait for a connection that was lost. Default: 5000. */
  reconnect_ms?: number | null;
  /** Replace another live connection that has the name. */
  takeover?: boolean;
}

/** The parameters of `tools.unregister`. */
export interface ToolsUnregisterParams {
  provider: string;
}

/** The parameters of `tools.refresh`. */
export interface ToolsRefreshParams {
  /** An MCP server. */
  provider: string;
}

/** The parameters of `script.run`. */
export interface ScriptRunParams {
  /** The text of the script. Either this or `file` or `argv`. */
  code?: string | null;
  /** The file of the script, absolute or from `cwd`. */
  file?: string | null;
  /** Default: `python`, or that of the ending of `file`. */
  language?: Language | null;
  /** Any program, in place of an interpreter: it finds the channel in its environment. */
  argv?: string[] | null;
  /** The tools that it may call. Default: `script.tools` of the config. An empty list: none. */
  tools?: string[] | null;
  /** A value for the script. */
  args?: unknown;
  /** Absolute. Default: that of the session, else the home directory. */
  cwd?: string | null;
  /** Variables that override all others. Values are in memory only. */
  env?: Record<string, string>;
  env_mode?: EnvMode;
  sandbox?: SandboxSetting | null;
  limits?: Limits;
  /** Kill the script after this time, also without a daemon. 0: never. Default: 300000. */
  timeout_ms?: number | null;
  /** The time of one call, unless the call has its own. Default: 300000. */
  call_timeout_ms?: number | null;
  /** The most calls. Default: 500. */
  max_calls?: number | null;
  /** The most calls at the same time; others wait. Default: 16. */
  max_parallel?: number | null;
  /** Wait up to this time for the end before answering. Default: 60000. */
  yield_ms?: number | null;
  /** The most bytes of `output`. Default: 50000. */
  max_output_bytes?: number | null;
  /** The most bytes of `stderr`. Default: 10000. */
  max_stderr_bytes?: number | null;
  /** Hide secrets in the result. Default: true. */
  redact?: boolean | null;
  name?: string | null;
  task_id?: string | null;
  session_key?: string | null;
  labels?: Record<string, string>;
  /** Publish a `completion` event. */
  notify?: boolean;
  watch?: Pattern[];
  /** The backend that runs it. Default: `local`. */
  backend?: string | null;
  /** The same key again returns the same script, and starts nothing. */
  request_id?: string | null;
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `script.result`. */
export interface ScriptResultParams {
  id: string | { readonly id: string };
  /** Wait up to this time for the end. */
  wait_ms?: number;
  /** The cell of a kernel. Default: the last one. */
  cell?: number | null;
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `script.calls`. */
export interface ScriptCallsParams {
  id: string | { readonly id: string };
  /** Only calls after this one. */
  after?: string | { readonly id: string } | null;
  /** Default: 200. */
  limit?: number | null;
  detail?: CallDetail;
  /** Only those of this cell of a kernel. */
  cell?: number | null;
}

/** The parameters of `script.cancel`. */
export interface ScriptCancelParams {
  id: string | { readonly id: string };
  /** Only this call. Default: the script with all of its calls. */
  call?: string | null;
}

/** The parameters of `kernel.open`. */
export interface KernelOpenParams {
  /** `python` or `javascript`. Default: `python`. */
  language?: Language | null;
  /** The tools that its cells may call. Default: `script.tools` of the config. An empty list: none. */
  tools?: string[] | null;
  /** A value for the cells. */
  args?: unknown;
  /** Absolute. Default: that of the session, else the home directory. */
  cwd?: string | null;
  /** Variables that override all others. Values are in memory only. */
  env?: Record<string, string>;
  env_mode?: EnvMode;
  sandbox?: SandboxSetting | null;
  limits?: Limits;
  /** Kill the kernel after this time, also without a daemon. Default and 0: never. */
  timeout_ms?: number | null;
  /** End the kernel after this time without a cell. 0: never. Default: `kernel.idle_ms` of the config. */
  idle_ms?: number | null;
  /** The time of one call, unless the call has its own. Default: 300000. */
  call_timeout_ms?: number | null;
  /** The most calls of a cell that names no number. Default: 500. */
  max_calls?: number | null;
  /** The most calls at the same time; others wait. Default: 16. */
  max_parallel?: number | null;
  /** The most bytes of `output` of a cell. Default: 50000. */
  max_output_bytes?: number | null;
  /** The most bytes of `stderr` of a cell. Default: 10000. */
  max_stderr_bytes?: number | null;
  /** Hide secrets in the results of cells. Default: true. */
  redact?: boolean | null;
  name?: string | null;
  task_id?: string | null;
  session_key?: string | null;
  labels?: Record<string, string>;
  /** Publish a `completion` event when the kernel ends. */
  notify?: boolean;
  watch?: Pattern[];
  /** The backend that runs it. Default: `local`. */
  backend?: string | null;
  /** The same key again returns the same kernel, and starts nothing. */
  request_id?: string | null;
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `kernel.run`. */
export interface KernelRunParams {
  code: string;
  /** The kernel. Either this or `name`. */
  id?: string | { readonly id: string } | null;
  name?: string | null;
  /** Interrupt the cell after this time; it is counted from its begin. 0: never. Default: 300000. */
  timeout_ms?: number | null;
  /** Wait up to this time for the end of the cell before answering. Default: 60000. */
  yield_ms?: number | null;
  /** The most calls of the cell. Default: that of the kernel. */
  max_calls?: number | null;
  if_busy?: IfBusy;
  /** The same key again returns the same cell, and runs nothing. */
  request_id?: string | null;
  /** Only these fields of each process in the result. */
  fields?: string[] | null;
  /** A set of fields with a name, in place of `fields`. */
  view?: View;
}

/** The parameters of `kernel.interrupt`. */
export interface KernelInterruptParams {
  /** The kernel. Either this or `name`. */
  id?: string | { readonly id: string } | null;
  name?: string | null;
  /** Kill the kernel if the cell has not ended after this time. Default: 2000. */
  grace_ms?: number | null;
}

/** The parameters of `kernel.reset`. */
export interface KernelResetParams {
  /** The kernel. Either this or `name`. */
  id?: string | { readonly id: string } | null;
  name?: string | null;
  /** The time in which a running cell ends by itself when it is interrupted. Default: 2000. */
  grace_ms?: number | null;
}

/** The parameters of `kernel.close`. */
export interface KernelCloseParams {
  /** The kernel. Either this or `name`. */
  id?: string | { readonly id: string } | null;
  name?: string | null;
  /** The time between SIGTERM and SIGKILL. Default: 5000. */
  grace_ms?: number | null;
}

/** The parameters of `daemon.shutdown`. */
export interface DaemonShutdownParams {
  /** Also kill all processes. */
  kill?: boolean;
}
