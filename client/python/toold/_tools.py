"""Tools that a client serves: `tools.register` keeps a connection, over which the daemon asks for each call."""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Dict

from . import _wire
from .errors import ConnectionLost, RpcError, TooldError

# The code of an error that a tool raised and that is none of the daemon's own kinds.
TOOL_FAILED = -32012
# The number of the request that withdraws the tools.
UNREGISTER = 0
# Seconds that the daemon may take to answer it.
ANSWER_TIMEOUT = 30.0


class ToolCall(_wire.Record):
    """A call of a tool: `call`, `name`, `args`, `session_key`, `task_id`, `deadline`. `cancelled` is set when its time is over."""

    def __init__(self, params: Dict[str, Any]) -> None:
        super().__init__(params)
        self.__dict__["cancelled"] = threading.Event()


def answer(number: Any, result: Any) -> bytes:
    return _wire.encode({"jsonrpc": "2.0", "id": number, "result": result})


def failure(number: Any, error: BaseException) -> bytes:
    """Returns the answer for an exception. An `RpcError` keeps its code and data."""
    if isinstance(error, RpcError):
        body: Dict[str, Any] = {"code": error.code, "message": error.message, "data": dict(error.data)}
        if error.kind is not None:
            body["data"].setdefault("kind", error.kind)
    else:
        body = {"code": TOOL_FAILED, "message": f"{type(error).__name__}: {error}"}
    return _wire.encode({"jsonrpc": "2.0", "id": number, "error": body})


class Provider:
    """The registration of the blocking client, with a thread that serves it. It registers again after a lost connection."""

    def __init__(self, connector: Any, invoke: Callable[[ToolCall], Any], params: Dict[str, Any]) -> None:
        self._connector, self._invoke, self._params = connector, invoke, params
        self._send_lock = threading.Lock()
        self._calls: Dict[Any, ToolCall] = {}
        self._answers: "queue.Queue[Any]" = queue.Queue()
        self._is_closed = False
        self._connection: Any = None
        self.result = self._open(after_loss=False)
        threading.Thread(target=self._serve, name=f"toold-tools-{params['provider']}", daemon=True).start()

    def _open(self, after_loss: bool) -> Any:
        connection = self._connector.open(after_loss)
        try:
            result = connection.call("tools.register", self._params)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        if self._is_closed:
            connection.close()
        return result

    def _serve(self) -> None:
        while not self._is_closed:
            try:
                self._receive(self._connection)
            except _wire.Lost:
                self._connection.close()
                if not self._is_closed and not self._open_again():
                    return

    def _open_again(self) -> bool:
        """Registers again. Returns false if the daemon refuses, or is gone for good."""
        for _ in range(_wire.MAX_LOST_CONNECTIONS):
            try:
                self._open(after_loss=True)
                return True
            except _wire.Lost:
                continue
            except TooldError:
                return False
        return False

    def _receive(self, connection: Any) -> None:
        message = connection.receive()
        method, params = message.get("method"), message.get("params") or {}
        if method == "tools.invoke":
            call = self._calls[message["id"]] = ToolCall(params)
            threading.Thread(target=self._run, args=(connection, message["id"], call), daemon=True).start()
        elif method == "$/cancelRequest":
            cancelled = self._calls.get(params.get("id"))
            if cancelled is not None:
                cancelled.cancelled.set()
        elif method == "tools.replaced":
            self._is_closed = True
        elif method is None:
            self._answers.put(message)

    def _run(self, connection: Any, number: Any, call: ToolCall) -> None:
        try:
            message = answer(number, self._invoke(call))
        except Exception as error:
            message = failure(number, error)
        self._calls.pop(number, None)
        try:
            with self._send_lock:
                connection.send(message)
        except _wire.Lost:
            # The daemon ends the call by its own rules.
            pass

    def unregister(self) -> Any:
        """Withdraws the tools, over the connection that offers them: no other one may."""
        try:
            with self._send_lock:
                self._connection.send(_wire.request(UNREGISTER, "tools.unregister", {"provider": self._params["provider"]}))
            message = self._answers.get(timeout=ANSWER_TIMEOUT)
        except (_wire.Lost, queue.Empty):
            raise ConnectionLost(_wire.lost_message(self._connector.path, "tools.unregister", 1), "tools.unregister") from None
        finally:
            self.close()
        return _wire.result_of(message)

    def close(self) -> None:
        self._is_closed = True
        if self._connection is not None:
            self._connection.shutdown()
