"""One method for each method of the daemon.

Generated from the list of methods by `UPDATE_GOLDEN=1 cargo test -p toold-proto clients`. Do not edit.
"""

# Methods that change nothing, or nothing more when they are called again.
REPEATABLE = frozenset([
    "poll",
    "log",
    "wait",
    "screen",
    "resize",
    "list",
    "inspect",
    "stage.diff",
    "session.active",
    "session.configure",
    "session.get",
    "policy.check",
    "policy.reload",
    "policy.suggest",
    "queues.list",
    "queues.set",
    "approvals.list",
    "approvals.get",
    "grants.list",
    "events.subscribe",
    "events.next",
    "events.ack",
    "fs.read",
    "fs.list",
    "fs.search",
    "tools.list",
    "tools.refresh",
    "script.result",
    "script.calls",
    "sandbox.probe",
    "daemon.info",
    "rpc.discover",
])

# The parameter by which the daemon recognizes a repeated call.
KEYS = {
    "exec": "request_id",
    "write": "write_id",
    "submit": "write_id",
    "patch.apply": "request_id",
    "patch.revert": "request_id",
    "fs.write": "request_id",
    "fs.edit": "request_id",
    "tools.call": "request_id",
    "script.run": "request_id",
    "kernel.open": "request_id",
    "kernel.run": "request_id",
}

# Methods whose result has the fields of a process.
PROCESSES = frozenset([
    "exec",
    "poll",
    "restart",
    "pause",
    "resume",
    "inspect",
    "kernel.open",
])


