"""Tools of toold as functions. Generated for this script: the functions at the end are what it may call.

    from toold_tools import terminal, tools, gather, result, ToolError

A call returns a dict or raises ToolError. `f.later(...)` is a call for `gather`; `await aio.f(...)` is for asyncio.
"""
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` costs more than this module, and `__future__` is a file too: annotations are strings.
    from typing import Any, Callable, Iterable, List, Literal, Optional


class ToolError(Exception):
    """A call that failed: `kind` and `data` are for programs, `message` is for people."""

    def __init__(self, message, kind="internal", data=None, tool=None, call=None):
        Exception.__init__(self, message)
        self.message, self.kind, self.data, self.tool, self.call = message, kind, data or {}, tool, call

    def __reduce__(self):
        return type(self), (self.message, self.kind, self.data, self.tool, self.call)


class ToolDenied(ToolError):
    """Policy, the user or the end of the script's authority refused the call."""


class _NoTool(ToolDenied, AttributeError):
    """A tool that is not there for this script; an AttributeError too, for `hasattr`."""


class ToolTimeout(ToolError):
    """The call took longer than its timeout."""


class ToolLimit(ToolError):
    """A limit is reached, for example the number of calls; `data` has its key."""


class ToolUnavailable(ToolError):
    """The tool or its provider is not there now."""


class ToolInvalid(ToolError):
    """An argument is wrong; `data` has the place."""


class ToolConflict(ToolError):
    """The state is not the one that the call expected."""


class ToolCancelled(ToolError):
    """The call was cancelled."""


class OutcomeUnknown(ToolError):
    """The call may have happened. Look before you repeat it."""


def _link():
    """Returns the link of this process. Its module is imported at the first use."""
    global _link
    import toold_link

    _link = toold_link.link
    return _link()


class Later:
    """A call that has not begun: an item for `gather`, or `run()` it."""

    __slots__ = ("tool", "args", "timeout")

    def __init__(self, tool, args, timeout=None):
        self.tool, self.args, self.timeout = tool, args, timeout

    def run(self):
        return _link().call(self.tool, self.args, self.timeout)

    __call__ = run

    def __repr__(self):
        return "<later %s %r>" % (self.tool, self.args)


def _tool(name, required=(), renamed=None, timed=True, more=None):
    """Makes a tool of a function that returns its own arguments."""

    def decorate(bind):
        def sort(given):
            timeout = given.pop("timeout", None) if timed else None
            rest = given.pop(more) if more else None
            for key in tuple(given):
                if given[key] is None and key not in required:
                    del given[key]  # an optional argument that was not given
            if renamed:
                given = {renamed.get(key, key): value for key, value in given.items()}
            if rest:
                given.update(rest)
            return name, given, timeout

        def later(*args, **kwargs):
            return Later(*sort(bind(*args, **kwargs)))

        def call(*args, **kwargs):
            return _link().call(*sort(bind(*args, **kwargs)))

        for function in (call, later):
            function.__name__, function.__doc__, function.__wrapped__ = bind.__name__, bind.__doc__, bind
            function.__qualname__ = bind.__qualname__ = bind.__name__
        call.later, call.tool = later, name
        _by_name[name] = call
        return call

    return decorate


_by_name = {}


class _Namespace:
    """Tools as attributes by identifier, and as items by their full names."""

    def __init__(self, path="", found=()):
        self.__dict__.update(found, _path=path)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        known = ", ".join(sorted(key for key in self.__dict__ if not key.startswith("_"))) or "none"
        raise _NoTool(
            "no tool %s%s for this script; there are: %s" % (self._path, name, known),
            "denied",
            {"kind": "denied", "reason": "not_allowed"},
            self._path + name,
        )

    def __getitem__(self, name):
        try:
            return _by_name[self._path + name]
        except KeyError:
            raise KeyError("no tool %s%s for this script" % (self._path, name)) from None

    def __dir__(self):
        return [key for key in self.__dict__ if not key.startswith("_")]

    def __repr__(self):
        return "<tools %s>" % ", ".join(sorted(name for name in _by_name if name.startswith(self._path)))


tools = _Namespace()


def result(value: "Any") -> None:
    """Sets the value of the script, a JSON value of at most 1 MiB. The last one counts."""
    _link().report({"value": value})


def artifact(path: "str") -> None:
    """Names a file that the script made for its caller."""
    import os

    _link().report({"artifact": {"path": os.path.abspath(path)}})


def note(text: "str") -> None:
    """Publishes a line on progress. Does not wait for the daemon."""
    _link().note({"note": str(text).encode("utf-8", "replace").decode()})


def gather(calls: "Iterable[Later]", parallel: "int" = 8) -> "List[Any]":
    """Runs calls made by `f.later(...)`, `parallel` at a time, and returns their results in order.

    All of them run to their end; then the first error of the list is raised, if there is one.
    """
    return _link().gather(list(calls), parallel)


def retry(fn: "Callable[[], Any]", times: "int" = 3, delay: "float" = 1.0, factor: "float" = 2.0, max_attempts: "Any" = None) -> "Any":
    """Calls `fn` (a function or `f.later(...)`) until it raises nothing, at most `times` times.

    Never repeats a ToolError of kind denied, limit, invalid_params or outcome_unknown.
    """
    times = max_attempts or times
    while True:
        try:
            return fn()
        except Exception as error:
            times -= 1
            if times < 1 or getattr(error, "kind", "") in ("denied", "limit", "invalid_params", "outcome_unknown"):
                raise
        import time

        time.sleep(delay)
        delay *= factor


def json_parse(text: "Any") -> "Any":
    """Parses JSON, also with raw tabs and newlines in strings. A dict or list is returned as it is."""
    if isinstance(text, (dict, list)):
        return text
    import json

    return json.loads(text, strict=False)


def shell_quote(text: "Any") -> "str":
    """Quotes a string for a POSIX shell."""
    text = str(text)
    if text and text.isascii() and not text.translate(_UNQUOTED):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


_UNQUOTED = dict.fromkeys(map(ord, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"))


def __getattr__(name):
    """Makes `args` and `aio` at their first use: both need modules that most scripts do not."""
    if name == "args":
        import json
        import os

        try:
            with open(os.path.join(os.environ.get("TOOLD_SCRIPT_DIR", ""), "args.json"), encoding="utf-8") as file:
                value = json.load(file)
        except FileNotFoundError:
            value = None
    elif name == "aio":
        import toold_aio

        value = toold_aio.Aio(tools)
    else:
        raise AttributeError("no tool %s for this script; there are: %s" % (name, ", ".join(sorted(_by_name))))
    setattr(sys.modules[__name__], name, value)
    return value


__all__ = [
    "ToolError", "ToolDenied", "ToolTimeout", "ToolLimit", "ToolUnavailable", "ToolInvalid", "ToolConflict",
    "ToolCancelled", "OutcomeUnknown", "tools", "result", "artifact", "note", "gather", "retry", "json_parse",
    "shell_quote", "args", "aio",
]
