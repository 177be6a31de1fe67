"""Tools that the asyncio client serves."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, Optional, Tuple

from . import _wire
from ._aio_connection import AsyncConnection, AsyncConnector
from ._tools import ANSWER_TIMEOUT, UNREGISTER, ToolCall, answer, failure
from .errors import ConnectionLost, TooldError


class AsyncProvider:
    """The registration of tools, with a task that serves it. It registers again after a lost connection."""

    def __init__(self, connector: AsyncConnector, invoke: Any, params: Dict[str, Any]) -> None:
        self._connector, self._invoke, self._params = connector, invoke, params
        self._connection: Optional[AsyncConnection] = None
        self._calls: "Dict[Any, Tuple[ToolCall, asyncio.Task[None]]]" = {}
        self._server: "Optional[asyncio.Task[None]]" = None
        self._answer: "Optional[asyncio.Future[Any]]" = None

    async def open(self) -> Any:
        result = await self._register(after_loss=False)
        self._server = asyncio.ensure_future(self._serve())
        return result

    async def _register(self, after_loss: bool) -> Any:
        connection = await self._connector.open(after_loss)
        try:
            await connection.send(_wire.request(0, "tools.register", self._params))
            result = _wire.result_of(await connection.receive())
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return result

    async def _serve(self) -> None:
        losses = 0
        while losses <= _wire.MAX_LOST_CONNECTIONS:
            connection = self._connection
            try:
                if connection is None:
                    await self._register(after_loss=True)
                    continue
                message = await connection.receive()
                losses = 0
            except _wire.Lost:
                losses += 1
                self._connection = None
                continue
            except TooldError:
                return
            method, params = message.get("method"), message.get("params") or {}
            if method == "tools.invoke":
                call = ToolCall(params)
                task = asyncio.ensure_future(self._run(connection, message["id"], call))
                self._calls[message["id"]] = (call, task)
            elif method == "$/cancelRequest" and params.get("id") in self._calls:
                cancelled, task = self._calls[params["id"]]
                cancelled.cancelled.set()
                task.cancel()
            elif method == "tools.replaced":
                return
            elif method is None and self._answer is not None and not self._answer.done():
                self._answer.set_result(message)

    async def unregister(self) -> Any:
        """Withdraws the tools, over the connection that offers them: no other one may."""
        self._answer = asyncio.get_running_loop().create_future()
        try:
            if self._connection is None:
                raise _wire.Lost(sent=False)
            await self._connection.send(_wire.request(UNREGISTER, "tools.unregister", {"provider": self._params["provider"]}))
            message = await asyncio.wait_for(self._answer, ANSWER_TIMEOUT)
        except (_wire.Lost, asyncio.TimeoutError):
            raise ConnectionLost(_wire.lost_message(self._connector.path, "tools.unregister", 1), "tools.unregister") from None
        finally:
            await self.close()
        return _wire.result_of(message)

    async def _run(self, connection: AsyncConnection, number: Any, call: ToolCall) -> None:
        try:
            result = self._invoke(call)
            if hasattr(result, "__await__"):
                result = await result
            message = answer(number, result)
        except asyncio.CancelledError as error:
            message = failure(number, error)
        except Exception as error:
            message = failure(number, error)
        self._calls.pop(number, None)
        try:
            await connection.send(message)
        except _wire.Lost:
            # The daemon ends the call by its own rules.
            pass

    async def close(self) -> None:
        for _, task in list(self._calls.values()):
            task.cancel()
        if self._server is not None:
            self._server.cancel()
            await asyncio.wait([self._server])
        if self._connection is not None:
            self._connection.close()
