"""What both clients need of the protocol: where the daemon is, how to start it, messages, and which calls may be repeated."""

from __future__ import annotations

import base64
import errno
import json
import os
import shutil
import socket
import stat
import struct
import subprocess
import uuid
from typing import Any, Dict, Mapping, Optional, Tuple

from ._kinds import KINDS
from ._methods import KEYS, REPEATABLE
from .errors import DaemonUnreachable, RpcError

# Connections that may be lost in a row without an answer between: more means that the daemon dies of this call.
MAX_LOST_CONNECTIONS = 5
# Seconds that, after a loss, systemd or an upgrade may take to bring the daemon back before the client starts it.
RESTART_WAIT = 1.0
# The same when the client may not start it.
RESTART_WAIT_NO_AUTOSTART = 10.0
# The first delay between two tries to connect, and the longest.
RETRY_DELAY = (0.002, 0.1)
# Seconds that `toolctl` may take to start a daemon.
START_TIMEOUT = 30.0
# Bytes that one read of a socket takes.
READ_SIZE = 1 << 16
# The parameter that limits how long a call waits. A repeated call waits for the rest.
WAITS = {"wait": "timeout_ms", "poll": "wait_ms", "events.next": "wait_ms", "script.result": "wait_ms"}


class Record(Dict[str, Any]):
    """An object of the wire: a dictionary whose keys are also attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name[:-1] if name == "from_" else name]
        except KeyError:
            raise AttributeError(name) from None


class Lost(Exception):
    """The connection ended. `sent` is false if the daemon cannot have seen the request."""

    def __init__(self, sent: bool) -> None:
        super().__init__(sent)
        self.sent = sent


def default_socket() -> str:
    """Returns the path of the socket, as `toolctl` does."""
    path = os.environ.get("TOOLD_SOCKET")
    if path:
        return path
    run = os.environ.get("XDG_RUNTIME_DIR")
    if run:
        return os.path.join(run, "toold", "toold.sock")
    tmp = os.environ.get("TMPDIR") or "/tmp"
    return os.path.join(tmp, f"toold-{os.getuid()}", "toold.sock")


def is_not_listening(error: OSError) -> bool:
    """Reports whether no process listens there: the one case in which starting a daemon helps."""
    return error.errno in (errno.ENOENT, errno.ECONNREFUSED)


def check_dir(path: str) -> int:
    """Checks that only this user can put a socket there. Returns the owner of the directory, who may listen."""
    own, directory = os.geteuid(), os.path.dirname(os.path.abspath(path))
    try:
        found = os.lstat(directory)
    except OSError:
        return own
    problem = None
    if stat.S_ISLNK(found.st_mode) or not stat.S_ISDIR(found.st_mode):
        problem = "is not a directory; choose another socket with TOOLD_SOCKET"
    elif found.st_uid not in (own, 0) and not (own == 0 and _is_of_user(os.path.dirname(directory), found.st_uid)):
        problem = f"belongs to uid {found.st_uid}, and you are uid {own}; set TOOLD_SOCKET to a place of your own"
    elif found.st_mode & 0o022:
        problem = f"has mode {found.st_mode & 0o7777:03o}, so others can put a socket there; use a directory of your own"
    if problem:
        raise DaemonUnreachable(f"nothing was sent to {path}: {directory} {problem}")
    return found.st_uid


def _is_of_user(parent: str, owner: int) -> bool:
    try:
        found = os.lstat(parent)
    except OSError:
        return False
    return found.st_uid == owner and stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o022


def check_peer(connection: socket.socket, path: str, owner: int) -> None:
    """Refuses a listener of another user, before a byte is sent."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return
    uid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))[1]
    if uid not in (os.geteuid(), 0, owner):
        raise DaemonUnreachable(f"nothing was sent to {path}: uid {uid} listens there, and you are uid {os.geteuid()}")


