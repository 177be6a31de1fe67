"""The connection of the asyncio client."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Optional

from . import _wire
from .errors import DaemonUnreachable


class AsyncConnection:
    """One connection: requests out, messages in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._received = bytearray()
        self._scanned = 0

    async def send(self, message: bytes) -> None:
        try:
            self._writer.write(message)
            await self._writer.drain()
        except (OSError, RuntimeError):
            raise _wire.Lost(sent=False) from None

    def post(self, message: bytes) -> None:
        """Sends without waiting: for a task that is being cancelled."""
        if not self._writer.is_closing():
            self._writer.write(message)

    async def receive(self) -> Any:
        """Returns the next message. A task that is cancelled here loses nothing."""
        while True:
            end = self._received.find(b"\n", self._scanned)
            if end >= 0:
                line = bytes(self._received[:end])
                del self._received[: end + 1]
                self._scanned = 0
                return _wire.decode(line)
            self._scanned = len(self._received)
            try:
                data = await self._reader.read(_wire.READ_SIZE)
            except OSError:
                data = b""
            if not data:
                raise _wire.Lost(sent=True)
            self._received += data

    def close(self) -> None:
        self._writer.close()


class AsyncConnector:
    """The place of the daemon, and the permission to start it."""

    def __init__(self, path: str, autostart: bool, toolctl: Optional[str]) -> None:
        self.path, self.autostart, self.toolctl = path, autostart, toolctl

    async def open(self, after_loss: bool = False) -> AsyncConnection:
        patience = _wire.RESTART_WAIT if self.autostart else _wire.RESTART_WAIT_NO_AUTOSTART
        deadline = time.monotonic() + (patience if after_loss else 0)
        delay = _wire.RETRY_DELAY[0]
        while True:
            try:
                return await self._open()
            except OSError as error:
                if isinstance(error, DaemonUnreachable):
                    raise
                if not _wire.is_not_listening(error):
                    raise DaemonUnreachable(f"{self.path}: {error.strerror}") from error
                failed = error
            if time.monotonic() >= deadline:
                break
            await asyncio.sleep(delay)
            delay = min(delay * 1.5, _wire.RETRY_DELAY[1])
        if not self.autostart:
            raise DaemonUnreachable(f"no daemon answers at {self.path}: {failed.strerror}") from failed
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, _wire.start_daemon, self.path, self.toolctl)
        try:
            return await self._open()
        except DaemonUnreachable:
            raise
        except OSError as error:
            raise DaemonUnreachable(f"{self.path}: {error.strerror}") from error

    async def _open(self) -> AsyncConnection:
        owner = _wire.check_dir(self.path)
        reader, writer = await asyncio.open_unix_connection(self.path)
        try:
            _wire.check_peer(writer.get_extra_info("socket"), self.path, owner)
        except BaseException:
            writer.close()
            raise
        return AsyncConnection(reader, writer)
