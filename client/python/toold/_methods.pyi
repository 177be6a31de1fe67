"""One method for each method of the daemon.

Generated from the list of methods by `UPDATE_GOLDEN=1 cargo test -p toold-proto clients`. Do not edit.
"""

from typing import Any, Awaitable, Callable, Dict, FrozenSet, List, Literal, Mapping, Sequence, Union

from . import _aio, _client
from ._tools import ToolCall
from .types import *

REPEATABLE: FrozenSet[str]
KEYS: Dict[str, str]
PROCESSES: FrozenSet[str]

class Methods:
    def exec(self, command: Union[str, Sequence[str], None] = None, *, argv: Union[Sequence[str], None] = None, cwd: Union[str, None] = None, env: Union[Mapping[str, str], None] = None, env_base64: Union[Mapping[str, str], None] = None, env_mode: Union[EnvMode, None] = None, shell: Union[str, None] = None, login: Union[bool, None] = None, pty: Union[Pty, None] = None, stdin: Union[StdinMode, None] = None, merge: bool = False, hold: bool = False, timeout_ms: Union[int, None] = None, yield_ms: int = 0, max_output_tokens: Union[int, None] = None, tail_lines: Union[int, None] = None, collapse: Union[bool, None] = None, name: Union[str, None] = None, task_id: Union[str, None] = None, session_key: Union[str, None] = None, labels: Union[Mapping[str, str], None] = None, notify: bool = False, watch: Union[Sequence[Pattern], None] = None, limits: Union[Limits, None] = None, require_limits: bool = False, backend: Union[str, None] = None, request_id: Union[str, None] = None, if_running: Union[IfRunning, None] = None, restart: Union[RestartSetting, None] = None, ready: Union[Until, None] = None, ready_timeout_ms: Union[int, None] = None, heartbeat_ms: Union[int, None] = None, queue: Union[str, None] = None, after: Union[Sequence[Union[str, _client.Process]], None] = None, after_ok: Union[bool, None] = None, sandbox: Union[SandboxSetting, None] = None, consumer: Union[str, None] = None, escalate: Union[Escalate, None] = None, approval_timeout_ms: Union[int, None] = None, stage: bool = False, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _client.Process:
        """Start a process.

        Answers when the program runs; with `yield_ms`, when it has exited or the time is over.

        command: Shell text. Either this or `argv`.
        argv: The program and its arguments.
        cwd: Absolute. Default: the home directory.
        env: Variables that override all others. Values are in memory only: on no disk, in no log and in no
            answer.
        env_base64: Variables like `env`, with their values in base64: for values that are not UTF-8. A name is in one
            of the two.
        shell: The shell that runs `command`. Default: the user's.
        login: Run a login shell. Default: true.
        pty: Run in a terminal: true, or its size.
        merge: Let stdout and stderr share one pipe, so that their order is exact. All of it is then `stdout`.
        hold: Keep output beyond the cap for this connection until it has read it: the program is held back
            instead, like a writer to a full pipe. Ends with the connection.
        timeout_ms: Kill the process after this time. Default: never.
        yield_ms: Wait up to this time for the exit before answering.
        max_output_tokens: Maximum output in the result, at about 4 bytes per token. Default: 10000.
        tail_lines: Only the last lines of the output.
        collapse: Show a line that was redrawn with a carriage return as it stood last. Default: true for text
            without escape sequences.
        name: A name, unique among running processes. It must not begin with `proc_` or `@`.
        notify: Publish a `completion` event.
        watch: Publish `watch_match` events for lines that match one of these.
        require_limits: Refuse the start with `unavailable` if one of `limits` cannot be enforced here. Default: start,
            and report it in `limits`.
        backend: The backend that runs it. Default: `local`.
        request_id: Idempotency key: a call with the same key returns the same process and starts nothing. With
            another command, directory, names in `env`, `limits`, `backend` or `name` it fails with
            `conflict`.
        if_running: Action if a process of this `name` is running. Default: `error`, which fails with
            `already_exists`.
        restart: Start it again after it ended: `no`, `on-failure`, `always`, or a policy with its numbers.
            Default: `no`.
        ready: Answer when this condition holds (`{match}`, `{port}` or `{quiet_ms}`), when the process exits, or
            after `ready_timeout_ms`.
        ready_timeout_ms: Maximum wait for `ready`. Default: 60000.
        heartbeat_ms: Publish a `heartbeat` event if there is new output, at most once in this time. At least 60000.
        queue: Start when this queue has a free slot, in the order of the calls. One that is not configured has 1
            slot.
        after: Start when these processes have ended: ids or names.
        after_ok: The processes in `after` must exit with code 0; if one does not, this one ends with reason
            `dependency`. Default: true.
        sandbox: The confinement: the name of a profile, or an object with its keys. Default: `policy.default` of
            the config.
        consumer: An exit that this call returns is acknowledged for this consumer.
        escalate: Ask a person to run it under a wider profile.
        approval_timeout_ms: The time that a person has to decide, if someone must be asked. 0: deny instead of asking.
            Default: 600000.
        stage: Run on an overlay: nothing below it changes until `stage.commit`. Refused with `unavailable` if
            the file system cannot carry one.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def poll(self, *, id: Union[str, _client.Process], cursor: Union[int, None] = None, max_bytes: Union[int, None] = None, wait_ms: int = 0, stream: Union[Stream, None] = None, ansi: Union[Ansi, None] = None, encoding: Union[Encoding, None] = None, tail_lines: Union[int, None] = None, collapse: Union[bool, None] = None, spans: bool = False, hold: bool = False, redact: bool = False, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _client.Process:
        """Return a process and its output from a cursor on.

        Consumes nothing. With `wait_ms` it waits for new output, the exit or the end of the output.

        cursor: Position to read from. Default: the last 1000 characters.
        max_bytes: Default: 65536.
        wait_ms: Wait up to this time for new output, the exit or the end of the output.
        tail_lines: Only the last lines of the output.
        collapse: Show a line that was redrawn with a carriage return as it stood last. Default: true for text
            without escape sequences.
        spans: Also return the ranges of bytes that came from each stream.
        hold: Take the hold of a process that was started with `hold`, for this connection: after a lost
            connection.
        redact: Hide secrets in the output: values that the process was given, known shapes, dumps of
            environments.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def log(self, *, id: Union[Union[str, _client.Process], None] = None, ids: Union[Sequence[Union[str, _client.Process]], None] = None, offset: Union[int, None] = None, limit: Union[int, None] = None, stream: Union[Stream, None] = None, grep: Union[str, None] = None, ansi: Union[Ansi, None] = None, tail_lines: Union[int, None] = None, collapse: Union[bool, None] = None, redact: bool = False) -> LogResult:
        """Return the output by line.

        Without `offset` these are the last lines. With `grep` only lines that match.

        id: The process. Without it: a search of several logs, which needs `grep`.
        ids: The processes whose logs are searched. Default without `id`: all, also those that have ended.
        offset: The first line to show, from 0. Default: the last lines. Only with `id`.
        limit: The most lines. Default: 200.
        grep: Only lines that match this regular expression.
        tail_lines: Only the last lines of the output. Only with `id`.
        collapse: Show a line that was redrawn with a carriage return as it stood last. Default: true for text
            without escape sequences.
        redact: Hide secrets in the output: values that the process was given, known shapes, dumps of
            environments.
        """
        ...
    def wait(self, *, id: Union[Union[str, _client.Process], None] = None, ids: Union[Sequence[Union[str, _client.Process]], None] = None, session_key: Union[str, None] = None, mode: Union[WaitMode, None] = None, until: Union[Until, None] = None, or_input: bool = False, timeout_ms: Union[int, None] = None, tail_lines: Union[int, None] = None, collapse: Union[bool, None] = None, consumer: Union[str, None] = None, redact: bool = False, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> WaitResult:
        """Wait until processes exit, close their output, print a match or wait for input.

        After a timeout they keep running. What was printed before the call matches too.

        session_key: Instead of ids: all processes of this session that run now. If there is none, the answer comes at
            once.
        or_input: Also answer, with `status: "input"`, when one of the processes waits for input.
        timeout_ms: Default: 180000.
        tail_lines: Only the last lines of the output.
        collapse: Show a line that was redrawn with a carriage return as it stood last. Default: true for text
            without escape sequences.
        consumer: Exits that this call returns are acknowledged for this consumer.
        redact: Hide secrets in the output: values that the process was given, known shapes, dumps of
            environments.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def kill(self, *, id: Union[Union[str, _client.Process], None] = None, ids: Union[Sequence[Union[str, _client.Process]], None] = None, task_id: Union[str, None] = None, session_key: Union[str, None] = None, label: Union[str, None] = None, name: Union[str, None] = None, all: Union[bool, None] = None, signal: Union[str, None] = None, grace_ms: Union[int, None] = None) -> KillResult:
        """Kill whole process trees.

        Answers when it is verified that no process of them is left, or with the survivors.

        label: Those with this label: `key` or `key=value`.
        name: Those whose name matches this pattern; `*` is any text, `?` any character.
        signal: The first signal. Default: SIGTERM.
        grace_ms: Time before SIGKILL. Default: 5000.
        """
        ...
    def signal(self, *, id: Union[str, _client.Process], signal: str) -> SignalResult:
        """Send one signal to the process group.

        Does nothing else: it neither waits nor kills what is left.
        """
        ...
    def restart(self, *, id: Union[str, _client.Process], env: Union[Mapping[str, str], None] = None, env_base64: Union[Mapping[str, str], None] = None, grace_ms: Union[int, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _client.Process:
        """Start a process again.

        The same program, arguments, directory, name and limits, after its old tree is proven to be gone; the
        new run has an id of its own. If the program or the directory is gone, the old process keeps running.
        Environment values come from `env`, or from the shim while it lives.

        env: The whole environment of the new run. Default: that of the old one, which its shim keeps while it
            lives.
        env_base64: Variables like `env`, with their values in base64: for values that are not UTF-8.
        grace_ms: Time before SIGKILL. Default: 5000.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def pause(self, *, id: Union[str, _client.Process], fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _client.Process:
        """Stop a process and all of its descendants.

        Sends SIGSTOP, and answers when all have stopped, or after 3 seconds with `stopped` false.

        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def resume(self, *, id: Union[str, _client.Process], fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _client.Process:
        """Continue a process and all of its descendants.

        Sends SIGCONT. A process that is not stopped goes on as before.

        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def write(self, *, id: Union[str, _client.Process], data: Union[str, None] = None, data_base64: Union[str, None] = None, keys: Union[Sequence[Key], None] = None, secret: bool = False, write_id: Union[str, None] = None, timeout_ms: Union[int, None] = None) -> WriteResult:
        """Write bytes to stdin, unchanged, or type keys.

        Answers when the program has taken them all, or with the number that it took within `timeout_ms`.

        keys: Keys to type instead of `data`, in order: names as `Up`, `C-c` and `Enter`, text, or `{text}`.
            Only for `write`.
        secret: Keep it out of events, logs and files. On a terminal, wait until it does not show what is typed.
        write_id: Idempotency key: a write with the same key is acknowledged and not repeated. The last 4096 keys of
            a process are remembered; the result has the number in `remembered_write_ids`.
        timeout_ms: Maximum wait for the program to read. Default: 5000.
        """
        ...
    def submit(self, *, id: Union[str, _client.Process], data: Union[str, None] = None, data_base64: Union[str, None] = None, keys: Union[Sequence[Key], None] = None, secret: bool = False, write_id: Union[str, None] = None, timeout_ms: Union[int, None] = None) -> WriteResult:
        """Write bytes and a newline to stdin.

        Otherwise like `write`.

        keys: Keys to type instead of `data`, in order: names as `Up`, `C-c` and `Enter`, text, or `{text}`.
            Only for `write`.
        secret: Keep it out of events, logs and files. On a terminal, wait until it does not show what is typed.
        write_id: Idempotency key: a write with the same key is acknowledged and not repeated. The last 4096 keys of
            a process are remembered; the result has the number in `remembered_write_ids`.
        timeout_ms: Maximum wait for the program to read. Default: 5000.
        """
        ...
    def close(self, *, id: Union[str, _client.Process]) -> CloseResult:
        """Close stdin.

        Closes the pipe, or types end-of-file into the terminal.
        """
        ...
    def screen(self, *, id: Union[str, _client.Process]) -> ScreenResult:
        """Return the screen of a process's terminal as text.

        The screen stays after the exit. Only for processes that were started with `pty`.
        """
        ...
    def resize(self, *, id: Union[str, _client.Process], rows: int, cols: int) -> ResizeResult:
        """Set the size of a process's terminal.

        Only for processes that were started with `pty`.
        """
        ...
    def list(self, *, task_id: Union[str, None] = None, session_key: Union[str, None] = None, status: Union[Status, None] = None, reason: Union[Reason, None] = None, stopped: Union[bool, None] = None, label: Union[str, None] = None, name: Union[str, None] = None, ended_within_ms: Union[int, None] = None, failed: bool = False, usage: bool = False, limit: Union[int, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> ListResult:
        """List processes, newest first.

        The filters select those for which all of them hold. `total` counts all that were selected.

        reason: Only processes that ended for this reason.
        stopped: Only processes that are stopped, or that are not.
        label: `key` or `key=value`.
        name: The name; `*` stands for any text, `?` for any character.
        ended_within_ms: Leave out processes that ended longer ago than this. `older` counts them.
        failed: Only processes that failed: lost, not started, ended by a signal, a limit or a timeout, or with a
            code other than 0. One that a client killed has not failed.
        usage: Also return the resources that each running tree uses, and the ports on which it listens.
        limit: Default: 200.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def inspect(self, *, id: Union[str, _client.Process], fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _client.Process:
        """Return a process with its tree.

        Also its files, the names of its environment variables and the resources that it uses.

        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def forget(self, *, ids: Union[Sequence[Union[str, _client.Process]], None] = None, older_than_ms: Union[int, None] = None, failed: bool = False) -> ForgetResult:
        """Remove the records and logs of finished processes.

        Processes that still run are skipped.

        older_than_ms: All processes that ended at least this long ago.
        failed: All that failed, as `list` selects them; with `older_than_ms` those that are as old too.
        """
        ...
    def stage_diff(self, *, id: Union[str, _client.Process]) -> StageDiffResult:
        """Return the changes of a staged process, with a diff.

        While it runs they are those so far, without a digest.
        """
        ...
    def stage_commit(self, *, id: Union[str, _client.Process], digest: str, paths: Union[Sequence[str], None] = None) -> StageCommitResult:
        """Make the changes of a staged process below its overlay.

        All of them or none, also over a crash. Fails with `conflict` if the digest is not that of the
        changes, and names the files that were changed below meanwhile.

        digest: The digest of the changes, from `stage.diff`.
        paths: Only the changes at and below these paths, absolute or from the working directory. Default: all.
        """
        ...
    def stage_discard(self, *, id: Union[str, _client.Process]) -> StageDiscardResult:
        """Remove the changes of a staged process.

        Nothing below its overlay changes.
        """
        ...
    def session_active(self, *, session_key: Union[str, None] = None, task_id: Union[str, None] = None) -> SessionActiveResult:
        """List the processes that a session or task still runs.

        Give `session_key` or `task_id`.
        """
        ...
    def session_end(self, *, session_key: str) -> SessionEndResult:
        """Kill the processes that a session still runs.

        Returns what was killed. Their completions are marked `cancelled` and not pushed.
        """
        ...
    def session_configure(self, *, session_key: str, cwd: Union[str, None] = None, sandbox: Union[SandboxSetting, None] = None, approval: Union[ApprovalPolicy, None] = None, roots: Union[Sequence[str], None] = None, env_pass: Union[Sequence[str], None] = None) -> SessionGetResult:
        """Set the defaults of a session, and its ceiling.

        Durable. Replaces what an earlier call set and keeps the grants; nothing but `session_key` removes the
        settings. `sandbox` and `roots` must not be wider than `policy.max`.

        cwd: The working directory of calls without one. Absolute.
        sandbox: The profile of calls without one, and the widest of the session.
        approval: The cases in which a person is asked. Default: `policy.approval` of the config.
        roots: Directories that its processes may write in, beside their working directory. Absolute.
        env_pass: Names of variables that a clean environment also has.
        """
        ...
    def session_get(self, *, session_key: str) -> SessionGetResult:
        """Return the settings of a session.

        With its processes that run, its grants and its questions that wait.
        """
        ...
    def policy_check(self, *, command: Union[str, None] = None, argv: Union[Sequence[str], None] = None, cwd: Union[str, None] = None, env: Union[Mapping[str, str], None] = None, env_base64: Union[Mapping[str, str], None] = None, env_mode: Union[EnvMode, None] = None, shell: Union[str, None] = None, login: Union[bool, None] = None, pty: Union[Pty, None] = None, stdin: Union[StdinMode, None] = None, merge: bool = False, hold: bool = False, timeout_ms: Union[int, None] = None, yield_ms: int = 0, max_output_tokens: Union[int, None] = None, tail_lines: Union[int, None] = None, collapse: Union[bool, None] = None, name: Union[str, None] = None, task_id: Union[str, None] = None, session_key: Union[str, None] = None, labels: Union[Mapping[str, str], None] = None, notify: bool = False, watch: Union[Sequence[Pattern], None] = None, limits: Union[Limits, None] = None, require_limits: bool = False, backend: Union[str, None] = None, request_id: Union[str, None] = None, if_running: Union[IfRunning, None] = None, restart: Union[RestartSetting, None] = None, ready: Union[Until, None] = None, ready_timeout_ms: Union[int, None] = None, heartbeat_ms: Union[int, None] = None, queue: Union[str, None] = None, after: Union[Sequence[Union[str, _client.Process]], None] = None, after_ok: Union[bool, None] = None, sandbox: Union[SandboxSetting, None] = None, consumer: Union[str, None] = None, escalate: Union[Escalate, None] = None, approval_timeout_ms: Union[int, None] = None, stage: bool = False, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> PolicyCheckResult:
        """Judge a call as `exec` would, and run nothing.

        Takes the parameters of `exec`. No event is published.

        command: Shell text. Either this or `argv`.
        argv: The program and its arguments.
        cwd: Absolute. Default: the home directory.
        env: Variables that override all others. Values are in memory only: on no disk, in no log and in no
            answer.
        env_base64: Variables like `env`, with their values in base64: for values that are not UTF-8. A name is in one
            of the two.
        shell: The shell that runs `command`. Default: the user's.
        login: Run a login shell. Default: true.
        pty: Run in a terminal: true, or its size.
        merge: Let stdout and stderr share one pipe, so that their order is exact. All of it is then `stdout`.
        hold: Keep output beyond the cap for this connection until it has read it: the program is held back
            instead, like a writer to a full pipe. Ends with the connection.
        timeout_ms: Kill the process after this time. Default: never.
        yield_ms: Wait up to this time for the exit before answering.
        max_output_tokens: Maximum output in the result, at about 4 bytes per token. Default: 10000.
        tail_lines: Only the last lines of the output.
        collapse: Show a line that was redrawn with a carriage return as it stood last. Default: true for text
            without escape sequences.
        name: A name, unique among running processes. It must not begin with `proc_` or `@`.
        notify: Publish a `completion` event.
        watch: Publish `watch_match` events for lines that match one of these.
        require_limits: Refuse the start with `unavailable` if one of `limits` cannot be enforced here. Default: start,
            and report it in `limits`.
        backend: The backend that runs it. Default: `local`.
        request_id: Idempotency key: a call with the same key returns the same process and starts nothing. With
            another command, directory, names in `env`, `limits`, `backend` or `name` it fails with
            `conflict`.
        if_running: Action if a process of this `name` is running. Default: `error`, which fails with
            `already_exists`.
        restart: Start it again after it ended: `no`, `on-failure`, `always`, or a policy with its numbers.
            Default: `no`.
        ready: Answer when this condition holds (`{match}`, `{port}` or `{quiet_ms}`), when the process exits, or
            after `ready_timeout_ms`.
        ready_timeout_ms: Maximum wait for `ready`. Default: 60000.
        heartbeat_ms: Publish a `heartbeat` event if there is new output, at most once in this time. At least 60000.
        queue: Start when this queue has a free slot, in the order of the calls. One that is not configured has 1
            slot.
        after: Start when these processes have ended: ids or names.
        after_ok: The processes in `after` must exit with code 0; if one does not, this one ends with reason
            `dependency`. Default: true.
        sandbox: The confinement: the name of a profile, or an object with its keys. Default: `policy.default` of
            the config.
        consumer: An exit that this call returns is acknowledged for this consumer.
        escalate: Ask a person to run it under a wider profile.
        approval_timeout_ms: The time that a person has to decide, if someone must be asked. 0: deny instead of asking.
            Default: 600000.
        stage: Run on an overlay: nothing below it changes until `stage.commit`. Refused with `unavailable` if
            the file system cannot carry one.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def policy_reload(self) -> PolicyReloadResult:
        """Read the rule files again.

        If one is refused, the old rules stay; `data` has its `file`, `index` and `example`.
        """
        ...
    def policy_suggest(self, *, id: Union[str, _client.Process]) -> PolicySuggestResult:
        """Suggest a profile and rules for what a process was refused.

        From the calls that its sandbox refused. Writes nothing.
        """
        ...
    def queues_list(self) -> QueuesListResult:
        """List the queues.

        With their slots, and how many of their processes run and wait.
        """
        ...
    def queues_set(self, *, name: str, slots: Union[int, None] = None, paused: Union[bool, None] = None) -> Queue:
        """Set the slots of a queue, pause or resume it.

        Durable, and stronger than the config.

        name: The queue. A new name makes a new queue.
        slots: Number of its processes that run at the same time, at least 1.
        paused: True: no process is started from it.
        """
        ...
    def approvals_list(self, *, state: Union[ListedState, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, limit: Union[int, None] = None) -> ApprovalsListResult:
        """List the approvals, oldest first.

        Questions that wait for a person, unless `state` asks for others.

        limit: Default: 200.
        """
        ...
    def approvals_get(self, *, id: Union[str, _client.Process]) -> Approval:
        """Return one approval.

        Also one that was decided.
        """
        ...
    def approvals_decide(self, *, id: Union[str, _client.Process], decision: Decision, digest: str, scope: Union[Scope, None] = None, grant: Union[GrantTerms, None] = None, message: Union[str, None] = None) -> ApprovalsDecideResult:
        """Decide an approval.

        The first decision wins; another gets `already_decided`. `digest` is that of the action that the
        person saw. Scope `session` makes a grant for the same argv, directory and profile, `always` a rule.
        `abort` denies, and withdraws everything else pending of the task. Not from inside a job.

        digest: The digest of the action that the person saw.
        grant: The terms of the grant, with scope `session` or `script`.
        message: A message for the caller that asked.
        """
        ...
    def grants_list(self, *, session_key: Union[str, None] = None, all: bool = False) -> GrantsListResult:
        """List the grants, oldest first.

        What persons allowed for the rest of a session.

        all: Also those that are revoked or over.
        """
        ...
    def grants_revoke(self, *, id: Union[Union[str, _client.Process], None] = None, session_key: Union[str, None] = None, kill: bool = False) -> GrantsRevokeResult:
        """Revoke a grant, or all of a session.

        Later uses are stopped. Lists what still runs under them, and kills it with `kill`. Not from inside a
        job.

        id: One grant. Either this or `session_key`.
        session_key: All grants of a session.
        kill: Also kill what still runs under them.
        """
        ...
    def patch_apply(self, *, patch: str, cwd: Union[str, None] = None, mode: Union[PatchMode, None] = None, check: bool = False, expect: Union[Mapping[str, str], None] = None, hard_links: Union[HardLinks, None] = None, request_id: Union[str, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, sandbox: Union[SandboxSetting, None] = None, approval_timeout_ms: Union[int, None] = None) -> PatchResult:
        """Apply a patch to files: all of it, or nothing.

        The patch has the form of `apply_patch`: `*** Begin Patch`, then `*** Add File: p`, `*** Delete File:
        p` or `*** Update File: p` with chunks, then `*** End Patch`. It is verified first; an error names the
        line. Old bytes are kept for `patch.revert`.

        patch: The patch, from `*** Begin Patch` to `*** End Patch`.
        cwd: The directory from which its paths are meant, and the first root. Absolute. Default: that of the
            session; without one, paths must be absolute.
        check: Check the patch and change nothing.
        expect: The hash of files before the patch, by path: SHA-256 in hexadecimal digits, or `absent`. Another
            one is a `conflict`.
        request_id: The same id again returns the result of the first call.
        sandbox: The profile whose roots hold all files. Default: that of the session, or of the config. A person
            is asked for files outside.
        approval_timeout_ms: The time that a person has to decide, if one must be asked; 0 denies instead of asking. Default:
            `policy.approval_timeout_ms`.
        """
        ...
    def patch_revert(self, *, patch_id: str, request_id: Union[str, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, sandbox: Union[SandboxSetting, None] = None, approval_timeout_ms: Union[int, None] = None) -> PatchRevertResult:
        """Undo a patch.

        From the bytes that were kept when it was applied, for `patch.keep_ms`. A file that has changed since
        is a `conflict`, and nothing is done.

        patch_id: The patch, as `patch.apply` returned it.
        request_id: The same id again waits for the answer to the same question, if a person is asked.
        sandbox: The profile whose roots hold all files. Default: that of the session, or of the config. A person
            is asked for files outside.
        approval_timeout_ms: The time that a person has to decide, if one must be asked; 0 denies instead of asking. Default:
            `policy.approval_timeout_ms`.
        """
        ...
    def events_subscribe(self, *, types: Union[Sequence[EventType], None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, id: Union[Union[str, _client.Process], None] = None, after: Union[int, None] = None, output: bool = False, ansi: Union[Ansi, None] = None) -> _client.Subscription:
        """Push events as notifications `events.event`.

        Also output, with `output`. Returns the number of the subscription. `x-notifications` of this document
        describes the messages.

        types: Only these types. Default: all.
        id: Only events of this process.
        after: Replay the events after this number first. Default: only new events.
        output: Also push output as it is written. Pushes are not stored; the log is.
        """
        ...
    def events_unsubscribe(self, *, subscription: Union[int, _client.Subscription]) -> bool:
        """End a subscription.

        Returns false if the connection has no such subscription.

        subscription: The number that `events.subscribe` returned.
        """
        ...
    def events_next(self, *, consumer: str, types: Union[Sequence[EventType], None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, id: Union[Union[str, _client.Process], None] = None, limit: Union[int, None] = None, wait_ms: int = 0, from_: Union[ConsumerStart, None] = None) -> EventsNextResult:
        """Return the next events for a named consumer.

        An event comes again until it is acknowledged.

        consumer: The consumer's name. Its position is stored under it.
        limit: Default: 100.
        wait_ms: Wait up to this time for the first event.
        from_: The first event of the consumer if it is new. Default: `oldest`.
        """
        ...
    def events_ack(self, *, consumer: str, seq: int) -> EventsAckResult:
        """Acknowledge all events up to a number.

        Moves the durable position of the consumer. It never moves back.

        seq: Acknowledge all events up to this number.
        """
        ...
    def fs_read(self, *, path: str, cwd: Union[str, None] = None, offset: Union[int, None] = None, limit: Union[int, None] = None, encoding: Union[Encoding, None] = None, from_byte: Union[int, None] = None, sandbox: Union[SandboxSetting, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None) -> FsReadResult:
        """Read lines of a text file.

        Regular files only. A page that is longer than `fs.read_max_chars` is the error `limit`, which names a
        shorter one.

        path: A regular file. Absolute, or relative to `cwd`.
        cwd: The directory of a relative path. Absolute.
        offset: The first line, from 1 on. Default: 1.
        limit: Lines, at most 2000. Default: 500.
        encoding: `base64` gives the bytes of the lines unchanged.
        from_byte: The first byte, from 0 on, in place of lines. Only with `encoding: "base64"`; for binary files and
            very long lines.
        sandbox: The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        """
        ...
    def fs_write(self, *, path: str, cwd: Union[str, None] = None, content: Union[str, None] = None, content_base64: Union[str, None] = None, expect: Union[str, None] = None, mode: Union[str, None] = None, create_dirs: Union[bool, None] = None, hard_links: Union[HardLinks, None] = None, sandbox: Union[SandboxSetting, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, request_id: Union[str, None] = None, approval_timeout_ms: Union[int, None] = None) -> FsWriteResult:
        """Write a whole file.

        A temporary file takes the place of the old one, so a reader sees the old or the new content. Mode,
        owner and extended attributes are kept where the daemon may.

        path: A regular file, or a new name. Absolute, or relative to `cwd`. A link is followed.
        cwd: The directory of a relative path. Absolute.
        content: The new content as text. Either this or `content_base64`.
        expect: The sha256 that the file must have, or `absent`.
        mode: Permissions in octal: `644`. Default: those of the file.
        create_dirs: Create missing directories. Default: true.
        sandbox: The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        request_id: A call with the same key and the same change waits for the same approval.
        approval_timeout_ms: The time that a person has to decide, if the file is outside the roots. 0: deny instead of asking.
            Default: 600000.
        """
        ...
    def fs_edit(self, *, path: str, old: str, new: str, cwd: Union[str, None] = None, replace_all: bool = False, fuzzy: bool = False, expect: Union[str, None] = None, hard_links: Union[HardLinks, None] = None, sandbox: Union[SandboxSetting, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, request_id: Union[str, None] = None, approval_timeout_ms: Union[int, None] = None) -> FsEditResult:
        """Replace a text in a file.

        Tries strategies from the strictest on, and returns the name of the one that found it. Line ends, byte
        order mark and mode are kept.

        path: A regular text file. Absolute, or relative to `cwd`. A link is followed.
        old: The text to replace. Its line ends need not be those of the file.
        cwd: The directory of a relative path. Absolute.
        replace_all: Replace every match. Otherwise there must be exactly one.
        fuzzy: Accept a similar text too: strategies `block_anchor` and `similar_lines`.
        expect: The sha256 that the file must have.
        sandbox: The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        request_id: A call with the same key and the same change waits for the same approval.
        approval_timeout_ms: The time that a person has to decide, if the file is outside the roots. 0: deny instead of asking.
            Default: 600000.
        """
        ...
    def fs_list(self, *, path: str, cwd: Union[str, None] = None, depth: Union[int, None] = None, glob: Union[str, None] = None, hidden: bool = False, ignore: Union[bool, None] = None, limit: Union[int, None] = None, after: Union[Union[str, _client.Process], None] = None, sandbox: Union[SandboxSetting, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None) -> FsListResult:
        """List a directory.

        Entries come in the order of their names. Links are not followed.

        path: A directory. Absolute, or relative to `cwd`.
        cwd: The directory of a relative path. Absolute.
        depth: Levels of directories, at most 64. Default: 1.
        glob: Only names that match: `*.rs`; with a slash, paths below `path`: `src/**/*.rs`.
        hidden: Names that begin with a dot too.
        ignore: Leave out what ignore files name. Default: true.
        limit: Entries, at most 10000. Default: 1000.
        after: `next` of the page before.
        sandbox: The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        """
        ...
    def fs_search(self, *, pattern: str, path: str, cwd: Union[str, None] = None, glob: Union[str, None] = None, mode: Union[SearchMode, None] = None, context: Union[int, None] = None, limit: Union[int, None] = None, after: Union[Union[str, _client.Process], None] = None, offset: Union[int, None] = None, timeout_ms: Union[int, None] = None, hidden: bool = False, ignore: Union[bool, None] = None, sandbox: Union[SandboxSetting, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None) -> FsSearchResult:
        """Search files for a regular expression.

        Leaves out what ignore files name, hidden and binary files. After `timeout_ms` it returns what was
        found, with `complete` false.

        pattern: A regular expression of ripgrep, for one line.
        path: A directory or a file. Absolute, or relative to `cwd`.
        cwd: The directory of a relative path. Absolute.
        glob: Only files whose path matches, as `rg --glob`: `*.rs`, `!target`.
        context: Lines before and after each match, at most 20. Default: 0.
        limit: Results, at most 10000. Default: 50.
        after: `next` of the page before.
        offset: Results that are left out first. With `limit` at most 10000; `after` reaches further. Default: 0.
        timeout_ms: Answer after this time with what was found. Default: 10000.
        hidden: Files whose name begins with a dot too.
        ignore: Leave out what ignore files name. Default: true.
        sandbox: The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        """
        ...
    def tools_list(self, *, provider: Union[str, None] = None, effect: Union[Effect, None] = None, query: Union[str, None] = None, detail: Union[ToolsDetail, None] = None, session_key: Union[str, None] = None, toolset: Union[Toolset, None] = None, format: Union[ToolsFormat, None] = None) -> ToolsListResult:
        """List tools.

        Only what the session may call. `full` has schemas and the signatures for scripts; another `format` is
        ready for the API of a model.

        provider: Only tools of this provider: `native`, a client's or an MCP server's.
        effect: Only tools with this effect.
        query: Only tools whose name or description has all of these terms, in any case.
        detail: The detail of `tools`. Other formats are always full.
        session_key: The session that calls. Only tools that it may call are listed.
        """
        ...
    def tools_call(self, *, name: str, args: Union[Mapping[str, Any], None] = None, timeout_ms: Union[int, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, cwd: Union[str, None] = None, request_id: Union[str, None] = None, toolset: Union[Toolset, None] = None) -> ToolsCallResult:
        """Call a tool.

        Wrong arguments are `invalid_params`, with the place as a JSON pointer in `data.pointer`.
        `$/cancelRequest` ends the call. After `outcome_unknown` it may have happened; nothing repeats it.

        name: As `tools.list` has it: `terminal`, `linear.create_issue`.
        args: Checked against the tool's `input_schema`.
        timeout_ms: The time that the call may take. Default: that of the tool, or `script.call_timeout_ms`.
        cwd: The directory of relative paths in `args`. Absolute.
        request_id: The same id again returns the same result, and nothing is done twice.
        toolset: The toolset of `name`. The result of `codex` is a text and that of `hermes` an object, in the form
            that their models know, also for a call that failed. An error of the call itself has that form in
            `data.text`.
        """
        ...
    def tools_register(self, *, provider: str, tools: Sequence[ToolDefinition], session_key: Union[str, None] = None, reconnect_ms: Union[int, None] = None, takeover: bool = False, invoke: Callable[[ToolCall], Any]) -> ToolsRegisterResult:
        """Offer tools on this connection.

        The daemon sends `tools.invoke` for each call (see `x-notifications`), and `$/cancelRequest`. Needs a
        connection that can be pushed to. A provider that is lost has `reconnect_ms` to register again; its
        tools stay listed as `unavailable`. A name that another connection serves is `already_exists`, with
        that client in `data.client`; `takeover` replaces it. Not from inside a job.

        provider: `[a-z][a-z0-9_]*`. The tools are `provider.name`.
        tools: All tools of the provider. They replace those of an earlier registration.
        session_key: Only this session may call them. Default: all.
        reconnect_ms: The time that calls wait for a connection that was lost. Default: 5000.
        takeover: Replace another live connection that has the name.
        """
        ...
    def tools_unregister(self, *, provider: str) -> ToolsUnregisterResult:
        """Withdraw the tools of a provider.

        Calls in flight end as if its connection were lost. Only the connection that offers them may do it, or
        any if that has ended.
        """
        ...
    def tools_refresh(self, *, provider: str) -> ToolsRefreshResult:
        """List the tools of an MCP server again.

        Starts the server if it does not run. A server that reports a change is asked by itself.

        provider: An MCP server.
        """
        ...
    def script_run(self, *, code: Union[str, None] = None, file: Union[str, None] = None, language: Union[Language, None] = None, argv: Union[Sequence[str], None] = None, tools: Union[Sequence[str], None] = None, args: Any = None, cwd: Union[str, None] = None, env: Union[Mapping[str, str], None] = None, env_mode: Union[EnvMode, None] = None, sandbox: Union[SandboxSetting, None] = None, limits: Union[Limits, None] = None, timeout_ms: Union[int, None] = None, call_timeout_ms: Union[int, None] = None, max_calls: Union[int, None] = None, max_parallel: Union[int, None] = None, yield_ms: Union[int, None] = None, max_output_bytes: Union[int, None] = None, max_stderr_bytes: Union[int, None] = None, redact: Union[bool, None] = None, name: Union[str, None] = None, task_id: Union[str, None] = None, session_key: Union[str, None] = None, labels: Union[Mapping[str, str], None] = None, notify: bool = False, watch: Union[Sequence[Pattern], None] = None, backend: Union[str, None] = None, request_id: Union[str, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> ScriptRunResult:
        """Run a script that calls tools.

        It is a process: `poll`, `log`, `wait`, `kill` work on it. Answers when it has ended, or when
        `yield_ms` is over; it runs on then.

        code: The text of the script. Either this or `file` or `argv`.
        file: The file of the script, absolute or from `cwd`.
        language: Default: `python`, or that of the ending of `file`.
        argv: Any program, in place of an interpreter: it finds the channel in its environment.
        tools: The tools that it may call. Default: `script.tools` of the config. An empty list: none.
        args: A value for the script.
        cwd: Absolute. Default: that of the session, else the home directory.
        env: Variables that override all others. Values are in memory only.
        timeout_ms: Kill the script after this time, also without a daemon. 0: never. Default: 300000.
        call_timeout_ms: The time of one call, unless the call has its own. Default: 300000.
        max_calls: The most calls. Default: 500.
        max_parallel: The most calls at the same time; others wait. Default: 16.
        yield_ms: Wait up to this time for the end before answering. Default: 60000.
        max_output_bytes: The most bytes of `output`. Default: 50000.
        max_stderr_bytes: The most bytes of `stderr`. Default: 10000.
        redact: Hide secrets in the result. Default: true.
        notify: Publish a `completion` event.
        backend: The backend that runs it. Default: `local`.
        request_id: The same key again returns the same script, and starts nothing.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def script_result(self, *, id: Union[str, _client.Process], wait_ms: int = 0, cell: Union[int, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> ScriptRunResult:
        """Return the result of a script.

        Any number of times, also after its end and after a restart of the daemon. Consumes nothing.

        wait_ms: Wait up to this time for the end.
        cell: The cell of a kernel. Default: the last one.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def script_calls(self, *, id: Union[str, _client.Process], after: Union[Union[str, _client.Process], None] = None, limit: Union[int, None] = None, detail: Union[CallDetail, None] = None, cell: Union[int, None] = None) -> ScriptCallsResult:
        """List the calls of a script.

        The oldest first, from its journal; also after its end and after a restart of the daemon.

        after: Only calls after this one.
        limit: Default: 200.
        cell: Only those of this cell of a kernel.
        """
        ...
    def script_cancel(self, *, id: Union[str, _client.Process], call: Union[str, None] = None) -> ScriptCancelResult:
        """Cancel a script, or one of its calls.

        Ends the authority of the script, then its calls, then its tree, then answers.

        call: Only this call. Default: the script with all of its calls.
        """
        ...
    def kernel_open(self, *, language: Union[Language, None] = None, tools: Union[Sequence[str], None] = None, args: Any = None, cwd: Union[str, None] = None, env: Union[Mapping[str, str], None] = None, env_mode: Union[EnvMode, None] = None, sandbox: Union[SandboxSetting, None] = None, limits: Union[Limits, None] = None, timeout_ms: Union[int, None] = None, idle_ms: Union[int, None] = None, call_timeout_ms: Union[int, None] = None, max_calls: Union[int, None] = None, max_parallel: Union[int, None] = None, max_output_bytes: Union[int, None] = None, max_stderr_bytes: Union[int, None] = None, redact: Union[bool, None] = None, name: Union[str, None] = None, task_id: Union[str, None] = None, session_key: Union[str, None] = None, labels: Union[Mapping[str, str], None] = None, notify: bool = False, watch: Union[Sequence[Pattern], None] = None, backend: Union[str, None] = None, request_id: Union[str, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _client.Process:
        """Start a kernel: an interpreter that keeps its state and runs cells.

        It is a process, and a script: `poll`, `log`, `kill` and `script.calls` work on it. It ends after
        `idle_ms` without a cell.

        language: `python` or `javascript`. Default: `python`.
        tools: The tools that its cells may call. Default: `script.tools` of the config. An empty list: none.
        args: A value for the cells.
        cwd: Absolute. Default: that of the session, else the home directory.
        env: Variables that override all others. Values are in memory only.
        timeout_ms: Kill the kernel after this time, also without a daemon. Default and 0: never.
        idle_ms: End the kernel after this time without a cell. 0: never. Default: `kernel.idle_ms` of the config.
        call_timeout_ms: The time of one call, unless the call has its own. Default: 300000.
        max_calls: The most calls of a cell that names no number. Default: 500.
        max_parallel: The most calls at the same time; others wait. Default: 16.
        max_output_bytes: The most bytes of `output` of a cell. Default: 50000.
        max_stderr_bytes: The most bytes of `stderr` of a cell. Default: 10000.
        redact: Hide secrets in the results of cells. Default: true.
        notify: Publish a `completion` event when the kernel ends.
        backend: The backend that runs it. Default: `local`.
        request_id: The same key again returns the same kernel, and starts nothing.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def kernel_run(self, *, code: str, id: Union[Union[str, _client.Process], None] = None, name: Union[str, None] = None, timeout_ms: Union[int, None] = None, yield_ms: Union[int, None] = None, max_calls: Union[int, None] = None, if_busy: Union[IfBusy, None] = None, request_id: Union[str, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> ScriptRunResult:
        """Run a cell in a kernel.

        Answers at its end, or when `yield_ms` is over; it runs on then, and `script.result` has it. `value`
        is the text of its last expression; its output is the range `from` to `to` of the log. After
        `timeout_ms` it is interrupted as by `kernel.interrupt`.

        id: The kernel. Either this or `name`.
        timeout_ms: Interrupt the cell after this time; it is counted from its begin. 0: never. Default: 300000.
        yield_ms: Wait up to this time for the end of the cell before answering. Default: 60000.
        max_calls: The most calls of the cell. Default: that of the kernel.
        request_id: The same key again returns the same cell, and runs nothing.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    def kernel_interrupt(self, *, id: Union[Union[str, _client.Process], None] = None, name: Union[str, None] = None, grace_ms: Union[int, None] = None) -> KernelInterruptResult:
        """Interrupt the cell that runs.

        SIGINT to the group of the interpreter, as Ctrl-C in a terminal. A kernel whose cell goes on for
        `grace_ms` is killed.

        id: The kernel. Either this or `name`.
        grace_ms: Kill the kernel if the cell has not ended after this time. Default: 2000.
        """
        ...
    def kernel_reset(self, *, id: Union[Union[str, _client.Process], None] = None, name: Union[str, None] = None, grace_ms: Union[int, None] = None) -> KernelResetResult:
        """Give a kernel a new interpreter.

        Its id and its log stay, its state is gone. A cell that runs is interrupted, cells that wait do not
        run.

        id: The kernel. Either this or `name`.
        grace_ms: The time in which a running cell ends by itself when it is interrupted. Default: 2000.
        """
        ...
    def kernel_close(self, *, id: Union[Union[str, _client.Process], None] = None, name: Union[str, None] = None, grace_ms: Union[int, None] = None) -> KernelCloseResult:
        """End a kernel.

        Its authority ends, then its calls, then its tree.

        id: The kernel. Either this or `name`.
        grace_ms: The time between SIGTERM and SIGKILL. Default: 5000.
        """
        ...
    def sandbox_probe(self) -> SandboxProbeResult:
        """Check the sandbox of this machine.

        Tries forbidden acts in a confined process, under each mechanism, and returns what was seen.
        `daemon.info` has the last result.
        """
        ...
    def daemon_info(self) -> DaemonInfoResult:
        """Return the state of the daemon.

        Its version, counts, limits and paths, and the features of this system.
        """
        ...
    def daemon_shutdown(self, *, kill: bool = False) -> ShutdownResult:
        """Stop the daemon.

        Processes keep running, unless `kill` is true.

        kill: Also kill all processes.
        """
        ...
    def rpc_discover(self) -> Any:
        """Return the OpenRPC document of all methods and events.

        The same document as `proto/openrpc.json` of this version. The example is shortened.
        """
        ...

class AsyncMethods:
    async def exec(self, command: Union[str, Sequence[str], None] = None, *, argv: Union[Sequence[str], None] = None, cwd: Union[str, None] = None, env: Union[Mapping[str, str], None] = None, env_base64: Union[Mapping[str, str], None] = None, env_mode: Union[EnvMode, None] = None, shell: Union[str, None] = None, login: Union[bool, None] = None, pty: Union[Pty, None] = None, stdin: Union[StdinMode, None] = None, merge: bool = False, hold: bool = False, timeout_ms: Union[int, None] = None, yield_ms: int = 0, max_output_tokens: Union[int, None] = None, tail_lines: Union[int, None] = None, collapse: Union[bool, None] = None, name: Union[str, None] = None, task_id: Union[str, None] = None, session_key: Union[str, None] = None, labels: Union[Mapping[str, str], None] = None, notify: bool = False, watch: Union[Sequence[Pattern], None] = None, limits: Union[Limits, None] = None, require_limits: bool = False, backend: Union[str, None] = None, request_id: Union[str, None] = None, if_running: Union[IfRunning, None] = None, restart: Union[RestartSetting, None] = None, ready: Union[Until, None] = None, ready_timeout_ms: Union[int, None] = None, heartbeat_ms: Union[int, None] = None, queue: Union[str, None] = None, after: Union[Sequence[Union[str, _aio.AsyncProcess]], None] = None, after_ok: Union[bool, None] = None, sandbox: Union[SandboxSetting, None] = None, consumer: Union[str, None] = None, escalate: Union[Escalate, None] = None, approval_timeout_ms: Union[int, None] = None, stage: bool = False, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _aio.AsyncProcess:
        """Start a process.

        Answers when the program runs; with `yield_ms`, when it has exited or the time is over.

        command: Shell text. Either this or `argv`.
        argv: The program and its arguments.
        cwd: Absolute. Default: the home directory.
        env: Variables that override all others. Values are in memory only: on no disk, in no log and in no
            answer.
        env_base64: Variables like `env`, with their values in base64: for values that are not UTF-8. A name is in one
            of the two.
        shell: The shell that runs `command`. Default: the user's.
        login: Run a login shell. Default: true.
        pty: Run in a terminal: true, or its size.
        merge: Let stdout and stderr share one pipe, so that their order is exact. All of it is then `stdout`.
        hold: Keep output beyond the cap for this connection until it has read it: the program is held back
            instead, like a writer to a full pipe. Ends with the connection.
        timeout_ms: Kill the process after this time. Default: never.
        yield_ms: Wait up to this time for the exit before answering.
        max_output_tokens: Maximum output in the result, at about 4 bytes per token. Default: 10000.
        tail_lines: Only the last lines of the output.
        collapse: Show a line that was redrawn with a carriage return as it stood last. Default: true for text
            without escape sequences.
        name: A name, unique among running processes. It must not begin with `proc_` or `@`.
        notify: Publish a `completion` event.
        watch: Publish `watch_match` events for lines that match one of these.
        require_limits: Refuse the start with `unavailable` if one of `limits` cannot be enforced here. Default: start,
            and report it in `limits`.
        backend: The backend that runs it. Default: `local`.
        request_id: Idempotency key: a call with the same key returns the same process and starts nothing. With
            another command, directory, names in `env`, `limits`, `backend` or `name` it fails with
            `conflict`.
        if_running: Action if a process of this `name` is running. Default: `error`, which fails with
            `already_exists`.
        restart: Start it again after it ended: `no`, `on-failure`, `always`, or a policy with its numbers.
            Default: `no`.
        ready: Answer when this condition holds (`{match}`, `{port}` or `{quiet_ms}`), when the process exits, or
            after `ready_timeout_ms`.
        ready_timeout_ms: Maximum wait for `ready`. Default: 60000.
        heartbeat_ms: Publish a `heartbeat` event if there is new output, at most once in this time. At least 60000.
        queue: Start when this queue has a free slot, in the order of the calls. One that is not configured has 1
            slot.
        after: Start when these processes have ended: ids or names.
        after_ok: The processes in `after` must exit with code 0; if one does not, this one ends with reason
            `dependency`. Default: true.
        sandbox: The confinement: the name of a profile, or an object with its keys. Default: `policy.default` of
            the config.
        consumer: An exit that this call returns is acknowledged for this consumer.
        escalate: Ask a person to run it under a wider profile.
        approval_timeout_ms: The time that a person has to decide, if someone must be asked. 0: deny instead of asking.
            Default: 600000.
        stage: Run on an overlay: nothing below it changes until `stage.commit`. Refused with `unavailable` if
            the file system cannot carry one.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def poll(self, *, id: Union[str, _aio.AsyncProcess], cursor: Union[int, None] = None, max_bytes: Union[int, None] = None, wait_ms: int = 0, stream: Union[Stream, None] = None, ansi: Union[Ansi, None] = None, encoding: Union[Encoding, None] = None, tail_lines: Union[int, None] = None, collapse: Union[bool, None] = None, spans: bool = False, hold: bool = False, redact: bool = False, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _aio.AsyncProcess:
        """Return a process and its output from a cursor on.

        Consumes nothing. With `wait_ms` it waits for new output, the exit or the end of the output.

        cursor: Position to read from. Default: the last 1000 characters.
        max_bytes: Default: 65536.
        wait_ms: Wait up to this time for new output, the exit or the end of the output.
        tail_lines: Only the last lines of the output.
        collapse: Show a line that was redrawn with a carriage return as it stood last. Default: true for text
            without escape sequences.
        spans: Also return the ranges of bytes that came from each stream.
        hold: Take the hold of a process that was started with `hold`, for this connection: after a lost
            connection.
        redact: Hide secrets in the output: values that the process was given, known shapes, dumps of
            environments.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def log(self, *, id: Union[Union[str, _aio.AsyncProcess], None] = None, ids: Union[Sequence[Union[str, _aio.AsyncProcess]], None] = None, offset: Union[int, None] = None, limit: Union[int, None] = None, stream: Union[Stream, None] = None, grep: Union[str, None] = None, ansi: Union[Ansi, None] = None, tail_lines: Union[int, None] = None, collapse: Union[bool, None] = None, redact: bool = False) -> LogResult:
        """Return the output by line.

        Without `offset` these are the last lines. With `grep` only lines that match.

        id: The process. Without it: a search of several logs, which needs `grep`.
        ids: The processes whose logs are searched. Default without `id`: all, also those that have ended.
        offset: The first line to show, from 0. Default: the last lines. Only with `id`.
        limit: The most lines. Default: 200.
        grep: Only lines that match this regular expression.
        tail_lines: Only the last lines of the output. Only with `id`.
        collapse: Show a line that was redrawn with a carriage return as it stood last. Default: true for text
            without escape sequences.
        redact: Hide secrets in the output: values that the process was given, known shapes, dumps of
            environments.
        """
        ...
    async def wait(self, *, id: Union[Union[str, _aio.AsyncProcess], None] = None, ids: Union[Sequence[Union[str, _aio.AsyncProcess]], None] = None, session_key: Union[str, None] = None, mode: Union[WaitMode, None] = None, until: Union[Until, None] = None, or_input: bool = False, timeout_ms: Union[int, None] = None, tail_lines: Union[int, None] = None, collapse: Union[bool, None] = None, consumer: Union[str, None] = None, redact: bool = False, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> WaitResult:
        """Wait until processes exit, close their output, print a match or wait for input.

        After a timeout they keep running. What was printed before the call matches too.

        session_key: Instead of ids: all processes of this session that run now. If there is none, the answer comes at
            once.
        or_input: Also answer, with `status: "input"`, when one of the processes waits for input.
        timeout_ms: Default: 180000.
        tail_lines: Only the last lines of the output.
        collapse: Show a line that was redrawn with a carriage return as it stood last. Default: true for text
            without escape sequences.
        consumer: Exits that this call returns are acknowledged for this consumer.
        redact: Hide secrets in the output: values that the process was given, known shapes, dumps of
            environments.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def kill(self, *, id: Union[Union[str, _aio.AsyncProcess], None] = None, ids: Union[Sequence[Union[str, _aio.AsyncProcess]], None] = None, task_id: Union[str, None] = None, session_key: Union[str, None] = None, label: Union[str, None] = None, name: Union[str, None] = None, all: Union[bool, None] = None, signal: Union[str, None] = None, grace_ms: Union[int, None] = None) -> KillResult:
        """Kill whole process trees.

        Answers when it is verified that no process of them is left, or with the survivors.

        label: Those with this label: `key` or `key=value`.
        name: Those whose name matches this pattern; `*` is any text, `?` any character.
        signal: The first signal. Default: SIGTERM.
        grace_ms: Time before SIGKILL. Default: 5000.
        """
        ...
    async def signal(self, *, id: Union[str, _aio.AsyncProcess], signal: str) -> SignalResult:
        """Send one signal to the process group.

        Does nothing else: it neither waits nor kills what is left.
        """
        ...
    async def restart(self, *, id: Union[str, _aio.AsyncProcess], env: Union[Mapping[str, str], None] = None, env_base64: Union[Mapping[str, str], None] = None, grace_ms: Union[int, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _aio.AsyncProcess:
        """Start a process again.

        The same program, arguments, directory, name and limits, after its old tree is proven to be gone; the
        new run has an id of its own. If the program or the directory is gone, the old process keeps running.
        Environment values come from `env`, or from the shim while it lives.

        env: The whole environment of the new run. Default: that of the old one, which its shim keeps while it
            lives.
        env_base64: Variables like `env`, with their values in base64: for values that are not UTF-8.
        grace_ms: Time before SIGKILL. Default: 5000.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def pause(self, *, id: Union[str, _aio.AsyncProcess], fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _aio.AsyncProcess:
        """Stop a process and all of its descendants.

        Sends SIGSTOP, and answers when all have stopped, or after 3 seconds with `stopped` false.

        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def resume(self, *, id: Union[str, _aio.AsyncProcess], fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _aio.AsyncProcess:
        """Continue a process and all of its descendants.

        Sends SIGCONT. A process that is not stopped goes on as before.

        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def write(self, *, id: Union[str, _aio.AsyncProcess], data: Union[str, None] = None, data_base64: Union[str, None] = None, keys: Union[Sequence[Key], None] = None, secret: bool = False, write_id: Union[str, None] = None, timeout_ms: Union[int, None] = None) -> WriteResult:
        """Write bytes to stdin, unchanged, or type keys.

        Answers when the program has taken them all, or with the number that it took within `timeout_ms`.

        keys: Keys to type instead of `data`, in order: names as `Up`, `C-c` and `Enter`, text, or `{text}`.
            Only for `write`.
        secret: Keep it out of events, logs and files. On a terminal, wait until it does not show what is typed.
        write_id: Idempotency key: a write with the same key is acknowledged and not repeated. The last 4096 keys of
            a process are remembered; the result has the number in `remembered_write_ids`.
        timeout_ms: Maximum wait for the program to read. Default: 5000.
        """
        ...
    async def submit(self, *, id: Union[str, _aio.AsyncProcess], data: Union[str, None] = None, data_base64: Union[str, None] = None, keys: Union[Sequence[Key], None] = None, secret: bool = False, write_id: Union[str, None] = None, timeout_ms: Union[int, None] = None) -> WriteResult:
        """Write bytes and a newline to stdin.

        Otherwise like `write`.

        keys: Keys to type instead of `data`, in order: names as `Up`, `C-c` and `Enter`, text, or `{text}`.
            Only for `write`.
        secret: Keep it out of events, logs and files. On a terminal, wait until it does not show what is typed.
        write_id: Idempotency key: a write with the same key is acknowledged and not repeated. The last 4096 keys of
            a process are remembered; the result has the number in `remembered_write_ids`.
        timeout_ms: Maximum wait for the program to read. Default: 5000.
        """
        ...
    async def close(self, *, id: Union[str, _aio.AsyncProcess]) -> CloseResult:
        """Close stdin.

        Closes the pipe, or types end-of-file into the terminal.
        """
        ...
    async def screen(self, *, id: Union[str, _aio.AsyncProcess]) -> ScreenResult:
        """Return the screen of a process's terminal as text.

        The screen stays after the exit. Only for processes that were started with `pty`.
        """
        ...
    async def resize(self, *, id: Union[str, _aio.AsyncProcess], rows: int, cols: int) -> ResizeResult:
        """Set the size of a process's terminal.

        Only for processes that were started with `pty`.
        """
        ...
    async def list(self, *, task_id: Union[str, None] = None, session_key: Union[str, None] = None, status: Union[Status, None] = None, reason: Union[Reason, None] = None, stopped: Union[bool, None] = None, label: Union[str, None] = None, name: Union[str, None] = None, ended_within_ms: Union[int, None] = None, failed: bool = False, usage: bool = False, limit: Union[int, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> ListResult:
        """List processes, newest first.

        The filters select those for which all of them hold. `total` counts all that were selected.

        reason: Only processes that ended for this reason.
        stopped: Only processes that are stopped, or that are not.
        label: `key` or `key=value`.
        name: The name; `*` stands for any text, `?` for any character.
        ended_within_ms: Leave out processes that ended longer ago than this. `older` counts them.
        failed: Only processes that failed: lost, not started, ended by a signal, a limit or a timeout, or with a
            code other than 0. One that a client killed has not failed.
        usage: Also return the resources that each running tree uses, and the ports on which it listens.
        limit: Default: 200.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def inspect(self, *, id: Union[str, _aio.AsyncProcess], fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _aio.AsyncProcess:
        """Return a process with its tree.

        Also its files, the names of its environment variables and the resources that it uses.

        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def forget(self, *, ids: Union[Sequence[Union[str, _aio.AsyncProcess]], None] = None, older_than_ms: Union[int, None] = None, failed: bool = False) -> ForgetResult:
        """Remove the records and logs of finished processes.

        Processes that still run are skipped.

        older_than_ms: All processes that ended at least this long ago.
        failed: All that failed, as `list` selects them; with `older_than_ms` those that are as old too.
        """
        ...
    async def stage_diff(self, *, id: Union[str, _aio.AsyncProcess]) -> StageDiffResult:
        """Return the changes of a staged process, with a diff.

        While it runs they are those so far, without a digest.
        """
        ...
    async def stage_commit(self, *, id: Union[str, _aio.AsyncProcess], digest: str, paths: Union[Sequence[str], None] = None) -> StageCommitResult:
        """Make the changes of a staged process below its overlay.

        All of them or none, also over a crash. Fails with `conflict` if the digest is not that of the
        changes, and names the files that were changed below meanwhile.

        digest: The digest of the changes, from `stage.diff`.
        paths: Only the changes at and below these paths, absolute or from the working directory. Default: all.
        """
        ...
    async def stage_discard(self, *, id: Union[str, _aio.AsyncProcess]) -> StageDiscardResult:
        """Remove the changes of a staged process.

        Nothing below its overlay changes.
        """
        ...
    async def session_active(self, *, session_key: Union[str, None] = None, task_id: Union[str, None] = None) -> SessionActiveResult:
        """List the processes that a session or task still runs.

        Give `session_key` or `task_id`.
        """
        ...
    async def session_end(self, *, session_key: str) -> SessionEndResult:
        """Kill the processes that a session still runs.

        Returns what was killed. Their completions are marked `cancelled` and not pushed.
        """
        ...
    async def session_configure(self, *, session_key: str, cwd: Union[str, None] = None, sandbox: Union[SandboxSetting, None] = None, approval: Union[ApprovalPolicy, None] = None, roots: Union[Sequence[str], None] = None, env_pass: Union[Sequence[str], None] = None) -> SessionGetResult:
        """Set the defaults of a session, and its ceiling.

        Durable. Replaces what an earlier call set and keeps the grants; nothing but `session_key` removes the
        settings. `sandbox` and `roots` must not be wider than `policy.max`.

        cwd: The working directory of calls without one. Absolute.
        sandbox: The profile of calls without one, and the widest of the session.
        approval: The cases in which a person is asked. Default: `policy.approval` of the config.
        roots: Directories that its processes may write in, beside their working directory. Absolute.
        env_pass: Names of variables that a clean environment also has.
        """
        ...
    async def session_get(self, *, session_key: str) -> SessionGetResult:
        """Return the settings of a session.

        With its processes that run, its grants and its questions that wait.
        """
        ...
    async def policy_check(self, *, command: Union[str, None] = None, argv: Union[Sequence[str], None] = None, cwd: Union[str, None] = None, env: Union[Mapping[str, str], None] = None, env_base64: Union[Mapping[str, str], None] = None, env_mode: Union[EnvMode, None] = None, shell: Union[str, None] = None, login: Union[bool, None] = None, pty: Union[Pty, None] = None, stdin: Union[StdinMode, None] = None, merge: bool = False, hold: bool = False, timeout_ms: Union[int, None] = None, yield_ms: int = 0, max_output_tokens: Union[int, None] = None, tail_lines: Union[int, None] = None, collapse: Union[bool, None] = None, name: Union[str, None] = None, task_id: Union[str, None] = None, session_key: Union[str, None] = None, labels: Union[Mapping[str, str], None] = None, notify: bool = False, watch: Union[Sequence[Pattern], None] = None, limits: Union[Limits, None] = None, require_limits: bool = False, backend: Union[str, None] = None, request_id: Union[str, None] = None, if_running: Union[IfRunning, None] = None, restart: Union[RestartSetting, None] = None, ready: Union[Until, None] = None, ready_timeout_ms: Union[int, None] = None, heartbeat_ms: Union[int, None] = None, queue: Union[str, None] = None, after: Union[Sequence[Union[str, _aio.AsyncProcess]], None] = None, after_ok: Union[bool, None] = None, sandbox: Union[SandboxSetting, None] = None, consumer: Union[str, None] = None, escalate: Union[Escalate, None] = None, approval_timeout_ms: Union[int, None] = None, stage: bool = False, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> PolicyCheckResult:
        """Judge a call as `exec` would, and run nothing.

        Takes the parameters of `exec`. No event is published.

        command: Shell text. Either this or `argv`.
        argv: The program and its arguments.
        cwd: Absolute. Default: the home directory.
        env: Variables that override all others. Values are in memory only: on no disk, in no log and in no
            answer.
        env_base64: Variables like `env`, with their values in base64: for values that are not UTF-8. A name is in one
            of the two.
        shell: The shell that runs `command`. Default: the user's.
        login: Run a login shell. Default: true.
        pty: Run in a terminal: true, or its size.
        merge: Let stdout and stderr share one pipe, so that their order is exact. All of it is then `stdout`.
        hold: Keep output beyond the cap for this connection until it has read it: the program is held back
            instead, like a writer to a full pipe. Ends with the connection.
        timeout_ms: Kill the process after this time. Default: never.
        yield_ms: Wait up to this time for the exit before answering.
        max_output_tokens: Maximum output in the result, at about 4 bytes per token. Default: 10000.
        tail_lines: Only the last lines of the output.
        collapse: Show a line that was redrawn with a carriage return as it stood last. Default: true for text
            without escape sequences.
        name: A name, unique among running processes. It must not begin with `proc_` or `@`.
        notify: Publish a `completion` event.
        watch: Publish `watch_match` events for lines that match one of these.
        require_limits: Refuse the start with `unavailable` if one of `limits` cannot be enforced here. Default: start,
            and report it in `limits`.
        backend: The backend that runs it. Default: `local`.
        request_id: Idempotency key: a call with the same key returns the same process and starts nothing. With
            another command, directory, names in `env`, `limits`, `backend` or `name` it fails with
            `conflict`.
        if_running: Action if a process of this `name` is running. Default: `error`, which fails with
            `already_exists`.
        restart: Start it again after it ended: `no`, `on-failure`, `always`, or a policy with its numbers.
            Default: `no`.
        ready: Answer when this condition holds (`{match}`, `{port}` or `{quiet_ms}`), when the process exits, or
            after `ready_timeout_ms`.
        ready_timeout_ms: Maximum wait for `ready`. Default: 60000.
        heartbeat_ms: Publish a `heartbeat` event if there is new output, at most once in this time. At least 60000.
        queue: Start when this queue has a free slot, in the order of the calls. One that is not configured has 1
            slot.
        after: Start when these processes have ended: ids or names.
        after_ok: The processes in `after` must exit with code 0; if one does not, this one ends with reason
            `dependency`. Default: true.
        sandbox: The confinement: the name of a profile, or an object with its keys. Default: `policy.default` of
            the config.
        consumer: An exit that this call returns is acknowledged for this consumer.
        escalate: Ask a person to run it under a wider profile.
        approval_timeout_ms: The time that a person has to decide, if someone must be asked. 0: deny instead of asking.
            Default: 600000.
        stage: Run on an overlay: nothing below it changes until `stage.commit`. Refused with `unavailable` if
            the file system cannot carry one.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def policy_reload(self) -> PolicyReloadResult:
        """Read the rule files again.

        If one is refused, the old rules stay; `data` has its `file`, `index` and `example`.
        """
        ...
    async def policy_suggest(self, *, id: Union[str, _aio.AsyncProcess]) -> PolicySuggestResult:
        """Suggest a profile and rules for what a process was refused.

        From the calls that its sandbox refused. Writes nothing.
        """
        ...
    async def queues_list(self) -> QueuesListResult:
        """List the queues.

        With their slots, and how many of their processes run and wait.
        """
        ...
    async def queues_set(self, *, name: str, slots: Union[int, None] = None, paused: Union[bool, None] = None) -> Queue:
        """Set the slots of a queue, pause or resume it.

        Durable, and stronger than the config.

        name: The queue. A new name makes a new queue.
        slots: Number of its processes that run at the same time, at least 1.
        paused: True: no process is started from it.
        """
        ...
    async def approvals_list(self, *, state: Union[ListedState, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, limit: Union[int, None] = None) -> ApprovalsListResult:
        """List the approvals, oldest first.

        Questions that wait for a person, unless `state` asks for others.

        limit: Default: 200.
        """
        ...
    async def approvals_get(self, *, id: Union[str, _aio.AsyncProcess]) -> Approval:
        """Return one approval.

        Also one that was decided.
        """
        ...
    async def approvals_decide(self, *, id: Union[str, _aio.AsyncProcess], decision: Decision, digest: str, scope: Union[Scope, None] = None, grant: Union[GrantTerms, None] = None, message: Union[str, None] = None) -> ApprovalsDecideResult:
        """Decide an approval.

        The first decision wins; another gets `already_decided`. `digest` is that of the action that the
        person saw. Scope `session` makes a grant for the same argv, directory and profile, `always` a rule.
        `abort` denies, and withdraws everything else pending of the task. Not from inside a job.

        digest: The digest of the action that the person saw.
        grant: The terms of the grant, with scope `session` or `script`.
        message: A message for the caller that asked.
        """
        ...
    async def grants_list(self, *, session_key: Union[str, None] = None, all: bool = False) -> GrantsListResult:
        """List the grants, oldest first.

        What persons allowed for the rest of a session.

        all: Also those that are revoked or over.
        """
        ...
    async def grants_revoke(self, *, id: Union[Union[str, _aio.AsyncProcess], None] = None, session_key: Union[str, None] = None, kill: bool = False) -> GrantsRevokeResult:
        """Revoke a grant, or all of a session.

        Later uses are stopped. Lists what still runs under them, and kills it with `kill`. Not from inside a
        job.

        id: One grant. Either this or `session_key`.
        session_key: All grants of a session.
        kill: Also kill what still runs under them.
        """
        ...
    async def patch_apply(self, *, patch: str, cwd: Union[str, None] = None, mode: Union[PatchMode, None] = None, check: bool = False, expect: Union[Mapping[str, str], None] = None, hard_links: Union[HardLinks, None] = None, request_id: Union[str, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, sandbox: Union[SandboxSetting, None] = None, approval_timeout_ms: Union[int, None] = None) -> PatchResult:
        """Apply a patch to files: all of it, or nothing.

        The patch has the form of `apply_patch`: `*** Begin Patch`, then `*** Add File: p`, `*** Delete File:
        p` or `*** Update File: p` with chunks, then `*** End Patch`. It is verified first; an error names the
        line. Old bytes are kept for `patch.revert`.

        patch: The patch, from `*** Begin Patch` to `*** End Patch`.
        cwd: The directory from which its paths are meant, and the first root. Absolute. Default: that of the
            session; without one, paths must be absolute.
        check: Check the patch and change nothing.
        expect: The hash of files before the patch, by path: SHA-256 in hexadecimal digits, or `absent`. Another
            one is a `conflict`.
        request_id: The same id again returns the result of the first call.
        sandbox: The profile whose roots hold all files. Default: that of the session, or of the config. A person
            is asked for files outside.
        approval_timeout_ms: The time that a person has to decide, if one must be asked; 0 denies instead of asking. Default:
            `policy.approval_timeout_ms`.
        """
        ...
    async def patch_revert(self, *, patch_id: str, request_id: Union[str, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, sandbox: Union[SandboxSetting, None] = None, approval_timeout_ms: Union[int, None] = None) -> PatchRevertResult:
        """Undo a patch.

        From the bytes that were kept when it was applied, for `patch.keep_ms`. A file that has changed since
        is a `conflict`, and nothing is done.

        patch_id: The patch, as `patch.apply` returned it.
        request_id: The same id again waits for the answer to the same question, if a person is asked.
        sandbox: The profile whose roots hold all files. Default: that of the session, or of the config. A person
            is asked for files outside.
        approval_timeout_ms: The time that a person has to decide, if one must be asked; 0 denies instead of asking. Default:
            `policy.approval_timeout_ms`.
        """
        ...
    async def events_subscribe(self, *, types: Union[Sequence[EventType], None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, id: Union[Union[str, _aio.AsyncProcess], None] = None, after: Union[int, None] = None, output: bool = False, ansi: Union[Ansi, None] = None) -> _aio.AsyncSubscription:
        """Push events as notifications `events.event`.

        Also output, with `output`. Returns the number of the subscription. `x-notifications` of this document
        describes the messages.

        types: Only these types. Default: all.
        id: Only events of this process.
        after: Replay the events after this number first. Default: only new events.
        output: Also push output as it is written. Pushes are not stored; the log is.
        """
        ...
    async def events_unsubscribe(self, *, subscription: Union[int, _aio.AsyncSubscription]) -> bool:
        """End a subscription.

        Returns false if the connection has no such subscription.

        subscription: The number that `events.subscribe` returned.
        """
        ...
    async def events_next(self, *, consumer: str, types: Union[Sequence[EventType], None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, id: Union[Union[str, _aio.AsyncProcess], None] = None, limit: Union[int, None] = None, wait_ms: int = 0, from_: Union[ConsumerStart, None] = None) -> EventsNextResult:
        """Return the next events for a named consumer.

        An event comes again until it is acknowledged.

        consumer: The consumer's name. Its position is stored under it.
        limit: Default: 100.
        wait_ms: Wait up to this time for the first event.
        from_: The first event of the consumer if it is new. Default: `oldest`.
        """
        ...
    async def events_ack(self, *, consumer: str, seq: int) -> EventsAckResult:
        """Acknowledge all events up to a number.

        Moves the durable position of the consumer. It never moves back.

        seq: Acknowledge all events up to this number.
        """
        ...
    async def fs_read(self, *, path: str, cwd: Union[str, None] = None, offset: Union[int, None] = None, limit: Union[int, None] = None, encoding: Union[Encoding, None] = None, from_byte: Union[int, None] = None, sandbox: Union[SandboxSetting, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None) -> FsReadResult:
        """Read lines of a text file.

        Regular files only. A page that is longer than `fs.read_max_chars` is the error `limit`, which names a
        shorter one.

        path: A regular file. Absolute, or relative to `cwd`.
        cwd: The directory of a relative path. Absolute.
        offset: The first line, from 1 on. Default: 1.
        limit: Lines, at most 2000. Default: 500.
        encoding: `base64` gives the bytes of the lines unchanged.
        from_byte: The first byte, from 0 on, in place of lines. Only with `encoding: "base64"`; for binary files and
            very long lines.
        sandbox: The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        """
        ...
    async def fs_write(self, *, path: str, cwd: Union[str, None] = None, content: Union[str, None] = None, content_base64: Union[str, None] = None, expect: Union[str, None] = None, mode: Union[str, None] = None, create_dirs: Union[bool, None] = None, hard_links: Union[HardLinks, None] = None, sandbox: Union[SandboxSetting, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, request_id: Union[str, None] = None, approval_timeout_ms: Union[int, None] = None) -> FsWriteResult:
        """Write a whole file.

        A temporary file takes the place of the old one, so a reader sees the old or the new content. Mode,
        owner and extended attributes are kept where the daemon may.

        path: A regular file, or a new name. Absolute, or relative to `cwd`. A link is followed.
        cwd: The directory of a relative path. Absolute.
        content: The new content as text. Either this or `content_base64`.
        expect: The sha256 that the file must have, or `absent`.
        mode: Permissions in octal: `644`. Default: those of the file.
        create_dirs: Create missing directories. Default: true.
        sandbox: The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        request_id: A call with the same key and the same change waits for the same approval.
        approval_timeout_ms: The time that a person has to decide, if the file is outside the roots. 0: deny instead of asking.
            Default: 600000.
        """
        ...
    async def fs_edit(self, *, path: str, old: str, new: str, cwd: Union[str, None] = None, replace_all: bool = False, fuzzy: bool = False, expect: Union[str, None] = None, hard_links: Union[HardLinks, None] = None, sandbox: Union[SandboxSetting, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, request_id: Union[str, None] = None, approval_timeout_ms: Union[int, None] = None) -> FsEditResult:
        """Replace a text in a file.

        Tries strategies from the strictest on, and returns the name of the one that found it. Line ends, byte
        order mark and mode are kept.

        path: A regular text file. Absolute, or relative to `cwd`. A link is followed.
        old: The text to replace. Its line ends need not be those of the file.
        cwd: The directory of a relative path. Absolute.
        replace_all: Replace every match. Otherwise there must be exactly one.
        fuzzy: Accept a similar text too: strategies `block_anchor` and `similar_lines`.
        expect: The sha256 that the file must have.
        sandbox: The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        request_id: A call with the same key and the same change waits for the same approval.
        approval_timeout_ms: The time that a person has to decide, if the file is outside the roots. 0: deny instead of asking.
            Default: 600000.
        """
        ...
    async def fs_list(self, *, path: str, cwd: Union[str, None] = None, depth: Union[int, None] = None, glob: Union[str, None] = None, hidden: bool = False, ignore: Union[bool, None] = None, limit: Union[int, None] = None, after: Union[Union[str, _aio.AsyncProcess], None] = None, sandbox: Union[SandboxSetting, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None) -> FsListResult:
        """List a directory.

        Entries come in the order of their names. Links are not followed.

        path: A directory. Absolute, or relative to `cwd`.
        cwd: The directory of a relative path. Absolute.
        depth: Levels of directories, at most 64. Default: 1.
        glob: Only names that match: `*.rs`; with a slash, paths below `path`: `src/**/*.rs`.
        hidden: Names that begin with a dot too.
        ignore: Leave out what ignore files name. Default: true.
        limit: Entries, at most 10000. Default: 1000.
        after: `next` of the page before.
        sandbox: The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        """
        ...
    async def fs_search(self, *, pattern: str, path: str, cwd: Union[str, None] = None, glob: Union[str, None] = None, mode: Union[SearchMode, None] = None, context: Union[int, None] = None, limit: Union[int, None] = None, after: Union[Union[str, _aio.AsyncProcess], None] = None, offset: Union[int, None] = None, timeout_ms: Union[int, None] = None, hidden: bool = False, ignore: Union[bool, None] = None, sandbox: Union[SandboxSetting, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None) -> FsSearchResult:
        """Search files for a regular expression.

        Leaves out what ignore files name, hidden and binary files. After `timeout_ms` it returns what was
        found, with `complete` false.

        pattern: A regular expression of ripgrep, for one line.
        path: A directory or a file. Absolute, or relative to `cwd`.
        cwd: The directory of a relative path. Absolute.
        glob: Only files whose path matches, as `rg --glob`: `*.rs`, `!target`.
        context: Lines before and after each match, at most 20. Default: 0.
        limit: Results, at most 10000. Default: 50.
        after: `next` of the page before.
        offset: Results that are left out first. With `limit` at most 10000; `after` reaches further. Default: 0.
        timeout_ms: Answer after this time with what was found. Default: 10000.
        hidden: Files whose name begins with a dot too.
        ignore: Leave out what ignore files name. Default: true.
        sandbox: The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        """
        ...
    async def tools_list(self, *, provider: Union[str, None] = None, effect: Union[Effect, None] = None, query: Union[str, None] = None, detail: Union[ToolsDetail, None] = None, session_key: Union[str, None] = None, toolset: Union[Toolset, None] = None, format: Union[ToolsFormat, None] = None) -> ToolsListResult:
        """List tools.

        Only what the session may call. `full` has schemas and the signatures for scripts; another `format` is
        ready for the API of a model.

        provider: Only tools of this provider: `native`, a client's or an MCP server's.
        effect: Only tools with this effect.
        query: Only tools whose name or description has all of these terms, in any case.
        detail: The detail of `tools`. Other formats are always full.
        session_key: The session that calls. Only tools that it may call are listed.
        """
        ...
    async def tools_call(self, *, name: str, args: Union[Mapping[str, Any], None] = None, timeout_ms: Union[int, None] = None, session_key: Union[str, None] = None, task_id: Union[str, None] = None, cwd: Union[str, None] = None, request_id: Union[str, None] = None, toolset: Union[Toolset, None] = None) -> ToolsCallResult:
        """Call a tool.

        Wrong arguments are `invalid_params`, with the place as a JSON pointer in `data.pointer`.
        `$/cancelRequest` ends the call. After `outcome_unknown` it may have happened; nothing repeats it.

        name: As `tools.list` has it: `terminal`, `linear.create_issue`.
        args: Checked against the tool's `input_schema`.
        timeout_ms: The time that the call may take. Default: that of the tool, or `script.call_timeout_ms`.
        cwd: The directory of relative paths in `args`. Absolute.
        request_id: The same id again returns the same result, and nothing is done twice.
        toolset: The toolset of `name`. The result of `codex` is a text and that of `hermes` an object, in the form
            that their models know, also for a call that failed. An error of the call itself has that form in
            `data.text`.
        """
        ...
    async def tools_register(self, *, provider: str, tools: Sequence[ToolDefinition], session_key: Union[str, None] = None, reconnect_ms: Union[int, None] = None, takeover: bool = False, invoke: Callable[[ToolCall], Union[Any, Awaitable[Any]]]) -> ToolsRegisterResult:
        """Offer tools on this connection.

        The daemon sends `tools.invoke` for each call (see `x-notifications`), and `$/cancelRequest`. Needs a
        connection that can be pushed to. A provider that is lost has `reconnect_ms` to register again; its
        tools stay listed as `unavailable`. A name that another connection serves is `already_exists`, with
        that client in `data.client`; `takeover` replaces it. Not from inside a job.

        provider: `[a-z][a-z0-9_]*`. The tools are `provider.name`.
        tools: All tools of the provider. They replace those of an earlier registration.
        session_key: Only this session may call them. Default: all.
        reconnect_ms: The time that calls wait for a connection that was lost. Default: 5000.
        takeover: Replace another live connection that has the name.
        """
        ...
    async def tools_unregister(self, *, provider: str) -> ToolsUnregisterResult:
        """Withdraw the tools of a provider.

        Calls in flight end as if its connection were lost. Only the connection that offers them may do it, or
        any if that has ended.
        """
        ...
    async def tools_refresh(self, *, provider: str) -> ToolsRefreshResult:
        """List the tools of an MCP server again.

        Starts the server if it does not run. A server that reports a change is asked by itself.

        provider: An MCP server.
        """
        ...
    async def script_run(self, *, code: Union[str, None] = None, file: Union[str, None] = None, language: Union[Language, None] = None, argv: Union[Sequence[str], None] = None, tools: Union[Sequence[str], None] = None, args: Any = None, cwd: Union[str, None] = None, env: Union[Mapping[str, str], None] = None, env_mode: Union[EnvMode, None] = None, sandbox: Union[SandboxSetting, None] = None, limits: Union[Limits, None] = None, timeout_ms: Union[int, None] = None, call_timeout_ms: Union[int, None] = None, max_calls: Union[int, None] = None, max_parallel: Union[int, None] = None, yield_ms: Union[int, None] = None, max_output_bytes: Union[int, None] = None, max_stderr_bytes: Union[int, None] = None, redact: Union[bool, None] = None, name: Union[str, None] = None, task_id: Union[str, None] = None, session_key: Union[str, None] = None, labels: Union[Mapping[str, str], None] = None, notify: bool = False, watch: Union[Sequence[Pattern], None] = None, backend: Union[str, None] = None, request_id: Union[str, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> ScriptRunResult:
        """Run a script that calls tools.

        It is a process: `poll`, `log`, `wait`, `kill` work on it. Answers when it has ended, or when
        `yield_ms` is over; it runs on then.

        code: The text of the script. Either this or `file` or `argv`.
        file: The file of the script, absolute or from `cwd`.
        language: Default: `python`, or that of the ending of `file`.
        argv: Any program, in place of an interpreter: it finds the channel in its environment.
        tools: The tools that it may call. Default: `script.tools` of the config. An empty list: none.
        args: A value for the script.
        cwd: Absolute. Default: that of the session, else the home directory.
        env: Variables that override all others. Values are in memory only.
        timeout_ms: Kill the script after this time, also without a daemon. 0: never. Default: 300000.
        call_timeout_ms: The time of one call, unless the call has its own. Default: 300000.
        max_calls: The most calls. Default: 500.
        max_parallel: The most calls at the same time; others wait. Default: 16.
        yield_ms: Wait up to this time for the end before answering. Default: 60000.
        max_output_bytes: The most bytes of `output`. Default: 50000.
        max_stderr_bytes: The most bytes of `stderr`. Default: 10000.
        redact: Hide secrets in the result. Default: true.
        notify: Publish a `completion` event.
        backend: The backend that runs it. Default: `local`.
        request_id: The same key again returns the same script, and starts nothing.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def script_result(self, *, id: Union[str, _aio.AsyncProcess], wait_ms: int = 0, cell: Union[int, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> ScriptRunResult:
        """Return the result of a script.

        Any number of times, also after its end and after a restart of the daemon. Consumes nothing.

        wait_ms: Wait up to this time for the end.
        cell: The cell of a kernel. Default: the last one.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def script_calls(self, *, id: Union[str, _aio.AsyncProcess], after: Union[Union[str, _aio.AsyncProcess], None] = None, limit: Union[int, None] = None, detail: Union[CallDetail, None] = None, cell: Union[int, None] = None) -> ScriptCallsResult:
        """List the calls of a script.

        The oldest first, from its journal; also after its end and after a restart of the daemon.

        after: Only calls after this one.
        limit: Default: 200.
        cell: Only those of this cell of a kernel.
        """
        ...
    async def script_cancel(self, *, id: Union[str, _aio.AsyncProcess], call: Union[str, None] = None) -> ScriptCancelResult:
        """Cancel a script, or one of its calls.

        Ends the authority of the script, then its calls, then its tree, then answers.

        call: Only this call. Default: the script with all of its calls.
        """
        ...
    async def kernel_open(self, *, language: Union[Language, None] = None, tools: Union[Sequence[str], None] = None, args: Any = None, cwd: Union[str, None] = None, env: Union[Mapping[str, str], None] = None, env_mode: Union[EnvMode, None] = None, sandbox: Union[SandboxSetting, None] = None, limits: Union[Limits, None] = None, timeout_ms: Union[int, None] = None, idle_ms: Union[int, None] = None, call_timeout_ms: Union[int, None] = None, max_calls: Union[int, None] = None, max_parallel: Union[int, None] = None, max_output_bytes: Union[int, None] = None, max_stderr_bytes: Union[int, None] = None, redact: Union[bool, None] = None, name: Union[str, None] = None, task_id: Union[str, None] = None, session_key: Union[str, None] = None, labels: Union[Mapping[str, str], None] = None, notify: bool = False, watch: Union[Sequence[Pattern], None] = None, backend: Union[str, None] = None, request_id: Union[str, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> _aio.AsyncProcess:
        """Start a kernel: an interpreter that keeps its state and runs cells.

        It is a process, and a script: `poll`, `log`, `kill` and `script.calls` work on it. It ends after
        `idle_ms` without a cell.

        language: `python` or `javascript`. Default: `python`.
        tools: The tools that its cells may call. Default: `script.tools` of the config. An empty list: none.
        args: A value for the cells.
        cwd: Absolute. Default: that of the session, else the home directory.
        env: Variables that override all others. Values are in memory only.
        timeout_ms: Kill the kernel after this time, also without a daemon. Default and 0: never.
        idle_ms: End the kernel after this time without a cell. 0: never. Default: `kernel.idle_ms` of the config.
        call_timeout_ms: The time of one call, unless the call has its own. Default: 300000.
        max_calls: The most calls of a cell that names no number. Default: 500.
        max_parallel: The most calls at the same time; others wait. Default: 16.
        max_output_bytes: The most bytes of `output` of a cell. Default: 50000.
        max_stderr_bytes: The most bytes of `stderr` of a cell. Default: 10000.
        redact: Hide secrets in the results of cells. Default: true.
        notify: Publish a `completion` event when the kernel ends.
        backend: The backend that runs it. Default: `local`.
        request_id: The same key again returns the same kernel, and starts nothing.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def kernel_run(self, *, code: str, id: Union[Union[str, _aio.AsyncProcess], None] = None, name: Union[str, None] = None, timeout_ms: Union[int, None] = None, yield_ms: Union[int, None] = None, max_calls: Union[int, None] = None, if_busy: Union[IfBusy, None] = None, request_id: Union[str, None] = None, fields: Union[Sequence[str], None] = None, view: Union[View, None] = None) -> ScriptRunResult:
        """Run a cell in a kernel.

        Answers at its end, or when `yield_ms` is over; it runs on then, and `script.result` has it. `value`
        is the text of its last expression; its output is the range `from` to `to` of the log. After
        `timeout_ms` it is interrupted as by `kernel.interrupt`.

        id: The kernel. Either this or `name`.
        timeout_ms: Interrupt the cell after this time; it is counted from its begin. 0: never. Default: 300000.
        yield_ms: Wait up to this time for the end of the cell before answering. Default: 60000.
        max_calls: The most calls of the cell. Default: that of the kernel.
        request_id: The same key again returns the same cell, and runs nothing.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        ...
    async def kernel_interrupt(self, *, id: Union[Union[str, _aio.AsyncProcess], None] = None, name: Union[str, None] = None, grace_ms: Union[int, None] = None) -> KernelInterruptResult:
        """Interrupt the cell that runs.

        SIGINT to the group of the interpreter, as Ctrl-C in a terminal. A kernel whose cell goes on for
        `grace_ms` is killed.

        id: The kernel. Either this or `name`.
        grace_ms: Kill the kernel if the cell has not ended after this time. Default: 2000.
        """
        ...
    async def kernel_reset(self, *, id: Union[Union[str, _aio.AsyncProcess], None] = None, name: Union[str, None] = None, grace_ms: Union[int, None] = None) -> KernelResetResult:
        """Give a kernel a new interpreter.

        Its id and its log stay, its state is gone. A cell that runs is interrupted, cells that wait do not
        run.

        id: The kernel. Either this or `name`.
        grace_ms: The time in which a running cell ends by itself when it is interrupted. Default: 2000.
        """
        ...
    async def kernel_close(self, *, id: Union[Union[str, _aio.AsyncProcess], None] = None, name: Union[str, None] = None, grace_ms: Union[int, None] = None) -> KernelCloseResult:
        """End a kernel.

        Its authority ends, then its calls, then its tree.

        id: The kernel. Either this or `name`.
        grace_ms: The time between SIGTERM and SIGKILL. Default: 5000.
        """
        ...
    async def sandbox_probe(self) -> SandboxProbeResult:
        """Check the sandbox of this machine.

        Tries forbidden acts in a confined process, under each mechanism, and returns what was seen.
        `daemon.info` has the last result.
        """
        ...
    async def daemon_info(self) -> DaemonInfoResult:
        """Return the state of the daemon.

        Its version, counts, limits and paths, and the features of this system.
        """
        ...
    async def daemon_shutdown(self, *, kill: bool = False) -> ShutdownResult:
        """Stop the daemon.

        Processes keep running, unless `kill` is true.

        kill: Also kill all processes.
        """
        ...
    async def rpc_discover(self) -> Any:
        """Return the OpenRPC document of all methods and events.

        The same document as `proto/openrpc.json` of this version. The example is shortened.
        """
        ...