def start_daemon(path: str, toolctl: Optional[str]) -> None:
    """Starts the daemon with `toolctl`, which waits until it answers."""
    program = toolctl or shutil.which("toolctl")
    if program is None:
        raise DaemonUnreachable(
            f"no daemon answers at {path}, and toolctl is not in PATH: install it, or start toold yourself"
        )
    env = dict(os.environ, TOOLD_SOCKET=os.path.abspath(path))
    try:
        done = subprocess.run(
            [program, "info", "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=env,
            timeout=START_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DaemonUnreachable(f"no daemon answers at {path}, and {program} could not start one: {error}") from error
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()
        raise DaemonUnreachable(f"no daemon answers at {path}: {why}")


def encode(message: Mapping[str, Any]) -> bytes:
    # A text that is not Unicode fails here, with a UnicodeEncodeError that names the place.
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def request(number: int, method: str, params: Mapping[str, Any]) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def cancel(number: int) -> bytes:
    return encode({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})


def decode(line: bytes) -> Any:
    return json.loads(line, object_hook=Record)


def result_of(answer: Mapping[str, Any]) -> Any:
    """Returns the result of an answer, or raises its error."""
    error = answer.get("error")
    if error is None:
        return answer.get("result")
    data = error.get("data") or {}
    raise KINDS.get(str(data.get("kind")), RpcError)(error["code"], error["message"], data)


def prepare(method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the parameters as they are sent: those that were given, with ids in place of processes."""
    sent = {name: _plain(value) for name, value in params.items() if value is not None}
    if sent.get("cwd") is not None and method != "session.configure":
        sent["cwd"] = os.path.abspath(sent["cwd"])
    if method in ("exec", "policy.check") and isinstance(sent.get("command"), (list, tuple)):
        sent["argv"] = list(sent.pop("command"))
    if method == "exec":
        # With a key the call can be repeated after a crash of the daemon, and starts nothing twice.
        sent.setdefault("request_id", uuid.uuid4().hex)
    return sent


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return getattr(value, "_wire_id", value)


def may_repeat(method: str, params: Mapping[str, Any]) -> bool:
    """Reports whether a call may be sent again when it is not known whether the first one arrived."""
    return method in REPEATABLE or KEYS.get(method) in params


def shorten(method: str, params: Dict[str, Any], passed: float) -> Dict[str, Any]:
    """Returns the parameters of a repeated call, which waits for the rest of the time."""
    name = WAITS.get(method)
    if name is None or not params.get(name):
        return params
    return dict(params, **{name: max(1, params[name] - int(passed * 1000))})


def lost_message(path: str, method: str, tries: int) -> str:
    if tries > MAX_LOST_CONNECTIONS:
        return f"{path}: the daemon ended {tries} times in a row during `{method}`"
    return (
        f"the daemon at {path} ended during `{method}`, and it is not known whether the call had an effect: "
        "look, then call again"
    )


def data_params(data: Any) -> Dict[str, Any]:
    """Returns the parameters of `write` for a text or bytes."""
    if data is None:
        return {}
    if isinstance(data, str):
        return {"data": data}
    return {"data_base64": base64.b64encode(data).decode()}


def argument(value: Any, name: str) -> str:
    """Returns an argument of a program as text, which is all that the wire has."""
    text = os.fsdecode(value)
    if "\0" in text:
        raise ValueError("embedded null byte")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is not UTF-8: {value!r}; the daemon takes text only") from None
    return text


def environment(env: Mapping[Any, Any]) -> Dict[str, Any]:
    """Returns the parameters that give a process exactly these variables."""
    plain: Dict[str, str] = {}
    coded: Dict[str, str] = {}
    for name, value in env.items():
        raw, key = os.fsencode(value), argument(name, "the name of an environment variable")
        if not key or "=" in key:
            raise ValueError("illegal environment variable name")
        if b"\0" in raw:
            raise ValueError("embedded null byte")
        try:
            plain[key] = raw.decode()
        except UnicodeDecodeError:
            coded[key] = base64.b64encode(raw).decode()
    params: Dict[str, Any] = {"env": plain, "env_mode": "replace"}
    return dict(params, env_base64=coded) if coded else params


def return_code(process: Mapping[str, Any]) -> Optional[int]:
    """Returns the exit code as `subprocess` has it: the negative number of a signal."""
    code = process.get("exit_code")
    if code is not None and process.get("signal") is not None:
        return -(int(code) - 128)
    return code


def page_parts(page: Mapping[str, Any]) -> Tuple[Tuple[int, str, bytes], ...]:
    """Splits a page of bytes by stream: cursor, stream, bytes."""
    data, start = base64.b64decode(page["output"]), page["from"]
    parts = []
    for span in page.get("spans") or ():
        part = data[span["from"] - start : span["to"] - start]
        if part:
            parts.append((span["from"], span["stream"], part))
    return tuple(parts)
