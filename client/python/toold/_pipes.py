"""The streams of `toold.subprocess.Popen`: stdin by calls, output by a thread that copies it to descriptors."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import threading
import time
import uuid
from typing import Any, Dict, List, Optional, Sequence, Set

from . import _flow, _wire
from ._client import Toold
from ._connection import Channel
from ._kinds import AlreadyExited, StdinUnavailable

# Seconds that the end of this program waits, at most, until output that has arrived is in its files.
EXIT_FLUSH_TIMEOUT = 1.0


class Stdin(io.RawIOBase):
    """The stdin of a process. A write blocks while the program does not read, and fails when it has ended."""

    def __init__(self, channel: Channel, id: str) -> None:
        self._channel, self._id = channel, id
        self._key, self._offset = uuid.uuid4().hex, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(memoryview(data)[: _flow.WRITE_BYTES])
        while part:
            try:
                params = dict(_wire.data_params(part), id=self._id, write_id=f"{self._key}-{self._offset}")
                written: int = self._channel.call("write", params)["bytes_written"]
            except (AlreadyExited, StdinUnavailable) as error:
                raise BrokenPipeError(32, os.strerror(32)) from error
            self._offset += 1
            if written:
                return written
        return 0

    def close(self) -> None:
        if self.closed:
            return
        try:
            super().close()
        finally:
            with contextlib.suppress(AlreadyExited, StdinUnavailable):
                self._channel.call("close", {"id": self._id})


class Pump:
    """A thread that copies the output of a process to descriptors. It holds the program back while they are full."""

    def __init__(self, client: Toold, channel: Channel, id: str, targets: Dict[str, int], pipes: Sequence[str]) -> None:
        self._client, self._channel, self._id = client, channel, id
        self._targets, self._pipes = targets, pipes
        self._broken: List[str] = []
        self._changed = threading.Condition()
        self._cursor, self._is_done = 0, False
        self._failure: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._run, name=f"toold-{id}", daemon=True)
        _PUMPS.add(self)
        self._thread.start()

    def _run(self) -> None:
        try:
            flow = _flow.pages(self._id, 0, encoding="base64", spans=True, hold=True)
            for page in self._client._steps(flow, self._channel.call):
                for _, stream, data in _wire.page_parts(page):
                    self._write("stderr" if stream == "stderr" else "stdout", data)
                with self._changed:
                    self._cursor = page["next_cursor"]
                    self._changed.notify_all()
        except BaseException as error:
            self._failure = error
        finally:
            _PUMPS.discard(self)
            for fd in set(self._targets.values()):
                os.close(fd)
            self._channel.close()
            with self._changed:
                self._is_done = True
                self._changed.notify_all()

    def _write(self, stream: str, data: bytes) -> None:
        fd = self._targets.get(stream)
        if fd is None or stream in self._broken:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(fd, view) :]
        except BrokenPipeError:
            # The reader has gone: the program gets the signal that its own pipe would have given it.
            self._broken.append(stream)
            with contextlib.suppress(AlreadyExited):
                self._client.signal(id=self._id, signal="SIGPIPE")

    def wait(self, cursor: int, deadline: Optional[float]) -> bool:
        """Waits until all output up to a cursor is copied. Output to a pipe waits for its reader, not for this."""
        if len(self._pipes) == len(self._targets):
            return True
        with self._changed:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            done = self._changed.wait_for(lambda: self._is_done or self._cursor >= cursor, left)
        if self._failure is not None:
            raise self._failure
        return done

    def has_copied(self, cursor: int) -> bool:
        return self.wait(cursor, time.monotonic())

    def flush(self, deadline: float) -> None:
        """Waits until the files have all output that the daemon has now. A daemon that does not answer is not waited for."""
        # A child of fork(2) has this object, and not its thread.
        if len(self._pipes) == len(self._targets) or not self._thread.is_alive():
            return
        connection = self._client._connector.open_running(max(1e-3, deadline - time.monotonic()))
        try:
            params = {"id": self._id, "fields": ["cursor"]}
            cursor = connection.call("poll", params, max(1e-3, deadline - time.monotonic()))["cursor"]
        finally:
            connection.close()
        self.wait(cursor, deadline)


# The pumps whose threads run.
_PUMPS: Set[Pump] = set()


@atexit.register
def _flush_pumps() -> None:
    """Their threads end with this program: what they have not copied would be missing in its files."""
    deadline = time.monotonic() + EXIT_FLUSH_TIMEOUT
    for pump in list(_PUMPS):
        if time.monotonic() >= deadline:
            return
        # No caller is left who could do something about a failure.
        with contextlib.suppress(Exception):
            pump.flush(deadline)
