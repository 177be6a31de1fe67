"""A client of toold, the daemon that owns background processes.

    from toold import Toold
    with Toold() as t:
        p = t.exec("make -j", cwd=".", name="build")
        for line in p.follow():
            print(line)
        print(p.wait().exit_code)
"""

from . import types
from ._aio import AsyncEvent, AsyncProcess, AsyncSubscription, AsyncToold
from ._client import Event, Process, Subscription, Toold
from ._kinds import (
    AlreadyDecided,
    AlreadyExists,
    AlreadyExited,
    AmbiguousId,
    AmbiguousMatch,
    Cancelled,
    Conflict,
    Denied,
    Internal,
    InvalidParams,
    InvalidRequest,
    Limit,
    MethodNotFound,
    NoMatch,
    NotFound,
    OutcomeUnknown,
    ParseError,
    SpawnFailed,
    StdinUnavailable,
    Timeout,
    ToolFailed,
    Unavailable,
)
from ._tools import ToolCall
from .errors import ConnectionLost, DaemonUnreachable, OutputLost, RpcError, TooldError, WaitTimeout

__version__ = "0.1.0"

__all__ = [
    "AlreadyDecided", "AlreadyExists", "AlreadyExited", "AmbiguousId", "AmbiguousMatch", "AsyncEvent", "AsyncProcess",
    "AsyncSubscription", "AsyncToold", "Cancelled", "Conflict", "ConnectionLost", "DaemonUnreachable", "Denied", "Event",
    "Internal", "InvalidParams", "InvalidRequest", "Limit", "MethodNotFound", "NoMatch", "NotFound", "OutcomeUnknown",
    "OutputLost", "ParseError", "Process", "RpcError", "SpawnFailed", "StdinUnavailable", "Subscription", "Timeout",
    "ToolCall", "ToolFailed", "Toold", "TooldError", "Unavailable", "WaitTimeout", "types",
]  # fmt: skip
