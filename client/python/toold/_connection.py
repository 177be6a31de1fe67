"""The connection of the blocking client: requests, reconnection, and a pool that threads share."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
import weakref
from typing import Any, Dict, List, Mapping, Optional

from . import _wire
from .errors import ConnectionLost, DaemonUnreachable, TooldError

# Connections that wait for their next call. More than this are closed.
MAX_IDLE_CONNECTIONS = 8


class Connection:
    """One connection: requests out, answers and pushes in."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._received = bytearray()
        self._scanned = 0
        self._numbers = itertools.count(1)
        # Held by the thread that reads: the socket is not closed under it.
        self._reading = threading.RLock()
        self.pid = os.getpid()

    def is_alive(self) -> bool:
        """Reports whether an idle connection still has its daemon."""
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        # The end of the connection, or an answer that no call waits for.
        return False

    def send(self, message: bytes) -> None:
        try:
            self._socket.settimeout(None)
            self._socket.sendall(message)
        except OSError:
            raise _wire.Lost(sent=False) from None

    def receive(self, timeout: Optional[float] = None) -> Any:
        """Returns the next message. After a `socket.timeout` nothing is lost, and it can be called again."""
        with self._reading:
            return self._receive(None if timeout is None else time.monotonic() + timeout)

    def _receive(self, deadline: Optional[float]) -> Any:
        while True:
            end = self._received.find(b"\n", self._scanned)
            if end >= 0:
                line = bytes(self._received[:end])
                del self._received[: end + 1]
                self._scanned = 0
                return _wire.decode(line)
            self._scanned = len(self._received)
            try:
                self._socket.settimeout(None if deadline is None else max(1e-6, deadline - time.monotonic()))
                data = self._socket.recv(_wire.READ_SIZE)
            except socket.timeout:
                raise
            except OSError:
                data = b""
            if not data:
                raise _wire.Lost(sent=True)
            self._received += data

    def call(self, method: str, params: Mapping[str, Any], timeout: Optional[float] = None) -> Any:
        number = next(self._numbers)
        self.send(_wire.request(number, method, params))
        try:
            while True:
                answer = self.receive(timeout)
                # An answer without a number is to a message that the daemon refuses to read: one that is too long.
                if answer.get("id") in (number, None) and "method" not in answer:
                    return _wire.result_of(answer)
        except (_wire.Lost, TooldError):
            raise
        except BaseException:
            # Ctrl-C, for example: the daemon need not wait on for us.
            try:
                self.send(_wire.cancel(number))
            except _wire.Lost:
                pass
            self.close()
            raise

    def shutdown(self) -> None:
        """Ends the connection, also for a thread that waits for a message."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        with self._reading:
            self._socket.close()

    def close(self) -> None:
        self._socket.close()


class Connector:
    """The place of the daemon, and the permission to start it."""

    def __init__(self, path: str, autostart: bool, toolctl: Optional[str]) -> None:
        self.path, self.autostart, self.toolctl = path, autostart, toolctl

    def open(self, after_loss: bool = False) -> Connection:
        """Connects; starts the daemon first if no process listens. After a loss another may bring it back first."""
        patience = _wire.RESTART_WAIT if self.autostart else _wire.RESTART_WAIT_NO_AUTOSTART
        deadline = time.monotonic() + (patience if after_loss else 0)
        delay = _wire.RETRY_DELAY[0]
        while True:
            try:
                return self._open()
            except OSError as error:
                if isinstance(error, DaemonUnreachable):
                    raise
                if not _wire.is_not_listening(error):
                    raise DaemonUnreachable(f"{self.path}: {error.strerror}") from error
                failure = error
            if time.monotonic() >= deadline:
                break
            time.sleep(delay)
            delay = min(delay * 1.5, _wire.RETRY_DELAY[1])
        if not self.autostart:
            raise DaemonUnreachable(f"no daemon answers at {self.path}: {failure.strerror}") from failure
        _wire.start_daemon(self.path, self.toolctl)
        try:
            return self._open()
        except DaemonUnreachable:
            raise
        except OSError as error:
            raise DaemonUnreachable(f"{self.path}: {error.strerror}") from error

    def open_running(self, timeout: float) -> Connection:
        """Connects to a daemon that runs, and starts none."""
        return self._open(timeout)

    def _open(self, timeout: Optional[float] = None) -> Connection:
        owner = _wire.check_dir(self.path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(timeout)
            sock.connect(self.path)
            _wire.check_peer(sock, self.path, owner)
        except BaseException:
            sock.close()
            raise
        return Connection(sock)


class Pool:
    """Idle connections. A child of fork(2) begins with none: two processes must not share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: List[Connection] = []
        self._is_closed = False
        _POOLS.add(self)

    def reset(self) -> None:
        """Forgets the connections of the parent, without an effect on them. Its lock may be held by a thread that is not here."""
        self._lock = threading.Lock()
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def take(self) -> Optional[Connection]:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.is_alive():
                return connection
            connection.close()

    def give(self, connection: Connection) -> None:
        with self._lock:
            if connection.pid == os.getpid() and not self._is_closed and len(self._idle) < MAX_IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle, self._is_closed = self._idle, [], True
        for connection in idle:
            connection.close()


_POOLS: "weakref.WeakSet[Pool]" = weakref.WeakSet()


def _reset_pools() -> None:
    for pool in list(_POOLS):
        pool.reset()


os.register_at_fork(after_in_child=_reset_pools)


class Channel:
    """Calls over connections that are made again when they are lost."""

    def __init__(self, connector: Connector, pool: Optional[Pool]) -> None:
        self._connector, self._pool = connector, pool
        self._own: Optional[Connection] = None

    def _take(self, after_loss: bool) -> Connection:
        if self._pool is not None:
            return self._pool.take() or self._connector.open(after_loss)
        own, self._own = self._own, None
        if own is not None and own.pid == os.getpid():
            return own
        if own is not None:
            own.close()
        return self._connector.open(after_loss)

    def _give(self, connection: Connection) -> None:
        if self._pool is not None:
            self._pool.give(connection)
        else:
            self._own = connection

    def call(self, method: str, params: Dict[str, Any]) -> Any:
        begin, losses = time.monotonic(), 0
        while True:
            connection = self._take(after_loss=losses > 0)
            try:
                result = connection.call(method, _wire.shorten(method, params, time.monotonic() - begin) if losses else params)
            except _wire.Lost as lost:
                connection.close()
                losses += 1
                is_safe = not lost.sent or _wire.may_repeat(method, params)
                if not is_safe or losses > _wire.MAX_LOST_CONNECTIONS:
                    raise ConnectionLost(_wire.lost_message(self._connector.path, method, losses), method) from None
                continue
            except TooldError:
                self._give(connection)
                raise
            except BaseException:
                connection.close()
                raise
            self._give(connection)
            return result

    def close(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.close()
