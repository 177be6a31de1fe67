"""An exception for each kind of error.

Generated from the list of methods by `UPDATE_GOLDEN=1 cargo test -p toold-proto clients`. Do not edit.
"""

from typing import Dict, Type

from .errors import RpcError


class ParseError(RpcError):
    """The message is not JSON."""

    kind = "parse_error"


class InvalidRequest(RpcError):
    """The message is JSON but not a JSON-RPC 2.0 request."""

    kind = "invalid_request"


class MethodNotFound(RpcError):
    """No such method."""

    kind = "method_not_found"


class InvalidParams(RpcError):
    """A parameter is wrong; data.param names it, data.problem is the message without the name."""

    kind = "invalid_params"


class Internal(RpcError):
    """An internal error of toold."""

    kind = "internal"


class NotFound(RpcError):
    """No such process, approval, grant or file; data.similar lists similar names of files."""

    kind = "not_found"


class AmbiguousId(RpcError):
    """The name or prefix matches more than one process; data.matches lists some."""

    kind = "ambiguous_id"


class AlreadyExited(RpcError):
    """The process has exited; data.process has the details."""

    kind = "already_exited"


class StdinUnavailable(RpcError):
    """No open stdin; data.reason is not_piped (started without one), closed, full (a terminal that takes no end-of-file now), or echo (a terminal that would show a secret)."""

    kind = "stdin_unavailable"


class Limit(RpcError):
    """A limit is reached; data.limit is its config key."""

    kind = "limit"


class Denied(RpcError):
    """Denied by policy; data.reason has the reason."""

    kind = "denied"


class SpawnFailed(RpcError):
    """The program could not start; data has step, errno and path."""

    kind = "spawn_failed"


class AlreadyExists(RpcError):
    """The name is in use; data.process is the running process."""

    kind = "already_exists"


class Unavailable(RpcError):
    """A feature is not available here; the message has the remedy."""

    kind = "unavailable"


class Conflict(RpcError):
    """The request_id was used to run something else, and data.process is what it started; or a decision names another digest than data.digest; or a file is not as expected, and data has its path and sha256."""

    kind = "conflict"


class AlreadyDecided(RpcError):
    """The approval was decided before; data.approval has who decided, and what."""

    kind = "already_decided"


class NoMatch(RpcError):
    """The file does not have the text; data.nearest lists the nearest places."""

    kind = "no_match"


class AmbiguousMatch(RpcError):
    """The file has the text more than once; data.matches lists lines."""

    kind = "ambiguous_match"


class OutcomeUnknown(RpcError):
    """The call may have happened, and nothing repeats it; data has call, tool, sent_at and what is known."""

    kind = "outcome_unknown"


class Timeout(RpcError):
    """The call took longer than its time and was ended; data has timeout_ms."""

    kind = "timeout"


class ToolFailed(RpcError):
    """The tool ran and reports a failure; data.result has its answer."""

    kind = "tool_failed"


class Cancelled(RpcError):
    """The client cancelled the call with `$/cancelRequest`; nothing happened to processes."""

    kind = "cancelled"


KINDS: Dict[str, Type[RpcError]] = {
    "parse_error": ParseError,
    "invalid_request": InvalidRequest,
    "method_not_found": MethodNotFound,
    "invalid_params": InvalidParams,
    "internal": Internal,
    "not_found": NotFound,
    "ambiguous_id": AmbiguousId,
    "already_exited": AlreadyExited,
    "stdin_unavailable": StdinUnavailable,
    "limit": Limit,
    "denied": Denied,
    "spawn_failed": SpawnFailed,
    "already_exists": AlreadyExists,
    "unavailable": Unavailable,
    "conflict": Conflict,
    "already_decided": AlreadyDecided,
    "no_match": NoMatch,
    "ambiguous_match": AmbiguousMatch,
    "outcome_unknown": OutcomeUnknown,
    "timeout": Timeout,
    "tool_failed": ToolFailed,
    "cancelled": Cancelled,
}
