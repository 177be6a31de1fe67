"""The asyncio client: one connection for all calls, and one for each subscription."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import time
import uuid
from typing import Any, AsyncIterator, Dict, List, Mapping, Optional, Sequence, Tuple, Union, cast

from . import _flow, _wire
from ._aio_connection import AsyncConnection, AsyncConnector
from ._aio_tools import AsyncProvider
from ._fields import EventFields, ProcessFields
from ._methods import PROCESSES, AsyncMethods
from ._objects import EventState, ProcessState
from .errors import ConnectionLost, TooldError, WaitTimeout


class AsyncToold(AsyncMethods):
    """A client of the daemon for asyncio: the methods of `Toold`, to be awaited. Use it in one event loop."""

    def __init__(self, socket: Union[str, "os.PathLike[str]", None] = None, *, autostart: bool = True, toolctl: Optional[str] = None) -> None:
        self.socket = os.fspath(socket) if socket is not None else _wire.default_socket()
        self._connector = AsyncConnector(self.socket, autostart, toolctl)
        self._connection: Optional[AsyncConnection] = None
        self._connecting: "Optional[asyncio.Task[AsyncConnection]]" = None
        self._was_lost = False
        self._reader: "Optional[asyncio.Task[None]]" = None
        self._waiting: "Dict[int, asyncio.Future[Any]]" = {}
        self._lengths: Dict[int, int] = {}
        self._numbers = itertools.count(1)
        self._subscriptions: Dict[int, AsyncSubscription] = {}
        self._subscription_numbers = itertools.count(1)
        self._providers: Dict[str, AsyncProvider] = {}

    async def __aenter__(self) -> "AsyncToold":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.disconnect()

    async def disconnect(self) -> None:
        """Closes the connections. Processes go on."""
        for subscription in list(self._subscriptions.values()):
            await subscription.aclose()
        for provider in list(self._providers.values()):
            await provider.close()
        self._providers.clear()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            await asyncio.wait([reader])
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _connect(self) -> AsyncConnection:
        """Returns the connection. Several calls that find none share one attempt."""
        if self._connection is not None:
            return self._connection
        if self._connecting is None:
            self._connecting = asyncio.ensure_future(self._connector.open(self._was_lost))
            self._connecting.add_done_callback(self._connected)
        # A call that is cancelled here must not cancel the attempt of the others.
        return await asyncio.shield(self._connecting)

    def _connected(self, task: "asyncio.Task[AsyncConnection]") -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._connection = task.result()
            self._reader = asyncio.ensure_future(self._receive(self._connection))

    async def _receive(self, connection: AsyncConnection) -> None:
        try:
            while True:
                message = await connection.receive()
                number: Any = message.get("id")
                if number is None and "error" in message and self._lengths:
                    # The daemon refuses to read a message that is too long, and cannot know its number.
                    number = max(self._lengths, key=lambda one: self._lengths[one])
                waiting = self._waiting.pop(number, None) if isinstance(number, int) else None
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
        except _wire.Lost:
            self._was_lost = True
        finally:
            connection.close()
            if self._connection is connection:
                self._connection = None
            waiting_calls, self._waiting = self._waiting, {}
            for call in waiting_calls.values():
                if not call.done():
                    call.set_exception(_wire.Lost(sent=True))

    async def _request(self, method: str, params: Dict[str, Any]) -> Any:
        begin, losses = time.monotonic(), 0
        while True:
            try:
                sent = _wire.shorten(method, params, time.monotonic() - begin) if losses else params
                return _wire.result_of(await self._request_once(method, sent))
            except _wire.Lost as lost:
                losses += 1
                is_safe = not lost.sent or _wire.may_repeat(method, params)
                if not is_safe or losses > _wire.MAX_LOST_CONNECTIONS:
                    raise ConnectionLost(_wire.lost_message(self.socket, method, losses), method) from None

    async def _request_once(self, method: str, params: Dict[str, Any]) -> Any:
        connection = await self._connect()
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            message = _wire.request(number, method, params)
            self._lengths[number] = len(message)
            await connection.send(message)
            return await waiting
        except asyncio.CancelledError:
            connection.post(_wire.cancel(number))
            raise
        finally:
            self._waiting.pop(number, None)
            self._lengths.pop(number, None)
            if waiting.done() and not waiting.cancelled():
                # Read, so that asyncio does not report a loss that no call waits for any more.
                waiting.exception()

    async def call(self, method: str, **params: Any) -> Any:
        """Calls a method by its name on the wire, and returns its result unchanged."""
        return await self._request(method, _wire.prepare(method, params))

    async def _call(self, method: str, params: Dict[str, Any]) -> Any:
        if method == "events.subscribe":
            return await AsyncSubscription(self, params, None, None).open()
        if method == "events.unsubscribe":
            return await self._unsubscribe(params["subscription"])
        if method == "tools.register":
            return await self._register(params)
        if method == "tools.unregister" and params["provider"] in self._providers:
            return await self._providers.pop(params["provider"]).unregister()
        result = await self._request(method, _wire.prepare(method, params))
        return AsyncProcess(self, result) if method in PROCESSES else result

    async def _unsubscribe(self, subscription: Any) -> bool:
        known = self._subscriptions.get(getattr(subscription, "subscription", subscription))
        if known is None:
            return False
        await known.aclose()
        return True

    async def _register(self, params: Dict[str, Any]) -> Any:
        params = dict(params)
        provider = AsyncProvider(self._connector, params.pop("invoke"), _wire.prepare("tools.register", params))
        result = await provider.open()
        replaced = self._providers.pop(params["provider"], None)
        if replaced is not None:
            await replaced.close()
        self._providers[params["provider"]] = provider
        return result

    async def _drive(self, flow: _flow.Flow) -> Any:
        """Performs the calls of a flow and returns its result. It has no other steps."""
        result: List[Any] = []
        async for _ in self._steps(flow, result):
            pass
        return result[0]

    async def _steps(self, flow: _flow.Flow, result: Optional[List[Any]] = None) -> AsyncIterator[Any]:
        """Performs the calls of a flow and yields its other steps."""
        answered: Any = None
        failed: Optional[TooldError] = None
        while True:
            try:
                step = flow.throw(failed) if failed is not None else flow.send(answered)
            except StopIteration as end:
                if result is not None:
                    result.append(end.value)
                return
            answered, failed = None, None
            if isinstance(step, _flow.Call):
                try:
                    answered = await self._request(step.method, step.params)
                except TooldError as error:
                    failed = error
            else:
                yield step

    async def get(self, id: str) -> "AsyncProcess":
        """Returns a process by its id, its name or a unique prefix."""
        return await self.inspect(id=id)

    async def processes(self, **params: Any) -> "List[AsyncProcess]":
        """Returns the processes that `list` selects, the newest first."""
        return [AsyncProcess(self, cast(Dict[str, Any], one)) for one in (await self.list(**params))["processes"]]

    def events(
        self,
        *,
        types: Optional[Sequence[str]] = None,
        session_key: Optional[str] = None,
        task_id: Optional[str] = None,
        id: "Union[str, AsyncProcess, None]" = None,
        after: Optional[int] = None,
        output: bool = False,
        ansi: Optional[str] = None,
        consumer: Optional[str] = None,
        from_: Optional[str] = None,
    ) -> "AsyncSubscription":
        """Yields events as they come, without end. It subscribes at the first `async for`, or at `async with`.

        consumer: Begin after the last event that this consumer acknowledged. `AsyncEvent.ack` moves its position.
        from_: The first event of a consumer that is new: `oldest` (default) or `now`.
        The rest are the parameters of `events.subscribe`.
        """
        params: Dict[str, Any] = {"types": types, "session_key": session_key, "task_id": task_id, "id": id, "after": after}
        params.update(output=output or None, ansi=ansi)
        return AsyncSubscription(self, params, consumer, from_)

    async def run(
        self,
        args: Union[str, Sequence[Any]],
        *,
        input: Union[str, bytes, None] = None,
        capture_output: bool = False,
        text: bool = False,
        encoding: Optional[str] = None,
        errors: Optional[str] = None,
        timeout: Optional[float] = None,
        check: bool = False,
        shell: bool = False,
        cwd: Any = None,
        env: Optional[Mapping[Any, Any]] = None,
        **params: Any,
    ) -> "subprocess.CompletedProcess[Any]":
        """Runs a program like `subprocess.run`. See `Toold.run`."""
        codec = (encoding or "utf-8", errors or "strict") if text or encoding or errors else None
        data = input.encode(*(codec or ("utf-8",))) if isinstance(input, str) else input
        started = dict(_flow.run_params(args, shell, cwd, env), **params)
        started.update(stdin="null" if data is None else "pipe")
        process = AsyncProcess(self, await self._request("exec", _wire.prepare("exec", started)))
        collected: Dict[str, List[bytes]] = {}

        async def finish() -> None:
            if data is not None:
                await process._feed(data)
            async for _, stream, part in process.stream(raw=True):
                if capture_output:
                    collected.setdefault(stream, []).append(part)
                else:
                    await _write_out(stream, part)
            await process.wait()

        captured = ("stdout", "stderr") if capture_output else ()
        try:
            await asyncio.wait_for(finish(), timeout)
        except asyncio.TimeoutError:
            await process.kill(signal="SIGKILL", grace_ms=0)
            output = {name: b"".join(collected.get(name, ())) for name in captured}
            raise subprocess.TimeoutExpired(args, timeout or 0.0, output.get("stdout"), output.get("stderr")) from None
        return _flow.completed(args, process.fields, collected, captured, codec, check)


async def _write_out(stream: str, data: bytes) -> None:
    """Writes to our own stdout or stderr, in a thread: a terminal may be stopped."""
    fd = 2 if stream == "stderr" else 1
    loop = asyncio.get_running_loop()
    while data:
        data = data[await loop.run_in_executor(None, os.write, fd, data) :]


class AsyncProcess(ProcessState, ProcessFields):
    """A process: the fields of the last answer about it, and the methods that take its id."""

    def __init__(self, client: AsyncToold, fields: Dict[str, Any]) -> None:
        self._client = client
        self.fields = fields

    def _update(self, data: Mapping[str, Any]) -> "AsyncProcess":
        self.fields = type(self.fields)({**self.fields, **data})
        return self

    async def refresh(self) -> "AsyncProcess":
        """Asks the daemon for the fields again."""
        return self._update((await self._client.inspect(id=self.id)).fields)

    async def poll(self, **params: Any) -> "AsyncProcess":
        """`poll`: also `output` and `next_cursor`."""
        return self._update((await self._client.poll(id=self.id, **params)).fields)

    async def log(self, **params: Any) -> Any:
        return await self._client.log(id=self.id, **params)

    async def wait(self, timeout: Optional[float] = None, **params: Any) -> "AsyncProcess":
        """Waits for the exit, or for `until`. Raises `WaitTimeout` if the time is over; the process keeps running."""
        try:
            return self._update(await self._client._drive(_flow.wait(self.id, timeout, params)))
        except WaitTimeout as error:
            error.process = self._update(error.process)
            raise

    def follow(
        self, *, cursor: int = 0, stream: Optional[str] = None, ansi: Optional[str] = None, collapse: Optional[bool] = None
    ) -> AsyncIterator[str]:
        """Yields the lines of the output, from `cursor` on, until the output is closed."""
        return self._client._steps(_flow.lines(self.id, cursor, stream, ansi, collapse))

    def stream(self, *, raw: bool = False, cursor: int = 0, stream: Optional[str] = None) -> AsyncIterator[Tuple[int, str, Any]]:
        """Yields the output as it comes: cursor, stream, and text; with `raw`, bytes."""
        return self._client._steps(_flow.chunks(self.id, cursor, stream, raw))

    async def write(self, data: Union[str, bytes, None] = None, **params: Any) -> Any:
        """`write`, repeated after a lost connection and written once."""
        params.setdefault("write_id", uuid.uuid4().hex)
        return await self._client.write(id=self.id, **_wire.data_params(data), **params)

    async def submit(self, data: Union[str, bytes, None] = "", **params: Any) -> Any:
        """`submit`: the data and a newline."""
        params.setdefault("write_id", uuid.uuid4().hex)
        return await self._client.submit(id=self.id, **_wire.data_params(data), **params)

    async def _feed(self, data: bytes) -> None:
        """Writes all of stdin and closes it. A program that ends before is no error, as in `subprocess`."""
        from ._kinds import AlreadyExited, StdinUnavailable

        try:
            await self._client._drive(_flow.write_all(self.id, data, uuid.uuid4().hex))
            await self.close()
        except (AlreadyExited, StdinUnavailable):
            pass

    async def close(self) -> Any:
        """Closes stdin."""
        return await self._client.close(id=self.id)

    async def kill(self, **params: Any) -> Any:
        """Kills the whole tree. Returns the receipt: `status`, `signals_sent`, `survivors`, `exit_code`."""
        receipt = (await self._client.kill(id=self.id, **params))["results"][0]
        await self.refresh()
        return receipt

    async def send_signal(self, signal: Union[int, str]) -> Any:
        """Sends a signal to the group. `signal` is the attribute of the wire: the one that ended it."""
        return await self._client.signal(id=self.id, signal=str(int(signal)) if isinstance(signal, int) else signal)

    async def pause(self) -> "AsyncProcess":
        return self._update((await self._client.pause(id=self.id)).fields)

    async def resume(self) -> "AsyncProcess":
        return self._update((await self._client.resume(id=self.id)).fields)

    async def restart(self, **params: Any) -> "AsyncProcess":
        """Starts it again. Returns the new process."""
        return await self._client.restart(id=self.id, **params)

    async def resize(self, rows: int, cols: int) -> Any:
        return await self._client.resize(id=self.id, rows=rows, cols=cols)

    async def screen(self) -> Any:
        return await self._client.screen(id=self.id)

    async def inspect(self) -> "AsyncProcess":
        """`inspect`: also `tree`, `usage`, `log_path` and `env_names`."""
        return await self.refresh()

    async def forget(self) -> Any:
        return await self._client.forget(ids=[self.id])

    def events(self, **params: Any) -> "AsyncSubscription":
        """Subscribes to the events of this process."""
        return self._client.events(id=self.id, **params)


class AsyncEvent(EventState, EventFields):
    """An event of a subscription."""

    def __init__(self, client: AsyncToold, fields: Dict[str, Any], consumer: Optional[str]) -> None:
        self._client, self.fields, self.consumer = client, fields, consumer

    async def ack(self) -> Any:
        """Acknowledges this event and all before it, for the consumer of the subscription."""
        if self.consumer is None:
            raise TooldError("only an event of a consumer can be acknowledged: t.events(consumer=NAME)")
        return await self._client.events_ack(consumer=self.consumer, seq=self.seq)


class AsyncSubscription:
    """Events as they come. After a lost connection it goes on with the next number."""

    def __init__(self, client: AsyncToold, params: Mapping[str, Any], consumer: Optional[str], start: Optional[str]) -> None:
        self._client, self._consumer, self._start = client, consumer, start
        self._resume = _flow.Resume(_wire.prepare("events.subscribe", params))
        self._pushes: List[Dict[str, Any]] = []
        self._is_closed = False
        self._was_open = False
        self._connection: Optional[AsyncConnection] = None
        self.subscription = next(client._subscription_numbers)

    async def open(self) -> "AsyncSubscription":
        """Subscribes, if that has not happened yet."""
        if self._consumer is not None and self._resume.last is None:
            params = {"consumer": self._consumer, "limit": 1, "from": self._start}
            self._resume.last = (await self._client.call("events.next", **params))["position"]
        losses = 0
        while self._connection is None and not self._is_closed:
            connection = await self._client._connector.open(after_loss=self._was_open or losses > 0)
            try:
                await self._subscribe(connection)
            except _wire.Lost:
                connection.close()
                losses += 1
                if losses > _wire.MAX_LOST_CONNECTIONS:
                    message = _wire.lost_message(self._client.socket, "events.subscribe", losses)
                    raise ConnectionLost(message, "events.subscribe") from None
                continue
            except BaseException:
                connection.close()
                raise
            self._connection, self._was_open = connection, True
            self._client._subscriptions[self.subscription] = self
        return self

    async def _subscribe(self, connection: AsyncConnection) -> None:
        if self._resume.last is None:
            # Without a number a loss before the first event would lose events.
            await connection.send(_wire.request(0, "daemon.info", {}))
            self._resume.last = _wire.result_of(await connection.receive())["events"]["last"]
        await connection.send(_wire.request(1, "events.subscribe", self._resume.subscribe()))
        while True:
            message = await connection.receive()
            if message.get("method") == "events.event":
                self._pushes.extend(self._resume.receive(message["params"]["result"]))
            elif message.get("id") == 1:
                _wire.result_of(message)
                return

    def __aiter__(self) -> "AsyncSubscription":
        return self

    async def __anext__(self) -> AsyncEvent:
        while not self._is_closed:
            if self._pushes:
                return AsyncEvent(self._client, self._pushes.pop(0), self._consumer)
            connection = self._connection
            if connection is None:
                await self.open()
                continue
            try:
                message = await connection.receive()
            except _wire.Lost:
                connection.close()
                self._connection = None
                continue
            if message.get("method") == "events.event":
                self._pushes.extend(self._resume.receive(message["params"]["result"]))
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends the subscription."""
        self._is_closed = True
        self._client._subscriptions.pop(self.subscription, None)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def __aenter__(self) -> "AsyncSubscription":
        return await self.open()

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
