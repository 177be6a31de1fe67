"""The course of operations that take several calls, without input and output: both clients drive these generators.

A generator yields a `Call` and is sent its result, or yields anything else for its user.
"""

from __future__ import annotations

import codecs
import errno
import os
import subprocess
import time
from typing import Any, Dict, Generator, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._wire import argument, data_params, environment, page_parts, return_code
from .errors import OutputLost, WaitTimeout

# Milliseconds that one call waits: below `max_wait_ms` of any sensible config.
CALL_WAIT_MS = 600_000
# Bytes of a page of output.
PAGE_BYTES = 1 << 18
# Bytes of one write.
WRITE_BYTES = 1 << 16
# The fields of a page; a process may have large others.
PAGE_FIELDS = ["status", "closed", "output", "from", "next_cursor", "gap", "spans"]


class Call(NamedTuple):
    method: str
    params: Dict[str, Any]


Flow = Generator[Any, Any, Any]


def pages(id: str, cursor: int, **params: Any) -> Flow:
    """Yields the pages of the output until it is closed."""
    params.update(id=id, wait_ms=CALL_WAIT_MS, max_bytes=PAGE_BYTES, fields=PAGE_FIELDS)
    while True:
        page = yield Call("poll", dict(params, cursor=cursor))
        gap = page.get("gap")
        if gap:
            raise OutputLost(gap["from"], gap["to"])
        is_at_end = page["next_cursor"] <= cursor
        cursor = page["next_cursor"]
        yield page
        if is_at_end and (page["closed"] or page["status"] == "lost"):
            return


def lines(id: str, cursor: int, stream: Optional[str], ansi: Optional[str], collapse: Optional[bool]) -> Flow:
    """Yields the lines of the output, without their ends."""
    rest: List[str] = []
    params = {name: value for name, value in (("stream", stream), ("ansi", ansi), ("collapse", collapse)) if value is not None}
    source = pages(id, cursor, **params)
    answer = None
    while True:
        try:
            step = source.send(answer)
        except StopIteration:
            break
        answer = None
        if isinstance(step, Call):
            answer = yield step
            continue
        *whole, last = step["output"].split("\n")
        if whole:
            whole[0] = "".join(rest) + whole[0]
            rest = []
        rest.append(last)
        for line in whole:
            yield line[:-1] if line.endswith("\r") else line
    if any(rest):
        yield "".join(rest)


def chunks(id: str, cursor: int, stream: Optional[str], raw: bool) -> Flow:
    """Yields the output as it came: cursor, stream, and bytes or text."""
    decoders: Dict[str, Any] = {}
    params = {"stream": stream} if stream is not None else {}
    source = pages(id, cursor, encoding="base64", spans=True, **params)
    answer, end = None, cursor
    while True:
        try:
            step = source.send(answer)
        except StopIteration:
            break
        answer = None
        if isinstance(step, Call):
            answer = yield step
            continue
        for start, name, data in page_parts(step):
            end = start + len(data)
            if raw:
                yield start, name, data
                continue
            if name not in decoders:
                decoders[name] = codecs.getincrementaldecoder("utf-8")("replace")
            text = decoders[name].decode(data)
            if text:
                yield start, name, text
    for name, decoder in decoders.items():
        text = decoder.decode(b"", True)
        if text:
            yield end, name, text


