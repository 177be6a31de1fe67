"""A drop-in for `subprocess`: its programs belong to the daemon, and go on when this one ends.

    import toold.subprocess as subprocess

Different from the original: stdin is empty unless it is given; `stdin.fileno()` does not exist; a signal goes to the whole group, and
`kill` ends the whole tree; stdout and stderr end together; this program writes the files that are given or inherited as stdout and
stderr, until it ends; arguments are UTF-8; the umask is the daemon's. `preexec_fn`, `pass_fds`, `user`, `group`, `extra_groups`, `umask`
and `executable` without `shell` are refused.
"""

from __future__ import annotations

import contextlib
import errno
import io
import operator
import os
import selectors
import signal as signals
import threading
import time
from subprocess import DEVNULL, PIPE, STDOUT, CalledProcessError, CompletedProcess, SubprocessError, TimeoutExpired
from subprocess import list2cmdline as list2cmdline
from typing import IO, Any, Dict, Generic, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from . import _flow, _wire
from ._client import Process, Toold
from ._connection import Channel
from ._kinds import AlreadyExited, InvalidParams, SpawnFailed
from ._pipes import Pump, Stdin
from .errors import TooldError, WaitTimeout

__all__ = [
    "CalledProcessError", "CompletedProcess", "DEVNULL", "PIPE", "Popen", "STDOUT", "SubprocessError", "TimeoutExpired",
    "call", "check_call", "check_output", "getoutput", "getstatusoutput", "run",
]  # fmt: skip

# Bytes that one read of a pipe takes.
READ_BYTES = 1 << 15

# The fields that an exit needs.
EXIT_FIELDS = ["status", "exit_code", "signal", "reason", "cursor", "closed"]

T = TypeVar("T")

_default: Optional[Toold] = None
_default_lock = threading.Lock()


def _default_client() -> Toold:
    """Returns the client of this module: that of the environment, as for `toolctl`."""
    global _default
    with _default_lock:
        if _default is None or _default.socket != _wire.default_socket():
            if _default is not None:
                _default.disconnect()
            _default = Toold()
        return _default


