"""The errors of the client. `toold` also has one class for each kind of error of the daemon."""

from __future__ import annotations

from typing import Any, Dict, Optional

__all__ = ["ConnectionLost", "DaemonUnreachable", "OutputLost", "RpcError", "TooldError", "WaitTimeout"]


class TooldError(Exception):
    """Any error of this package."""


class RpcError(TooldError):
    """The daemon refused a call. Each kind of error is a subclass."""

    kind: Optional[str] = None

    def __init__(self, code: int, message: str, data: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data: Dict[str, Any] = data or {}

    def __reduce__(self) -> Any:
        return (type(self), (self.code, self.message, self.data))


class DaemonUnreachable(TooldError, ConnectionError):
    """No daemon answers, and none could be started."""


class ConnectionLost(TooldError, ConnectionError):
    """The daemon ended during a call that must not be repeated: it is not known whether the call had an effect."""

    def __init__(self, message: str, method: str) -> None:
        super().__init__(message)
        self.method = method

    def __reduce__(self) -> Any:
        return (type(self), (str(self), self.method))


class WaitTimeout(TooldError, TimeoutError):
    """The time of a wait is over. The process keeps running; `process` is its state."""

    def __init__(self, message: str, process: Any = None) -> None:
        super().__init__(message)
        self.process = process


class OutputLost(TooldError):
    """The log dropped a range of output before it was read. Go on with `cursor=error.to`."""

    def __init__(self, start: int, to: int) -> None:
        super().__init__(f"the log dropped the output from {start} to {to}; go on with cursor={to}")
        self.start = start
        self.to = to

    def __reduce__(self) -> Any:
        return (type(self), (self.start, self.to))
