"""The blocking client. Threads may share it: each call has a connection of its own while it runs."""

from __future__ import annotations

import itertools
import os
import socket
import time
import uuid
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, cast

from . import _flow, _wire
from ._connection import Channel, Connection, Connector, Pool
from ._fields import EventFields, ProcessFields
from ._methods import PROCESSES, Methods
from ._objects import EventState, ProcessState
from ._tools import Provider
from .errors import ConnectionLost, TooldError, WaitTimeout


class Toold(Methods):
    """A client of the daemon: one method for each of its methods, and `run`, `events`, `get`.

    socket: The daemon's socket. Default: as `toolctl`, from TOOLD_SOCKET, XDG_RUNTIME_DIR or TMPDIR.
    autostart: Start the daemon if none answers.
    toolctl: The program that starts it. Default: the one in PATH.
    """

    def __init__(self, socket: Union[str, "os.PathLike[str]", None] = None, *, autostart: bool = True, toolctl: Optional[str] = None) -> None:
        self.socket = os.fspath(socket) if socket is not None else _wire.default_socket()
        self._connector = Connector(self.socket, autostart, toolctl)
        self._pool = Pool()
        self._channel = Channel(self._connector, self._pool)
        self._subscriptions: Dict[int, Subscription] = {}
        self._subscription_numbers = itertools.count(1)
        self._providers: Dict[str, Provider] = {}

    def __enter__(self) -> "Toold":
        return self

    def __exit__(self, *exc: object) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Closes the connections. Processes go on."""
        for subscription in list(self._subscriptions.values()):
            subscription.close()
        for provider in list(self._providers.values()):
            provider.close()
        self._providers.clear()
        self._pool.close()

    def call(self, method: str, **params: Any) -> Any:
        """Calls a method by its name on the wire, and returns its result unchanged."""
        return self._channel.call(method, _wire.prepare(method, params))

    def _call(self, method: str, params: Dict[str, Any]) -> Any:
        if method == "events.subscribe":
            return Subscription(self, params, None)
        if method == "events.unsubscribe":
            return self._unsubscribe(params["subscription"])
        if method == "tools.register":
            return self._register(params)
        if method == "tools.unregister" and params["provider"] in self._providers:
            return self._providers.pop(params["provider"]).unregister()
        result = self._channel.call(method, _wire.prepare(method, params))
        return Process(self, result) if method in PROCESSES else result

    def _unsubscribe(self, subscription: Any) -> bool:
        number = getattr(subscription, "subscription", subscription)
        known = self._subscriptions.get(number)
        if known is None:
            return False
        known.close()
        return True

    def _register(self, params: Dict[str, Any]) -> Any:
        params = dict(params)
        provider = Provider(self._connector, params.pop("invoke"), _wire.prepare("tools.register", params))
        replaced = self._providers.pop(params["provider"], None)
        if replaced is not None:
            replaced.close()
        self._providers[params["provider"]] = provider
        return provider.result

    def _drive(self, flow: _flow.Flow, call: Optional[Callable[..., Any]] = None) -> Any:
        """Performs the calls of a flow and returns its result."""
        steps = self._steps(flow, call)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value

    def _steps(self, flow: _flow.Flow, call: Optional[Callable[..., Any]] = None) -> Any:
        """Performs the calls of a flow and yields its other steps."""
        call = call or self._channel.call
        answer: Any = None
        failure: Optional[TooldError] = None
        while True:
            try:
                step = flow.throw(failure) if failure is not None else flow.send(answer)
            except StopIteration as end:
                return end.value
            answer, failure = None, None
            if isinstance(step, _flow.Call):
                try:
                    answer = call(step.method, step.params)
                except TooldError as error:
                    failure = error
            else:
                yield step

    def get(self, id: str) -> "Process":
        """Returns a process by its id, its name or a unique prefix."""
        return self.inspect(id=id)

    def processes(self, **params: Any) -> "List[Process]":
        """Returns the processes that `list` selects, the newest first."""
        return [Process(self, cast(Dict[str, Any], one)) for one in self.list(**params)["processes"]]

    def events(
        self,
        *,
        types: Optional[Sequence[str]] = None,
        session_key: Optional[str] = None,
        task_id: Optional[str] = None,
        id: "Union[str, Process, None]" = None,
        after: Optional[int] = None,
        output: bool = False,
        ansi: Optional[str] = None,
        consumer: Optional[str] = None,
        from_: Optional[str] = None,
    ) -> "Subscription":
        """Subscribes to events, and yields them as they come, without end.

        consumer: Begin after the last event that this consumer acknowledged. `Event.ack` moves its position.
        from_: The first event of a consumer that is new: `oldest` (default) or `now`.
        The rest are the parameters of `events.subscribe`.
        """
        params: Dict[str, Any] = {"types": types, "session_key": session_key, "task_id": task_id, "id": id, "after": after}
        params.update(output=output or None, ansi=ansi)
        if consumer is not None and after is None:
            params["after"] = self.call("events.next", consumer=consumer, limit=1, **{"from": from_})["position"]
        return Subscription(self, params, consumer)

    def run(
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
    ) -> Any:
        """Runs a program like `subprocess.run`: here, with this environment, its output on our own streams.

        It belongs to the daemon: it goes on if this program ends. If the time is over, it is killed. Other parameters are those of
        `exec`, such as `name`, `limits` and `session_key`.
        """
        from .subprocess import run

        return run(
            args, input=input, capture_output=capture_output, text=text or None, encoding=encoding, errors=errors,
            timeout=timeout, check=check, shell=shell, cwd=cwd, env=env, client=self, params=params,
        )  # fmt: skip


class Process(ProcessState, ProcessFields):
    """A process: the fields of the last answer about it, and the methods that take its id."""

    def __init__(self, client: Toold, fields: Dict[str, Any]) -> None:
        self._client = client
        self.fields = fields

    def _update(self, data: Mapping[str, Any]) -> "Process":
        self.fields = type(self.fields)({**self.fields, **data})
        return self

    def refresh(self) -> "Process":
        """Asks the daemon for the fields again."""
        return self._update(self._client.inspect(id=self.id).fields)

    def poll(self, **params: Any) -> "Process":
        """`poll`: also `output` and `next_cursor`."""
        return self._update(self._client.poll(id=self.id, **params).fields)

    def log(self, **params: Any) -> Any:
        return self._client.log(id=self.id, **params)

    def wait(self, timeout: Optional[float] = None, **params: Any) -> "Process":
        """Waits for the exit, or for `until`. Raises `WaitTimeout` if the time is over; the process keeps running."""
        try:
            return self._update(self._client._drive(_flow.wait(self.id, timeout, params)))
        except WaitTimeout as error:
            error.process = self._update(error.process)
            raise

    def follow(
        self, *, cursor: int = 0, stream: Optional[str] = None, ansi: Optional[str] = None, collapse: Optional[bool] = None
    ) -> Iterator[str]:
        """Yields the lines of the output, from `cursor` on, until the output is closed."""
        flow = _flow.lines(self.id, cursor, stream, ansi, collapse)
        steps: Iterator[str] = self._client._steps(flow)
        return steps

    def stream(self, *, raw: bool = False, cursor: int = 0, stream: Optional[str] = None) -> Iterator[Tuple[int, str, Any]]:
        """Yields the output as it comes: cursor, stream, and text; with `raw`, bytes."""
        steps: Iterator[Tuple[int, str, Any]] = self._client._steps(_flow.chunks(self.id, cursor, stream, raw))
        return steps

    def write(self, data: Union[str, bytes, None] = None, **params: Any) -> Any:
        """`write`, repeated after a lost connection and written once."""
        params.setdefault("write_id", uuid.uuid4().hex)
        return self._client.write(id=self.id, **_wire.data_params(data), **params)

    def submit(self, data: Union[str, bytes, None] = "", **params: Any) -> Any:
        """`submit`: the data and a newline."""
        params.setdefault("write_id", uuid.uuid4().hex)
        return self._client.submit(id=self.id, **_wire.data_params(data), **params)

    def close(self) -> Any:
        """Closes stdin."""
        return self._client.close(id=self.id)

    def kill(self, **params: Any) -> Any:
        """Kills the whole tree. Returns the receipt: `status`, `signals_sent`, `survivors`, `exit_code`."""
        receipt = self._client.kill(id=self.id, **params)["results"][0]
        self.refresh()
        return receipt

    def send_signal(self, signal: Union[int, str]) -> Any:
        """Sends a signal to the group. `signal` is the attribute of the wire: the one that ended it."""
        return self._client.signal(id=self.id, signal=str(int(signal)) if isinstance(signal, int) else signal)

    def pause(self) -> "Process":
        return self._update(self._client.pause(id=self.id).fields)

    def resume(self) -> "Process":
        return self._update(self._client.resume(id=self.id).fields)

    def restart(self, **params: Any) -> "Process":
        """Starts it again. Returns the new process."""
        return self._client.restart(id=self.id, **params)

    def resize(self, rows: int, cols: int) -> Any:
        return self._client.resize(id=self.id, rows=rows, cols=cols)

    def screen(self) -> Any:
        return self._client.screen(id=self.id)

    def inspect(self) -> "Process":
        """`inspect`: also `tree`, `usage`, `log_path` and `env_names`."""
        return self.refresh()

    def forget(self) -> Any:
        return self._client.forget(ids=[self.id])

    def events(self, **params: Any) -> "Subscription":
        """Subscribes to the events of this process."""
        return self._client.events(id=self.id, **params)


class Event(EventState, EventFields):
    """An event of a subscription."""

    def __init__(self, client: Toold, fields: Dict[str, Any], consumer: Optional[str]) -> None:
        self._client, self.fields, self.consumer = client, fields, consumer

    def ack(self) -> Any:
        """Acknowledges this event and all before it, for the consumer of the subscription."""
        if self.consumer is None:
            raise TooldError("only an event of a consumer can be acknowledged: t.events(consumer=NAME)")
        return self._client.events_ack(consumer=self.consumer, seq=self.seq)


class Subscription:
    """Events as they come. After a lost connection it goes on with the next number."""

    def __init__(self, client: Toold, params: Mapping[str, Any], consumer: Optional[str]) -> None:
        self._client, self._consumer = client, consumer
        self._resume = _flow.Resume(_wire.prepare("events.subscribe", params))
        self._pushes: List[Dict[str, Any]] = []
        self._is_closed = False
        self.subscription = next(client._subscription_numbers)
        self._connection: Optional[Connection] = None
        self._open()
        client._subscriptions[self.subscription] = self

    def _open(self) -> None:
        losses = 0
        while True:
            connection = self._client._connector.open(after_loss=self._connection is not None or losses > 0)
            try:
                if self._resume.last is None:
                    # Without a number a loss before the first event would lose events.
                    self._resume.last = connection.call("daemon.info", {})["events"]["last"]
                self._number = self._subscribe(connection)
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
            self._connection = connection
            return

    def _subscribe(self, connection: Connection) -> Any:
        """Subscribes. Events may come before the answer."""
        connection.send(_wire.request(0, "events.subscribe", self._resume.subscribe()))
        while True:
            message = connection.receive()
            if message.get("method") == "events.event":
                self._pushes.extend(self._resume.receive(message["params"]["result"]))
            elif message.get("id") == 0:
                return _wire.result_of(message)

    def __iter__(self) -> "Subscription":
        return self

    def __next__(self) -> Event:
        event = self.next()
        if event is None:
            raise StopIteration
        return event

    def next(self, timeout: Optional[float] = None) -> Optional[Event]:
        """Returns the next event. None after `close`. Raises `WaitTimeout` if the time is over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._is_closed:
            if self._pushes:
                return Event(self._client, self._pushes.pop(0), self._consumer)
            connection = self._connection
            if connection is None or connection.pid != os.getpid():
                if connection is not None:
                    connection.close()
                self._open()
                continue
            try:
                message = connection.receive(None if deadline is None else max(0.0, deadline - time.monotonic()))
            except socket.timeout:
                raise WaitTimeout(f"no event came within {timeout} s") from None
            except _wire.Lost:
                if self._is_closed:
                    break
                connection.close()
                self._open()
                continue
            if message.get("method") == "events.event":
                self._pushes.extend(self._resume.receive(message["params"]["result"]))
        return None

    def close(self) -> None:
        """Ends the subscription. A thread that waits in `next` gets None."""
        self._is_closed = True
        self._client._subscriptions.pop(self.subscription, None)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.shutdown()

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