def _after_fork() -> None:
    global _default_lock
    _default_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class Popen(Generic[T]):
    """A program that the daemon runs. The parameters are those of `subprocess.Popen`.

    client: The client to use. Default: one for the environment, as `toolctl`.
    params: Further parameters of `exec`, such as `name` and `session_key`.
    """

    def __init__(
        self,
        args: Union[str, bytes, "os.PathLike[Any]", Sequence[Any]],
        bufsize: int = -1,
        executable: Any = None,
        stdin: Union[int, IO[Any], None] = None,
        stdout: Union[int, IO[Any], None] = None,
        stderr: Union[int, IO[Any], None] = None,
        preexec_fn: Any = None,
        close_fds: bool = True,
        shell: bool = False,
        cwd: Any = None,
        env: Optional[Mapping[Any, Any]] = None,
        universal_newlines: Optional[bool] = None,
        startupinfo: Any = None,
        creationflags: int = 0,
        restore_signals: bool = True,
        start_new_session: bool = False,
        pass_fds: Sequence[int] = (),
        *,
        text: Optional[bool] = None,
        encoding: Optional[str] = None,
        errors: Optional[str] = None,
        user: Any = None,
        group: Any = None,
        extra_groups: Any = None,
        umask: int = -1,
        pipesize: int = -1,
        process_group: Optional[int] = None,
        client: Optional[Toold] = None,
        params: Optional[Mapping[str, Any]] = None,
    ) -> None:
        refused = {"preexec_fn": preexec_fn, "pass_fds": pass_fds, "user": user, "group": group, "extra_groups": extra_groups}
        refused.update(startupinfo=startupinfo, creationflags=creationflags, umask=umask if umask >= 0 else None)
        for name, value in refused.items():
            if value:
                raise ValueError(f"{name} is not supported: the daemon starts the program")
        if not isinstance(bufsize, int):
            raise TypeError("bufsize must be an integer")
        if text is not None and universal_newlines is not None and bool(text) != bool(universal_newlines):
            raise SubprocessError("Cannot disambiguate when both text and universal_newlines are supplied but different.")
        self.args: Any = args
        self.returncode: Optional[int] = None
        self.stdin: Any = None
        self.stdout: Any = None
        self.stderr: Any = None
        self.encoding, self.errors = encoding, errors
        self.text_mode: Any = text or universal_newlines or encoding or errors
        self._client = client or _default_client()
        self._bufsize = bufsize
        self._chunks: Dict[str, List[bytes]] = {}
        self._writer: Optional[threading.Thread] = None
        self._started_communication = False
        if executable is not None and not shell:
            raise ValueError("executable is not supported without shell: give the program in args")
        started = _flow.run_params(args, shell, cwd, env)
        if executable is not None:
            started["argv"][0] = _wire.argument(executable, "executable")
        started.update(params or {})
        self._start(started, stdin, stdout, stderr)

    def _start(self, params: Dict[str, Any], stdin: Any, stdout: Any, stderr: Any) -> None:
        opened: List[int] = []
        readers: Dict[str, int] = {}
        try:
            source = _descriptor(stdin, opened, "stdin")
            targets = {}
            for name, given, own in (("stdout", stdout, 1), ("stderr", stderr, 2)):
                if given == STDOUT and name == "stderr":
                    params["merge"] = True
                elif given == PIPE:
                    readers[name], targets[name] = os.pipe()
                    opened += [readers[name], targets[name]]
                elif given != DEVNULL:
                    fd = own if given is None else _descriptor(given, [], name)
                    if fd is not None:
                        targets[name] = os.dup(fd)
                        opened.append(targets[name])
            params["stdin"] = "pipe" if stdin == PIPE or source is not None else "null"
            # The connection that starts the program holds it back until it has read: no byte is dropped.
            channel = Channel(self._client._connector, None)
            params["hold"] = bool(targets)
            try:
                data = channel.call("exec", _wire.prepare("exec", params))
            except BaseException as error:
                channel.close()
                if isinstance(error, (SpawnFailed, InvalidParams)):
                    raise _os_error(error, params) from error
                raise
        except BaseException:
            for fd in opened:
                os.close(fd)
            raise
        self.process = Process(self._client, data)
        self.pid: Optional[int] = self.process.pid
        self._pump = Pump(self._client, channel, self.process.id, targets, list(readers)) if targets else None
        if self._pump is None:
            channel.close()
        if stdin == PIPE:
            self.stdin = self._writer_of(Stdin(self._client._channel, self.process.id))
        elif source is not None:
            threading.Thread(target=self._feed, args=(source,), daemon=True).start()
        for name, fd in readers.items():
            setattr(self, name, self._reader_of(fd))

    def _writer_of(self, raw: io.RawIOBase) -> Any:
        is_line_buffered = self.text_mode and self._bufsize == 1
        size = -1 if is_line_buffered else self._bufsize
        stream: Any = raw if size == 0 else io.BufferedWriter(raw, io.DEFAULT_BUFFER_SIZE if size < 0 else size)
        if not self.text_mode:
            return stream
        return io.TextIOWrapper(
            stream, write_through=True, line_buffering=is_line_buffered, encoding=self.encoding, errors=self.errors
        )

    def _reader_of(self, fd: int) -> Any:
        stream: Any = open(fd, "rb", -1 if self.text_mode and self._bufsize == 1 else self._bufsize)
        return io.TextIOWrapper(stream, encoding=self.encoding, errors=self.errors) if self.text_mode else stream

    def _feed(self, source: int) -> None:
        """Copies a file to stdin."""
        raw = Stdin(self._client._channel, self.process.id)
        try:
            while True:
                data = memoryview(os.read(source, READ_BYTES))
                if not data:
                    break
                while data:
                    data = data[raw.write(data) :]
        except BrokenPipeError:
            pass
        finally:
            os.close(source)
            raw.close()

    @property
    def universal_newlines(self) -> Any:
        """The older name of `text_mode`."""
        return self.text_mode

    @universal_newlines.setter
    def universal_newlines(self, value: Any) -> None:
        self.text_mode = bool(value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: returncode: {self.returncode} args: {self.args!r}>"

    def __enter__(self) -> "Popen[T]":
        return self

    def __exit__(self, *exc: object) -> None:
        for stream in (self.stdout, self.stderr):
            if stream:
                stream.close()
        try:
            if self.stdin:
                self.stdin.close()
        finally:
            self.wait()

    def _finish(self, process: Mapping[str, Any], deadline: Optional[float]) -> bool:
        """Records the exit, once its output is copied to files."""
        if self._pump is not None and not self._pump.wait(process["cursor"], deadline):
            return False
        code = _wire.return_code(process)
        if code is None:
            raise TooldError(f"{self.process.id}: its exit is not known ({process.get('reason') or process.get('status')})")
        self.returncode = code
        self.process._update(process)
        return True

    def poll(self) -> Optional[int]:
        """Returns the exit code, or None while the program runs."""
        if self.returncode is None:
            process = self._client.poll(id=self.process, fields=EXIT_FIELDS).fields
            if process["status"] in ("exited", "lost"):
                self._finish(process, time.monotonic())
        return self.returncode

    def wait(self, timeout: Optional[float] = None) -> int:
        """Waits for the exit and returns its code."""
        deadline = _deadline(timeout)
        if self.returncode is None:
            try:
                process = self._client._drive(_flow.wait(self.process.id, timeout, {}))
            except WaitTimeout:
                raise TimeoutExpired(self.args, timeout or 0.0) from None
            if not self._finish(process, deadline):
                raise TimeoutExpired(self.args, timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Sends a signal to the group of the program. Nothing happens if it has ended, or the signal is 0."""
        if self.poll() is not None:
            return
        number = operator.index(sig)
        if not 0 <= number < signals.NSIG:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if number:
            with contextlib.suppress(AlreadyExited):
                self._client.signal(id=self.process, signal=_signal_name(number))

    def terminate(self) -> None:
        self.send_signal(signals.SIGTERM)

    def kill(self) -> None:
        """Kills the program and all of its descendants."""
        if self.poll() is None:
            self._client.kill(id=self.process, signal="SIGKILL", grace_ms=0)

    def communicate(self, input: Any = None, timeout: Optional[float] = None) -> Tuple[Any, Any]:
        """Writes `input`, reads all output and waits for the exit. After `TimeoutExpired` it can be called again."""
        if self._started_communication and input:
            raise ValueError("Cannot send input after starting communication")
        deadline = _deadline(timeout)
        outputs = [stream for stream in (self.stdout, self.stderr) if stream is not None]
        # `subprocess` reads a single stream to its end, without a record of it: a second time the stream is closed.
        is_single = timeout is None and not self._started_communication and self.stdin is None and len(outputs) == 1
        if is_single and outputs[0].closed:
            outputs[0].read()
        if not self._started_communication:
            self._start_writer(input)
        self._started_communication = not is_single
        self._read_all(timeout, deadline)
        if self._writer is not None:
            self._writer.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if self._writer.is_alive():
                self._raise_timeout(timeout)
        try:
            self.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        except TimeoutExpired:
            self._raise_timeout(timeout)
        return self._collected("stdout"), self._collected("stderr")

    def _start_writer(self, input: Any) -> None:
        if self.stdin is None:
            return
        if isinstance(input, str) and self.text_mode:
            input = input.encode(self.stdin.encoding, self.stdin.errors)
        elif input is not None and self.text_mode:
            raise TypeError("input must be a text in text mode")
        elif isinstance(input, str):
            raise TypeError("memoryview: a bytes-like object is required, not 'str'")

        def write() -> None:
            with contextlib.suppress(BrokenPipeError):
                if input:
                    self.stdin.flush()
                    stream = self.stdin.buffer if self.text_mode else self.stdin
                    stream.write(input)
                self.stdin.close()

        self._writer = threading.Thread(target=write, daemon=True)
        self._writer.start()

    def _read_all(self, timeout: Optional[float], deadline: Optional[float]) -> None:
        with selectors.DefaultSelector() as selector:
            for name in ("stdout", "stderr"):
                stream = getattr(self, name)
                if stream is not None and not stream.closed:
                    self._chunks.setdefault(name, []).append(_buffered(stream, self.text_mode))
                    selector.register(stream.fileno(), selectors.EVENT_READ, name)
            while selector.get_map():
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left < 0:
                    self._raise_timeout(timeout)
                for key, _ in selector.select(left):
                    data = os.read(key.fd, READ_BYTES)
                    self._chunks[key.data].append(data)
                    if not data:
                        selector.unregister(key.fd)
                        getattr(self, key.data).close()

    def _raise_timeout(self, timeout: Optional[float]) -> None:
        output = {name: b"".join(chunks) or None for name, chunks in self._chunks.items()}
        raise TimeoutExpired(self.args, timeout or 0.0, output.get("stdout"), output.get("stderr"))

    def _collected(self, name: str) -> Any:
        stream = getattr(self, name)
        if stream is None:
            return None
        data = b"".join(self._chunks.get(name, ()))
        if not self.text_mode:
            return data
        return data.decode(stream.encoding, stream.errors).replace("\r\n", "\n").replace("\r", "\n")


def _buffered(stream: Any, text: bool) -> bytes:
    """Returns what a reader has read from its pipe and not given out."""
    buffer = stream.buffer if text else stream
    if not hasattr(buffer, "peek"):
        return b""
    fd = buffer.fileno()
    os.set_blocking(fd, False)
    try:
        held = len(buffer.peek())
        return bytes(buffer.read1(held)) if held else b""
    finally:
        os.set_blocking(fd, True)


def _descriptor(given: Any, opened: List[int], name: str) -> Optional[int]:
    """Returns the descriptor of a file that was given for a stream. That of stdin is a copy."""
    if given is None or given in (PIPE, DEVNULL):
        return None
    if given == STDOUT:
        raise ValueError("STDOUT can only be used for stderr")
    fd = given if isinstance(given, int) else given.fileno()
    if name != "stdin":
        return int(fd)
    opened.append(os.dup(fd))
    return opened[-1]


def _deadline(timeout: Optional[float]) -> Optional[float]:
    """Returns the time at which a timeout is over. One that no lock can wait for, such as infinity, is never over."""
    return None if timeout is None or timeout >= threading.TIMEOUT_MAX else time.monotonic() + timeout


def _signal_name(sig: int) -> str:
    try:
        return signals.Signals(sig).name
    except ValueError:
        return str(int(sig))


def _os_error(error: Union[SpawnFailed, InvalidParams], params: Mapping[str, Any]) -> BaseException:
    """Returns the error that `subprocess` raises in such a case."""
    number = error.data.get("errno")
    if isinstance(error, SpawnFailed) and isinstance(number, int):
        path = params["cwd"] if error.data.get("step") in ("chdir", "cwd") else params["argv"][0]
        return OSError(number, os.strerror(number), path)
    if error.data.get("param") == "cwd":
        try:
            os.stat(os.path.join(params["cwd"], "."))
        except OSError as failure:
            return OSError(failure.errno, failure.strerror, params["cwd"])
    return error


def run(
    *popenargs: Any,
    input: Any = None,
    capture_output: bool = False,
    timeout: Optional[float] = None,
    check: bool = False,
    **kwargs: Any,
) -> "CompletedProcess[Any]":
    """Runs a program to its end, as `subprocess.run`."""
    if input is not None:
        if kwargs.get("stdin") is not None:
            raise ValueError("stdin and input arguments may not both be used.")
        kwargs["stdin"] = PIPE
    if capture_output:
        if kwargs.get("stdout") is not None or kwargs.get("stderr") is not None:
            raise ValueError("stdout and stderr arguments may not be used with capture_output.")
        kwargs.update(stdout=PIPE, stderr=PIPE)
    started: "Popen[Any]" = Popen(*popenargs, **kwargs)
    with started as process:
        try:
            stdout, stderr = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            process.wait()
            raise
    assert process.returncode is not None
    result: "CompletedProcess[Any]" = CompletedProcess(process.args, process.returncode, stdout, stderr)
    if check:
        result.check_returncode()
    return result


def call(*popenargs: Any, timeout: Optional[float] = None, **kwargs: Any) -> int:
    """Runs a program and returns its code."""
    started: "Popen[Any]" = Popen(*popenargs, **kwargs)
    with started as process:
        try:
            return process.wait(timeout=timeout)
        except BaseException:
            process.kill()
            raise


def check_call(*popenargs: Any, **kwargs: Any) -> int:
    """Runs a program. Raises `CalledProcessError` if its code is not 0."""
    code = call(*popenargs, **kwargs)
    if code:
        raise CalledProcessError(code, kwargs.get("args") or popenargs[0])
    return 0


def check_output(*popenargs: Any, timeout: Optional[float] = None, **kwargs: Any) -> Any:
    """Runs a program and returns its output. Raises `CalledProcessError` if its code is not 0."""
    for name in ("stdout", "check"):
        if name in kwargs:
            raise ValueError(f"{name} argument not allowed, it will be overridden.")
    if "input" in kwargs and kwargs["input"] is None:
        kwargs["input"] = "" if kwargs.get("text") or kwargs.get("universal_newlines") or kwargs.get("encoding") else b""
    return run(*popenargs, stdout=PIPE, timeout=timeout, check=True, **kwargs).stdout


def getstatusoutput(cmd: Any, *, encoding: Optional[str] = None, errors: Optional[str] = None) -> Tuple[int, str]:
    """Returns the code and the output of a command of the shell."""
    try:
        data = check_output(cmd, shell=True, text=True, stderr=STDOUT, encoding=encoding, errors=errors)
        code = 0
    except CalledProcessError as error:
        data, code = error.output, error.returncode
    return code, data[:-1] if data[-1:] == "\n" else data


def getoutput(cmd: Any, *, encoding: Optional[str] = None, errors: Optional[str] = None) -> str:
    """Returns the output of a command of the shell."""
    return getstatusoutput(cmd, encoding=encoding, errors=errors)[1]