def wait(id: str, timeout: Optional[float], params: Mapping[str, Any]) -> Flow:
    """Returns the process when it has exited, or another condition holds."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = CALL_WAIT_MS if deadline is None else (deadline - time.monotonic()) * 1000
        # The limits come before `int`: a timeout may be infinite.
        answer = yield Call("wait", dict(params, id=id, timeout_ms=int(max(1, min(left, CALL_WAIT_MS)))))
        process = answer["processes"][0]
        if answer["status"] != "timeout":
            return process
        if deadline is not None and time.monotonic() >= deadline:
            raise WaitTimeout(f"timed out after {timeout} s; the process keeps running", process)


def write_all(id: str, data: bytes, key: str) -> Flow:
    """Writes all bytes. Returns false if the program does not take them any more."""
    done = 0
    while done < len(data):
        part = data[done : done + WRITE_BYTES]
        params = dict(data_params(part), id=id, write_id=f"{key}-{done}")
        answer = yield Call("write", params)
        done += answer["bytes_written"]
    return True


class Output(NamedTuple):
    """A part of the output of `run`."""

    stream: str
    data: bytes


def run_params(args: Union[str, bytes, "os.PathLike[Any]", Sequence[Any]], shell: bool, cwd: Any, env: Optional[Mapping[Any, Any]]) -> Dict[str, Any]:
    """Returns the parameters that run a program as `subprocess` would: here, and with this environment."""
    parts: Sequence[Any] = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
    argv = (["/bin/sh", "-c"] if shell else []) + [argument(part, f"args[{at}]") for at, part in enumerate(parts)]
    if not argv:
        raise IndexError("list index out of range")
    params: Dict[str, Any] = {"argv": argv, "cwd": argument(os.getcwd() if cwd is None else os.path.abspath(os.fsdecode(cwd)), "cwd")}
    params.update(environment(os.environ if env is None else env))
    if not argv[0]:
        raise _empty_program(parts[0], params["cwd"], env)
    return params


def _empty_program(program: Any, cwd: str, env: Optional[Mapping[Any, Any]]) -> OSError:
    """Returns the error of `subprocess` for an empty name: it tries to execute each directory of PATH."""
    is_found = any(os.path.isdir(os.path.join(cwd, directory)) for directory in os.get_exec_path(env))
    number = errno.EACCES if is_found else errno.ENOENT
    return OSError(number, os.strerror(number), program)


def completed(
    args: Any, process: Mapping[str, Any], collected: Mapping[str, List[bytes]], captured: Sequence[str], encoding: Optional[Tuple[str, str]], check: bool
) -> "subprocess.CompletedProcess[Any]":
    """Returns the result of `run`, or raises its error."""
    outputs: Dict[str, Any] = {"stdout": None, "stderr": None}
    for name in captured:
        data = b"".join(collected.get(name, ()))
        outputs[name] = data if encoding is None else data.decode(*encoding).replace("\r\n", "\n").replace("\r", "\n")
    code = return_code(process)
    result: "subprocess.CompletedProcess[Any]" = subprocess.CompletedProcess(args, code if code is not None else -1, **outputs)
    if check:
        result.check_returncode()
    return result


class Resume:
    """The position of a subscription: what it has received, to go on from there after a lost connection."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = dict(params)
        self.last: Optional[int] = self.params.get("after")
        self.cursors: Dict[str, int] = {}

    def subscribe(self) -> Dict[str, Any]:
        return dict(self.params, after=self.last) if self.last is not None else dict(self.params)

    def receive(self, push: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
        """Yields a push, after one that reports output which was missed between two connections."""
        kind, id = push.get("type"), push.get("id")
        if "seq" in push:
            if self.last is not None and push["seq"] <= self.last:
                return
            self.last = push["seq"]
        if self.params.get("output") and isinstance(id, str):
            yield from self._missed(kind, id, push)
        yield push

    def _missed(self, kind: Any, id: str, push: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
        known = self.cursors.get(id)
        if kind == "started":
            self.cursors.setdefault(id, 0)
            return
        start = push.get("cursor") if kind == "output" else push.get("bytes") if kind == "closed" else None
        if start is None and kind != "lagged":
            return
        if known is not None and start is not None and start > known:
            yield type(push)({"type": "lagged", "of": "output", "id": id, "from": known, "to": start})
        if kind == "closed":
            self.cursors.pop(id, None)
        else:
            self.cursors[id] = push["to"] if kind == "lagged" else push["next_cursor"]