class Methods:
    def _call(self, method, params):
        raise NotImplementedError(method)

    def exec(self, command=None, *, argv=None, cwd=None, env=None, env_base64=None, env_mode=None, shell=None, login=None, pty=None, stdin=None, merge=False, hold=False, timeout_ms=None, yield_ms=0, max_output_tokens=None, tail_lines=None, collapse=None, name=None, task_id=None, session_key=None, labels=None, notify=False, watch=None, limits=None, require_limits=False, backend=None, request_id=None, if_running=None, restart=None, ready=None, ready_timeout_ms=None, heartbeat_ms=None, queue=None, after=None, after_ok=None, sandbox=None, consumer=None, escalate=None, approval_timeout_ms=None, stage=False, fields=None, view=None):
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
        return self._call("exec", {
            "command": command,
            "argv": argv,
            "cwd": cwd,
            "env": env,
            "env_base64": env_base64,
            "env_mode": env_mode,
            "shell": shell,
            "login": login,
            "pty": pty,
            "stdin": stdin,
            "merge": merge or None,
            "hold": hold or None,
            "timeout_ms": timeout_ms,
            "yield_ms": yield_ms or None,
            "max_output_tokens": max_output_tokens,
            "tail_lines": tail_lines,
            "collapse": collapse,
            "name": name,
            "task_id": task_id,
            "session_key": session_key,
            "labels": labels,
            "notify": notify or None,
            "watch": watch,
            "limits": limits,
            "require_limits": require_limits or None,
            "backend": backend,
            "request_id": request_id,
            "if_running": if_running,
            "restart": restart,
            "ready": ready,
            "ready_timeout_ms": ready_timeout_ms,
            "heartbeat_ms": heartbeat_ms,
            "queue": queue,
            "after": after,
            "after_ok": after_ok,
            "sandbox": sandbox,
            "consumer": consumer,
            "escalate": escalate,
            "approval_timeout_ms": approval_timeout_ms,
            "stage": stage or None,
            "fields": fields,
            "view": view,
        })

    def poll(self, *, id, cursor=None, max_bytes=None, wait_ms=0, stream=None, ansi=None, encoding=None, tail_lines=None, collapse=None, spans=False, hold=False, redact=False, fields=None, view=None):
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
        return self._call("poll", {
            "id": id,
            "cursor": cursor,
            "max_bytes": max_bytes,
            "wait_ms": wait_ms or None,
            "stream": stream,
            "ansi": ansi,
            "encoding": encoding,
            "tail_lines": tail_lines,
            "collapse": collapse,
            "spans": spans or None,
            "hold": hold or None,
            "redact": redact or None,
            "fields": fields,
            "view": view,
        })

    def log(self, *, id=None, ids=None, offset=None, limit=None, stream=None, grep=None, ansi=None, tail_lines=None, collapse=None, redact=False):
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
        return self._call("log", {
            "id": id,
            "ids": ids,
            "offset": offset,
            "limit": limit,
            "stream": stream,
            "grep": grep,
            "ansi": ansi,
            "tail_lines": tail_lines,
            "collapse": collapse,
            "redact": redact or None,
        })

    def wait(self, *, id=None, ids=None, session_key=None, mode=None, until=None, or_input=False, timeout_ms=None, tail_lines=None, collapse=None, consumer=None, redact=False, fields=None, view=None):
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
        return self._call("wait", {
            "id": id,
            "ids": ids,
            "session_key": session_key,
            "mode": mode,
            "until": until,
            "or_input": or_input or None,
            "timeout_ms": timeout_ms,
            "tail_lines": tail_lines,
            "collapse": collapse,
            "consumer": consumer,
            "redact": redact or None,
            "fields": fields,
            "view": view,
        })

    def kill(self, *, id=None, ids=None, task_id=None, session_key=None, label=None, name=None, all=None, signal=None, grace_ms=None):
        """Kill whole process trees.

        Answers when it is verified that no process of them is left, or with the survivors.

        label: Those with this label: `key` or `key=value`.
        name: Those whose name matches this pattern; `*` is any text, `?` any character.
        signal: The first signal. Default: SIGTERM.
        grace_ms: Time before SIGKILL. Default: 5000.
        """
        return self._call("kill", {
            "id": id,
            "ids": ids,
            "task_id": task_id,
            "session_key": session_key,
            "label": label,
            "name": name,
            "all": all,
            "signal": signal,
            "grace_ms": grace_ms,
        })

    def signal(self, *, id, signal):
        """Send one signal to the process group.

        Does nothing else: it neither waits nor kills what is left.
        """
        return self._call("signal", {
            "id": id,
            "signal": signal,
        })

    def restart(self, *, id, env=None, env_base64=None, grace_ms=None, fields=None, view=None):
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
        return self._call("restart", {
            "id": id,
            "env": env,
            "env_base64": env_base64,
            "grace_ms": grace_ms,
            "fields": fields,
            "view": view,
        })

    def pause(self, *, id, fields=None, view=None):
        """Stop a process and all of its descendants.

        Sends SIGSTOP, and answers when all have stopped, or after 3 seconds with `stopped` false.

        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        return self._call("pause", {
            "id": id,
            "fields": fields,
            "view": view,
        })

    def resume(self, *, id, fields=None, view=None):
        """Continue a process and all of its descendants.

        Sends SIGCONT. A process that is not stopped goes on as before.

        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        return self._call("resume", {
            "id": id,
            "fields": fields,
            "view": view,
        })

    def write(self, *, id, data=None, data_base64=None, keys=None, secret=False, write_id=None, timeout_ms=None):
        """Write bytes to stdin, unchanged, or type keys.

        Answers when the program has taken them all, or with the number that it took within `timeout_ms`.

        keys: Keys to type instead of `data`, in order: names as `Up`, `C-c` and `Enter`, text, or `{text}`.
            Only for `write`.
        secret: Keep it out of events, logs and files. On a terminal, wait until it does not show what is typed.
        write_id: Idempotency key: a write with the same key is acknowledged and not repeated. The last 4096 keys of
            a process are remembered; the result has the number in `remembered_write_ids`.
        timeout_ms: Maximum wait for the program to read. Default: 5000.
        """
        return self._call("write", {
            "id": id,
            "data": data,
            "data_base64": data_base64,
            "keys": keys,
            "secret": secret or None,
            "write_id": write_id,
            "timeout_ms": timeout_ms,
        })

    def submit(self, *, id, data=None, data_base64=None, keys=None, secret=False, write_id=None, timeout_ms=None):
        """Write bytes and a newline to stdin.

        Otherwise like `write`.

        keys: Keys to type instead of `data`, in order: names as `Up`, `C-c` and `Enter`, text, or `{text}`.
            Only for `write`.
        secret: Keep it out of events, logs and files. On a terminal, wait until it does not show what is typed.
        write_id: Idempotency key: a write with the same key is acknowledged and not repeated. The last 4096 keys of
            a process are remembered; the result has the number in `remembered_write_ids`.
        timeout_ms: Maximum wait for the program to read. Default: 5000.
        """
        return self._call("submit", {
            "id": id,
            "data": data,
            "data_base64": data_base64,
            "keys": keys,
            "secret": secret or None,
            "write_id": write_id,
            "timeout_ms": timeout_ms,
        })

    def close(self, *, id):
        """Close stdin.

        Closes the pipe, or types end-of-file into the terminal.
        """
        return self._call("close", {
            "id": id,
        })

    def screen(self, *, id):
        """Return the screen of a process's terminal as text.

        The screen stays after the exit. Only for processes that were started with `pty`.
        """
        return self._call("screen", {
            "id": id,
        })

    def resize(self, *, id, rows, cols):
        """Set the size of a process's terminal.

        Only for processes that were started with `pty`.
        """
        return self._call("resize", {
            "id": id,
            "rows": rows,
            "cols": cols,
        })

    def list(self, *, task_id=None, session_key=None, status=None, reason=None, stopped=None, label=None, name=None, ended_within_ms=None, failed=False, usage=False, limit=None, fields=None, view=None):
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
        return self._call("list", {
            "task_id": task_id,
            "session_key": session_key,
            "status": status,
            "reason": reason,
            "stopped": stopped,
            "label": label,
            "name": name,
            "ended_within_ms": ended_within_ms,
            "failed": failed or None,
            "usage": usage or None,
            "limit": limit,
            "fields": fields,
            "view": view,
        })

    def inspect(self, *, id, fields=None, view=None):
        """Return a process with its tree.

        Also its files, the names of its environment variables and the resources that it uses.

        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        return self._call("inspect", {
            "id": id,
            "fields": fields,
            "view": view,
        })

    def forget(self, *, ids=None, older_than_ms=None, failed=False):
        """Remove the records and logs of finished processes.

        Processes that still run are skipped.

        older_than_ms: All processes that ended at least this long ago.
        failed: All that failed, as `list` selects them; with `older_than_ms` those that are as old too.
        """
        return self._call("forget", {
            "ids": ids,
            "older_than_ms": older_than_ms,
            "failed": failed or None,
        })

    def stage_diff(self, *, id):
        """Return the changes of a staged process, with a diff.

        While it runs they are those so far, without a digest.
        """
        return self._call("stage.diff", {
            "id": id,
        })

    def stage_commit(self, *, id, digest, paths=None):
        """Make the changes of a staged process below its overlay.

        All of them or none, also over a crash. Fails with `conflict` if the digest is not that of the
        changes, and names the files that were changed below meanwhile.

        digest: The digest of the changes, from `stage.diff`.
        paths: Only the changes at and below these paths, absolute or from the working directory. Default: all.
        """
        return self._call("stage.commit", {
            "id": id,
            "digest": digest,
            "paths": paths,
        })

    def stage_discard(self, *, id):
        """Remove the changes of a staged process.

        Nothing below its overlay changes.
        """
        return self._call("stage.discard", {
            "id": id,
        })

    def session_active(self, *, session_key=None, task_id=None):
        """List the processes that a session or task still runs.

        Give `session_key` or `task_id`.
        """
        return self._call("session.active", {
            "session_key": session_key,
            "task_id": task_id,
        })

    def session_end(self, *, session_key):
        """Kill the processes that a session still runs.

        Returns what was killed. Their completions are marked `cancelled` and not pushed.
        """
        return self._call("session.end", {
            "session_key": session_key,
        })

    def session_configure(self, *, session_key, cwd=None, sandbox=None, approval=None, roots=None, env_pass=None):
        """Set the defaults of a session, and its ceiling.

        Durable. Replaces what an earlier call set and keeps the grants; nothing but `session_key` removes the
        settings. `sandbox` and `roots` must not be wider than `policy.max`.

        cwd: The working directory of calls without one. Absolute.
        sandbox: The profile of calls without one, and the widest of the session.
        approval: The cases in which a person is asked. Default: `policy.approval` of the config.
        roots: Directories that its processes may write in, beside their working directory. Absolute.
        env_pass: Names of variables that a clean environment also has.
        """
        return self._call("session.configure", {
            "session_key": session_key,
            "cwd": cwd,
            "sandbox": sandbox,
            "approval": approval,
            "roots": roots,
            "env_pass": env_pass,
        })

    def session_get(self, *, session_key):
        """Return the settings of a session.

        With its processes that run, its grants and its questions that wait.
        """
        return self._call("session.get", {
            "session_key": session_key,
        })

    def policy_check(self, *, command=None, argv=None, cwd=None, env=None, env_base64=None, env_mode=None, shell=None, login=None, pty=None, stdin=None, merge=False, hold=False, timeout_ms=None, yield_ms=0, max_output_tokens=None, tail_lines=None, collapse=None, name=None, task_id=None, session_key=None, labels=None, notify=False, watch=None, limits=None, require_limits=False, backend=None, request_id=None, if_running=None, restart=None, ready=None, ready_timeout_ms=None, heartbeat_ms=None, queue=None, after=None, after_ok=None, sandbox=None, consumer=None, escalate=None, approval_timeout_ms=None, stage=False, fields=None, view=None):
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
        return self._call("policy.check", {
            "command": command,
            "argv": argv,
            "cwd": cwd,
            "env": env,
            "env_base64": env_base64,
            "env_mode": env_mode,
            "shell": shell,
            "login": login,
            "pty": pty,
            "stdin": stdin,
            "merge": merge or None,
            "hold": hold or None,
            "timeout_ms": timeout_ms,
            "yield_ms": yield_ms or None,
            "max_output_tokens": max_output_tokens,
            "tail_lines": tail_lines,
            "collapse": collapse,
            "name": name,
            "task_id": task_id,
            "session_key": session_key,
            "labels": labels,
            "notify": notify or None,
            "watch": watch,
            "limits": limits,
            "require_limits": require_limits or None,
            "backend": backend,
            "request_id": request_id,
            "if_running": if_running,
            "restart": restart,
            "ready": ready,
            "ready_timeout_ms": ready_timeout_ms,
            "heartbeat_ms": heartbeat_ms,
            "queue": queue,
            "after": after,
            "after_ok": after_ok,
            "sandbox": sandbox,
            "consumer": consumer,
            "escalate": escalate,
            "approval_timeout_ms": approval_timeout_ms,
            "stage": stage or None,
            "fields": fields,
            "view": view,
        })

    def policy_reload(self):
        """Read the rule files again.

        If one is refused, the old rules stay; `data` has its `file`, `index` and `example`.
        """
        return self._call("policy.reload", {})

    def policy_suggest(self, *, id):
        """Suggest a profile and rules for what a process was refused.

        From the calls that its sandbox refused. Writes nothing.
        """
        return self._call("policy.suggest", {
            "id": id,
        })

    def queues_list(self):
        """List the queues.

        With their slots, and how many of their processes run and wait.
        """
        return self._call("queues.list", {})

    def queues_set(self, *, name, slots=None, paused=None):
        """Set the slots of a queue, pause or resume it.

        Durable, and stronger than the config.

        name: The queue. A new name makes a new queue.
        slots: Number of its processes that run at the same time, at least 1.
        paused: True: no process is started from it.
        """
        return self._call("queues.set", {
            "name": name,
            "slots": slots,
            "paused": paused,
        })

    def approvals_list(self, *, state=None, session_key=None, task_id=None, limit=None):
        """List the approvals, oldest first.

        Questions that wait for a person, unless `state` asks for others.

        limit: Default: 200.
        """
        return self._call("approvals.list", {
            "state": state,
            "session_key": session_key,
            "task_id": task_id,
            "limit": limit,
        })

    def approvals_get(self, *, id):
        """Return one approval.

        Also one that was decided.
        """
        return self._call("approvals.get", {
            "id": id,
        })

    def approvals_decide(self, *, id, decision, digest, scope=None, grant=None, message=None):
        """Decide an approval.

        The first decision wins; another gets `already_decided`. `digest` is that of the action that the
        person saw. Scope `session` makes a grant for the same argv, directory and profile, `always` a rule.
        `abort` denies, and withdraws everything else pending of the task. Not from inside a job.

        digest: The digest of the action that the person saw.
        grant: The terms of the grant, with scope `session` or `script`.
        message: A message for the caller that asked.
        """
        return self._call("approvals.decide", {
            "id": id,
            "decision": decision,
            "digest": digest,
            "scope": scope,
            "grant": grant,
            "message": message,
        })

    def grants_list(self, *, session_key=None, all=False):
        """List the grants, oldest first.

        What persons allowed for the rest of a session.

        all: Also those that are revoked or over.
        """
        return self._call("grants.list", {
            "session_key": session_key,
            "all": all or None,
        })

    def grants_revoke(self, *, id=None, session_key=None, kill=False):
        """Revoke a grant, or all of a session.

        Later uses are stopped. Lists what still runs under them, and kills it with `kill`. Not from inside a
        job.

        id: One grant. Either this or `session_key`.
        session_key: All grants of a session.
        kill: Also kill what still runs under them.
        """
        return self._call("grants.revoke", {
            "id": id,
            "session_key": session_key,
            "kill": kill or None,
        })

    def patch_apply(self, *, patch, cwd=None, mode=None, check=False, expect=None, hard_links=None, request_id=None, session_key=None, task_id=None, sandbox=None, approval_timeout_ms=None):
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
        return self._call("patch.apply", {
            "patch": patch,
            "cwd": cwd,
            "mode": mode,
            "check": check or None,
            "expect": expect,
            "hard_links": hard_links,
            "request_id": request_id,
            "session_key": session_key,
            "task_id": task_id,
            "sandbox": sandbox,
            "approval_timeout_ms": approval_timeout_ms,
        })

    def patch_revert(self, *, patch_id, request_id=None, session_key=None, task_id=None, sandbox=None, approval_timeout_ms=None):
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
        return self._call("patch.revert", {
            "patch_id": patch_id,
            "request_id": request_id,
            "session_key": session_key,
            "task_id": task_id,
            "sandbox": sandbox,
            "approval_timeout_ms": approval_timeout_ms,
        })

    def events_subscribe(self, *, types=None, session_key=None, task_id=None, id=None, after=None, output=False, ansi=None):
        """Push events as notifications `events.event`.

        Also output, with `output`. Returns the number of the subscription. `x-notifications` of this document
        describes the messages.

        types: Only these types. Default: all.
        id: Only events of this process.
        after: Replay the events after this number first. Default: only new events.
        output: Also push output as it is written. Pushes are not stored; the log is.
        """
        return self._call("events.subscribe", {
            "types": types,
            "session_key": session_key,
            "task_id": task_id,
            "id": id,
            "after": after,
            "output": output or None,
            "ansi": ansi,
        })

    def events_unsubscribe(self, *, subscription):
        """End a subscription.

        Returns false if the connection has no such subscription.

        subscription: The number that `events.subscribe` returned.
        """
        return self._call("events.unsubscribe", {
            "subscription": subscription,
        })

    def events_next(self, *, consumer, types=None, session_key=None, task_id=None, id=None, limit=None, wait_ms=0, from_=None):
        """Return the next events for a named consumer.

        An event comes again until it is acknowledged.

        consumer: The consumer's name. Its position is stored under it.
        limit: Default: 100.
        wait_ms: Wait up to this time for the first event.
        from_: The first event of the consumer if it is new. Default: `oldest`.
        """
        return self._call("events.next", {
            "consumer": consumer,
            "types": types,
            "session_key": session_key,
            "task_id": task_id,
            "id": id,
            "limit": limit,
            "wait_ms": wait_ms or None,
            "from": from_,
        })

    def events_ack(self, *, consumer, seq):
        """Acknowledge all events up to a number.

        Moves the durable position of the consumer. It never moves back.

        seq: Acknowledge all events up to this number.
        """
        return self._call("events.ack", {
            "consumer": consumer,
            "seq": seq,
        })

    def fs_read(self, *, path, cwd=None, offset=None, limit=None, encoding=None, from_byte=None, sandbox=None, session_key=None, task_id=None):
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
        return self._call("fs.read", {
            "path": path,
            "cwd": cwd,
            "offset": offset,
            "limit": limit,
            "encoding": encoding,
            "from_byte": from_byte,
            "sandbox": sandbox,
            "session_key": session_key,
            "task_id": task_id,
        })

    def fs_write(self, *, path, cwd=None, content=None, content_base64=None, expect=None, mode=None, create_dirs=None, hard_links=None, sandbox=None, session_key=None, task_id=None, request_id=None, approval_timeout_ms=None):
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
        return self._call("fs.write", {
            "path": path,
            "cwd": cwd,
            "content": content,
            "content_base64": content_base64,
            "expect": expect,
            "mode": mode,
            "create_dirs": create_dirs,
            "hard_links": hard_links,
            "sandbox": sandbox,
            "session_key": session_key,
            "task_id": task_id,
            "request_id": request_id,
            "approval_timeout_ms": approval_timeout_ms,
        })

    def fs_edit(self, *, path, old, new, cwd=None, replace_all=False, fuzzy=False, expect=None, hard_links=None, sandbox=None, session_key=None, task_id=None, request_id=None, approval_timeout_ms=None):
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
        return self._call("fs.edit", {
            "path": path,
            "old": old,
            "new": new,
            "cwd": cwd,
            "replace_all": replace_all or None,
            "fuzzy": fuzzy or None,
            "expect": expect,
            "hard_links": hard_links,
            "sandbox": sandbox,
            "session_key": session_key,
            "task_id": task_id,
            "request_id": request_id,
            "approval_timeout_ms": approval_timeout_ms,
        })

    def fs_list(self, *, path, cwd=None, depth=None, glob=None, hidden=False, ignore=None, limit=None, after=None, sandbox=None, session_key=None, task_id=None):
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
        return self._call("fs.list", {
            "path": path,
            "cwd": cwd,
            "depth": depth,
            "glob": glob,
            "hidden": hidden or None,
            "ignore": ignore,
            "limit": limit,
            "after": after,
            "sandbox": sandbox,
            "session_key": session_key,
            "task_id": task_id,
        })

    def fs_search(self, *, pattern, path, cwd=None, glob=None, mode=None, context=None, limit=None, after=None, offset=None, timeout_ms=None, hidden=False, ignore=None, sandbox=None, session_key=None, task_id=None):
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
        return self._call("fs.search", {
            "pattern": pattern,
            "path": path,
            "cwd": cwd,
            "glob": glob,
            "mode": mode,
            "context": context,
            "limit": limit,
            "after": after,
            "offset": offset,
            "timeout_ms": timeout_ms,
            "hidden": hidden or None,
            "ignore": ignore,
            "sandbox": sandbox,
            "session_key": session_key,
            "task_id": task_id,
        })

    def tools_list(self, *, provider=None, effect=None, query=None, detail=None, session_key=None, toolset=None, format=None):
        """List tools.

        Only what the session may call. `full` has schemas and the signatures for scripts; another `format` is
        ready for the API of a model.

        provider: Only tools of this provider: `native`, a client's or an MCP server's.
        effect: Only tools with this effect.
        query: Only tools whose name or description has all of these terms, in any case.
        detail: The detail of `tools`. Other formats are always full.
        session_key: The session that calls. Only tools that it may call are listed.
        """
        return self._call("tools.list", {
            "provider": provider,
            "effect": effect,
            "query": query,
            "detail": detail,
            "session_key": session_key,
            "toolset": toolset,
            "format": format,
        })

    def tools_call(self, *, name, args=None, timeout_ms=None, session_key=None, task_id=None, cwd=None, request_id=None, toolset=None):
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
        return self._call("tools.call", {
            "name": name,
            "args": args,
            "timeout_ms": timeout_ms,
            "session_key": session_key,
            "task_id": task_id,
            "cwd": cwd,
            "request_id": request_id,
            "toolset": toolset,
        })

    def tools_register(self, *, provider, tools, session_key=None, reconnect_ms=None, takeover=False, invoke):
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
        return self._call("tools.register", {
            "provider": provider,
            "tools": tools,
            "session_key": session_key,
            "reconnect_ms": reconnect_ms,
            "takeover": takeover or None,
            "invoke": invoke,
        })

    def tools_unregister(self, *, provider):
        """Withdraw the tools of a provider.

        Calls in flight end as if its connection were lost. Only the connection that offers them may do it, or
        any if that has ended.
        """
        return self._call("tools.unregister", {
            "provider": provider,
        })

    def tools_refresh(self, *, provider):
        """List the tools of an MCP server again.

        Starts the server if it does not run. A server that reports a change is asked by itself.

        provider: An MCP server.
        """
        return self._call("tools.refresh", {
            "provider": provider,
        })

    def script_run(self, *, code=None, file=None, language=None, argv=None, tools=None, args=None, cwd=None, env=None, env_mode=None, sandbox=None, limits=None, timeout_ms=None, call_timeout_ms=None, max_calls=None, max_parallel=None, yield_ms=None, max_output_bytes=None, max_stderr_bytes=None, redact=None, name=None, task_id=None, session_key=None, labels=None, notify=False, watch=None, backend=None, request_id=None, fields=None, view=None):
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
        return self._call("script.run", {
            "code": code,
            "file": file,
            "language": language,
            "argv": argv,
            "tools": tools,
            "args": args,
            "cwd": cwd,
            "env": env,
            "env_mode": env_mode,
            "sandbox": sandbox,
            "limits": limits,
            "timeout_ms": timeout_ms,
            "call_timeout_ms": call_timeout_ms,
            "max_calls": max_calls,
            "max_parallel": max_parallel,
            "yield_ms": yield_ms,
            "max_output_bytes": max_output_bytes,
            "max_stderr_bytes": max_stderr_bytes,
            "redact": redact,
            "name": name,
            "task_id": task_id,
            "session_key": session_key,
            "labels": labels,
            "notify": notify or None,
            "watch": watch,
            "backend": backend,
            "request_id": request_id,
            "fields": fields,
            "view": view,
        })

    def script_result(self, *, id, wait_ms=0, cell=None, fields=None, view=None):
        """Return the result of a script.

        Any number of times, also after its end and after a restart of the daemon. Consumes nothing.

        wait_ms: Wait up to this time for the end.
        cell: The cell of a kernel. Default: the last one.
        fields: Only these fields of each process in the result.
        view: A set of fields with a name, in place of `fields`.
        """
        return self._call("script.result", {
            "id": id,
            "wait_ms": wait_ms or None,
            "cell": cell,
            "fields": fields,
            "view": view,
        })

    def script_calls(self, *, id, after=None, limit=None, detail=None, cell=None):
        """List the calls of a script.

        The oldest first, from its journal; also after its end and after a restart of the daemon.

        after: Only calls after this one.
        limit: Default: 200.
        cell: Only those of this cell of a kernel.
        """
        return self._call("script.calls", {
            "id": id,
            "after": after,
            "limit": limit,
            "detail": detail,
            "cell": cell,
        })

    def script_cancel(self, *, id, call=None):
        """Cancel a script, or one of its calls.

        Ends the authority of the script, then its calls, then its tree, then answers.

        call: Only this call. Default: the script with all of its calls.
        """
        return self._call("script.cancel", {
            "id": id,
            "call": call,
        })

    def kernel_open(self, *, language=None, tools=None, args=None, cwd=None, env=None, env_mode=None, sandbox=None, limits=None, timeout_ms=None, idle_ms=None, call_timeout_ms=None, max_calls=None, max_parallel=None, max_output_bytes=None, max_stderr_bytes=None, redact=None, name=None, task_id=None, session_key=None, labels=None, notify=False, watch=None, backend=None, request_id=None, fields=None, view=None):
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
        return self._call("kernel.open", {
            "language": language,
            "tools": tools,
            "args": args,
            "cwd": cwd,
            "env": env,
            "env_mode": env_mode,
            "sandbox": sandbox,
            "limits": limits,
            "timeout_ms": timeout_ms,
            "idle_ms": idle_ms,
            "call_timeout_ms": call_timeout_ms,
            "max_calls": max_calls,
            "max_parallel": max_parallel,
            "max_output_bytes": max_output_bytes,
            "max_stderr_bytes": max_stderr_bytes,
            "redact": redact,
            "name": name,
            "task_id": task_id,
            "session_key": session_key,
            "labels": labels,
            "notify": notify or None,
            "watch": watch,
            "backend": backend,
            "request_id": request_id,
            "fields": fields,
            "view": view,
        })

    def kernel_run(self, *, code, id=None, name=None, timeout_ms=None, yield_ms=None, max_calls=None, if_busy=None, request_id=None, fields=None, view=None):
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
        return self._call("kernel.run", {
            "code": code,
            "id": id,
            "name": name,
            "timeout_ms": timeout_ms,
            "yield_ms": yield_ms,
            "max_calls": max_calls,
            "if_busy": if_busy,
            "request_id": request_id,
            "fields": fields,
            "view": view,
        })

    def kernel_interrupt(self, *, id=None, name=None, grace_ms=None):
        """Interrupt the cell that runs.

        SIGINT to the group of the interpreter, as Ctrl-C in a terminal. A kernel whose cell goes on for
        `grace_ms` is killed.

        id: The kernel. Either this or `name`.
        grace_ms: Kill the kernel if the cell has not ended after this time. Default: 2000.
        """
        return self._call("kernel.interrupt", {
            "id": id,
            "name": name,
            "grace_ms": grace_ms,
        })

    def kernel_reset(self, *, id=None, name=None, grace_ms=None):
        """Give a kernel a new interpreter.

        Its id and its log stay, its state is gone. A cell that runs is interrupted, cells that wait do not
        run.

        id: The kernel. Either this or `name`.
        grace_ms: The time in which a running cell ends by itself when it is interrupted. Default: 2000.
        """
        return self._call("kernel.reset", {
            "id": id,
            "name": name,
            "grace_ms": grace_ms,
        })

    def kernel_close(self, *, id=None, name=None, grace_ms=None):
        """End a kernel.

        Its authority ends, then its calls, then its tree.

        id: The kernel. Either this or `name`.
        grace_ms: The time between SIGTERM and SIGKILL. Default: 5000.
        """
        return self._call("kernel.close", {
            "id": id,
            "name": name,
            "grace_ms": grace_ms,
        })

    def sandbox_probe(self):
        """Check the sandbox of this machine.

        Tries forbidden acts in a confined process, under each mechanism, and returns what was seen.
        `daemon.info` has the last result.
        """
        return self._call("sandbox.probe", {})

    def daemon_info(self):
        """Return the state of the daemon.

        Its version, counts, limits and paths, and the features of this system.
        """
        return self._call("daemon.info", {})

    def daemon_shutdown(self, *, kill=False):
        """Stop the daemon.

        Processes keep running, unless `kill` is true.

        kill: Also kill all processes.
        """
        return self._call("daemon.shutdown", {
            "kill": kill or None,
        })

    def rpc_discover(self):
        """Return the OpenRPC document of all methods and events.

        The same document as `proto/openrpc.json` of this version. The example is shortened.
        """
        return self._call("rpc.discover", {})


class AsyncMethods(Methods):
    """The same: `_call` returns an awaitable there."""
