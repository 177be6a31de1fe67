"""Link of a process to the channel of its script: requests out, answers in, reconnect and repeat.

One link per OS process. A thread that waits reads for all others too, if no other thread reads: no hand-over between
threads on the way of a single call. Every request has an id that the daemon's journal knows, so the remedy for any
damage of a connection is the same: drop it, connect again, send everything unanswered again.
"""
import os
import sys
from _thread import RLock, allocate_lock, start_new_thread
from itertools import count
from time import sleep

try:  # The C module alone: `socket` imports selectors and enums, which nothing here uses.
    import _socket as socket
except ImportError:
    import socket

import toold_tools as api

MAX_PAUSE = 0.2  # seconds between two attempts to connect
MAX_LINE_BYTES = 256 << 20  # an answer without an end is garbage
MAX_BAD_LINKS = 8  # connections in a row that bring garbage
SEND_FLAGS = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
LASTING = ("denied", "invalid_params", "invalid_request", "method_not_found")  # a repeated hello gets the same answer
RETIRED = {
    "message": "denied: the script has ended, and its authority with it",
    "data": {"kind": "denied", "reason": "retired"},
}
KINDS = {
    "denied": api.ToolDenied,
    "timeout": api.ToolTimeout,
    "limit": api.ToolLimit,
    "unavailable": api.ToolUnavailable,
    "invalid_params": api.ToolInvalid,
    "conflict": api.ToolConflict,
    "cancelled": api.ToolCancelled,
    "outcome_unknown": api.OutcomeUnknown,
}


def _plain(value):
    if hasattr(value, "__fspath__"):
        return os.fspath(value)
    if isinstance(value, (set, frozenset)):
        return list(value)
    raise TypeError("%s is not a JSON value" % type(value).__name__)


class _Scanner:
    """Options of the scanner, those of `json.JSONDecoder`."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def _codec():
    """Returns the C functions of `json`, without `json`: it imports `re`, which takes longer than all of the first call."""
    try:
        from _json import encode_basestring, make_encoder, make_scanner

        make = make_encoder(None, _plain, encode_basestring, None, ":", ",", False, False, False)
        scan = make_scanner(_Scanner)
        if "".join(make({"a": [1, "b"]}, 0)) == '{"a":[1,"b"]}' and scan("[1]", 0) == ([1], 3):
            return (lambda value: "".join(make(value, 0))), scan
    except Exception:
        pass  # another Python: these are not a public interface
    import json

    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    return encoder.encode, json.JSONDecoder().scan_once


encode, _scan = _codec()


def decode(text):
    """Parses JSON text that begins with its value."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("not JSON") from None
    if end != len(text) and text[end:].strip():
        raise ValueError("more than one JSON value")
    return value


def cell_of_thread():
    """Returns the number of the kernel's cell that this thread belongs to. A kernel replaces it."""
    cell = os.environ.get("TOOLD_CELL")  # a program that a cell has started
    return int(cell) if cell else None


class Call:
    """A request: `answer` is None until the answer is there, `event` is a lock that is released then."""

    __slots__ = ("id", "line", "answer", "event", "then")

    def __init__(self, id, line, event, then):
        self.id, self.line, self.answer, self.event, self.then = id, line, None, event, then

    def end(self, answer):
        self.answer = answer
        _release(self.event)
        if self.then is not None:
            self.then(self)


def _event():
    event = allocate_lock()
    event.acquire()
    return event


def _release(event):
    try:
        event.release()
    except RuntimeError:
        pass  # released before: its owner is awake


def _is_inside(codes, frame):
    """Looks for a function among the callers of a frame."""
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


class Link:
    def __init__(self):
        address = os.environ.get("TOOLD_TOOLS", "")
        self.path = address[5:] if address.startswith("unix:") else None
        self.prefix = os.urandom(4).hex()
        self.ids = count(1)
        self.hellos = count(1)
        self.hello = None  # id of the hello of this connection
        self.lock = RLock()  # guards `sock` and the bytes that go out; no thread waits for an answer in it
        self.sending = False
        self.reading = RLock()  # held by the one thread that reads
        self.is_read = False
        self.waiting = set()  # events of threads that wait for an answer
        self.sock = None
        self.broken = False  # a send failed: the reader will find the end of the connection
        self.parts = []  # of a line whose end has not come
        self.pending = {}  # id -> Call, in the order in which they were sent
        self.cancelled = {}  # ids whose end has not come
        self.notes = []
        self.later = None  # event of the thread that reads for asyncio
        self.pause = 0
        self.bad = 0
        self.refused = None
        if self.path is None:
            message = "no channel for tools: run this as a script of toold, for example with `toolctl script`"
            self.refused = {"message": message, "data": {"kind": "unavailable"}}

    # Requests.

    def call(self, tool, args, timeout):
        """Calls a tool and waits for its result."""
        call = self.begin(tool, args, timeout, _event())
        return self.value(self.wait(call), tool, call.id)

    def begin(self, tool, args, timeout, event, then=None):
        params = {"name": tool, "args": args}
        if timeout is not None:
            if not timeout > 0:
                raise ValueError("timeout is a number of seconds above 0, not %r" % (timeout,))
            params["timeout_ms"] = max(1, int(timeout * 1000))
        cell = cell_of_thread()
        if cell is not None:
            params["cell"] = cell
        return self.start("tools.call", params, event, then)

    def value(self, answer, tool, id):
        """Returns the result of a tool from an answer, or raises its error."""
        try:
            found = answer["result"]
            if "result" in found:
                return found["result"]
            file = found["file"]
        except (KeyError, TypeError):
            raise _error(answer, tool, id) from None
        try:
            with open(file["path"], "rb") as source:
                return decode(source.read().decode())
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise api.ToolError("%s: its large result cannot be read: %s" % (tool, error), "internal", {}, tool, id) from None

    def request(self, method, params):
        """Sends a request that is not a call of a tool, and returns its result."""
        call = self.start(method, params, _event())
        answer = self.wait(call)
        if "result" not in answer:
            raise _error(answer, None, call.id)
        return answer["result"]

    def report(self, what):
        self.request("script.report", what)

    def note(self, what):
        """Sends a report without waiting for its acknowledgement; the exit of the process waits."""
        if not self.notes:
            import atexit

            atexit.unregister(flush)
            atexit.register(flush)
        self.notes = [call for call in self.notes if call.answer is None]
        self.notes.append(self.start("script.report", what, _event()))
        self._revive()

    def flush(self):
        for call in self.notes:
            self.wait(call)
        self.notes = []

    def gather(self, items, parallel):
        if not all(isinstance(item, api.Later) for item in items):
            raise TypeError("gather takes calls that have not started: terminal.later(...), not terminal(...)")
        if parallel < 1:
            raise ValueError("parallel is at least 1, not %r" % (parallel,))
        event, active, ends = _event(), {}, [None] * len(items)
        rest = iter(enumerate(items))
        try:
            while True:
                for at, item in rest:
                    try:
                        active[at] = self.begin(item.tool, item.args, item.timeout, event)
                    except (TypeError, ValueError, api.ToolError) as error:
                        ends[at] = error
                    if len(active) >= parallel:
                        break
                if not active:
                    break
                self._wait(event, lambda: any(call.answer is not None for call in active.values()))
                for at in [at for at, call in active.items() if call.answer is not None]:
                    ends[at] = active.pop(at)
        except BaseException:
            for call in active.values():
                self.cancel(call)
            raise
        return [self.value(end.answer, item.tool, end.id) if isinstance(end, Call) else _raise(end) for item, end in zip(items, ends)]

    def start(self, method, params, event, then=None):
        """Sends a request. A send that fails is no loss: the next thread that reads connects and sends it again."""
        id = "%s-%d" % (self.prefix, next(self.ids))
        try:
            line = '{"jsonrpc":"2.0","id":"%s","method":"%s","params":%s}\n' % (id, method, encode(params))
            call = Call(id, line.encode(), event, then)
        except UnicodeEncodeError:
            raise api.ToolInvalid("an argument has a character that is not Unicode text; decode bytes with errors='replace'", "invalid_params") from None
        with self.lock:
            if self.refused is None:
                try:
                    self.pending[id] = call
                    self._send(call.line)
                except BaseException:
                    self.cancel(call)
                    raise
                return call
        call.end({"error": self.refused})
        return call

    def wait(self, call):
        """Waits for the answer. An exception in this thread (KeyboardInterrupt) cancels the call."""
        if call.answer is None:
            try:
                self._wait(call.event, lambda: call.answer is not None)
            except BaseException:
                self.cancel(call)
                raise
        return call.answer

    def cancel(self, call):
        if self.pending.pop(call.id, None) is None:
            return
        self.cancelled[call.id] = None
        with self.lock:
            self._send(_cancel(call.id))
        self._revive()

    def _revive(self):
        """Tries once to replace a connection that is gone, for a request that no thread waits for."""
        if self.sock is not None and not self.broken:
            return
        nested = self._is_nested()
        try:
            if nested or self.reading.acquire(False):
                while self.broken and self.sock is not None:
                    self._read()
                if self.sock is None:
                    self._connect()
        finally:
            self._leave(None, nested)

    def settle(self):
        """Gives back what an interrupt at an unlucky moment left with this thread. For a thread outside of all calls."""
        self._leave(None, False)

    # Reading.

    def _wait(self, event, is_ready):
        # A signal handler or a finalizer can come here while its own thread reads. The bytes that were on their
        # way to the interrupted reader are void then, and so is the connection.
        nested = self._is_nested()
        if nested:
            self._drop(self.sock)
        try:
            self.waiting.add(event)
            while not is_ready():
                if nested or self.reading.acquire(False):
                    self.is_read = True
                    while not is_ready():
                        self._read()
                else:
                    event.acquire()
        except BaseException:
            if self.reading._is_owned() and self.sock is not None:
                self._drop(self.sock)
                self.pause = 0  # the daemon is not to blame
            raise
        finally:
            self._leave(event, nested)

    def _is_nested(self):
        """Returns true if a function that called this one holds `reading`.

        Otherwise gives up what an interrupt left with this thread, in the midst of giving it up.
        """
        if not self.reading._is_owned():
            return False
        if _is_inside((Link._wait.__code__, Link._revive.__code__, Link._await_room.__code__), sys._getframe(2)):
            return True
        self._leave(None, False)
        return False

    def _leave(self, event, nested):
        """Ends a wait. An interrupt in the midst of it must not leave the others without a reader, so it begins again."""
        try:
            self._yield(event, nested)
        except BaseException:
            self._yield(event, nested)
            raise

    def _yield(self, event, nested):
        """Gives up reading, unless an outer call of this thread reads, and wakes one thread that waits."""
        if not nested and self.reading._is_owned():
            self.is_read = False
            self.reading.release()
        self.waiting.discard(event)
        if not self.is_read:
            for other in tuple(self.waiting):
                _release(other)
                break

    def _read(self):
        sock = self.sock
        if sock is None:
            if self.pause:
                sleep(self.pause)
            self._connect()
            return
        try:
            data = sock.recv(1 << 20 if self.parts else 1 << 16)
        except OSError:
            data = b""
        if sock is not self.sock:
            return  # dropped meanwhile, see `_wait`
        if data:
            self._feed(sock, data)
        else:
            self._drop(sock)

    def _feed(self, sock, data):
        end = data.rfind(b"\n")
        if end < 0:
            self.parts.append(data)
            if sum(map(len, self.parts)) > MAX_LINE_BYTES:
                self._garbage(sock)
            return
        if self.parts:
            whole, end = b"".join(self.parts) + data, end - len(data)
            self.parts = []
            end += len(whole)
            data = whole
        if end + 1 < len(data):
            self.parts = [data[end + 1 :]]
        for line in data[:end].split(b"\n"):
            try:
                message = decode(line.decode())
                self._take(sock, message, message.get("id"))
            except (ValueError, TypeError, AttributeError, RecursionError):
                if line.strip():
                    self._garbage(sock)
                    return

    def _take(self, sock, message, id):
        call = self.pending.get(id)
        if call is not None:
            # In this order: an interrupt between the two leaves a call that is sent again, not one that waits for ever.
            call.end(message)
            self.pending.pop(id, None)
            self.bad = self.pause = 0  # not at the hello: a daemon may break at each call
        elif id == self.hello and id is not None:
            self._on_hello(sock, message)
        elif id is None and "error" in message and self.pending:
            # The daemon could not read a request, so it does not know the id. The longest is the one that can be too long.
            call = max(list(self.pending.values()), key=lambda call: len(call.line))
            call.end(message)
            self.pending.pop(call.id, None)
        else:
            self.cancelled.pop(id, None)  # or an answer that came twice

    def _on_hello(self, sock, message):
        if _kind(message.get("error")) in LASTING:
            self._refuse(message["error"])
        elif "result" not in message:
            self._drop(sock)

    def _garbage(self, sock):
        self.bad += 1
        if self.bad >= MAX_BAD_LINKS:
            self.bad = 0
            self._fail({"message": "the channel sends what is not JSON-RPC", "data": {"kind": "parse_error"}})
        self._drop(sock)

    def _refuse(self, error):
        with self.lock:
            self.refused = error
            self._fail(error)

    def _fail(self, error):
        for call in list(self.pending.values()):
            call.end({"error": error})
            self.pending.pop(call.id, None)

    # Connection.

    def _connect(self):
        """Tries once. Only the thread that holds `reading` comes here."""
        if self.refused is not None:
            return None
        self.pause = min(max(self.pause * 2, 0.005), MAX_PAUSE)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(self.path)
        except PermissionError as error:
            sock.close()
            return self._refuse({"message": "the channel cannot be opened: %s" % error, "data": {"kind": "unavailable"}})
        except OSError as error:
            sock.close()
            if isinstance(error, FileNotFoundError) and self._is_over():
                self._refuse(RETIRED)
            return None  # the daemon is away
        except BaseException:
            sock.close()
            raise
        hello = {"token": os.environ.get("TOOLD_TOKEN", ""), "pid": os.getpid()}
        with self.lock:
            self.parts = []
            self.hello = "%s-h%d" % (self.prefix, next(self.hellos))
            self.sock, self.broken = sock, False
            lines = ['{"jsonrpc":"2.0","id":"%s","method":"script.hello","params":%s}\n' % (self.hello, encode(hello))]
            lines = [line.encode() for line in lines] + [_cancel(id) for id in list(self.cancelled)]
            self._send(b"".join(lines + [call.line for call in list(self.pending.values())]))

    def _is_over(self):
        """Returns true if the script has ended: the daemon then removes this file and the socket, in any order."""
        return not os.path.exists(os.path.join(os.path.dirname(self.path), "owner"))

    def _drop(self, sock):
        if sock is None:
            return
        try:
            sock.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for room, and holds the lock
        except OSError:
            pass
        with self.lock:
            if self.sock is sock:
                self.sock, self.parts = None, []
            sock.close()

    def _send(self, data):
        """Sends bytes, holding the lock. A broken connection is for the reader to find, after what it still brings."""
        sock = self.sock
        if sock is None:
            return
        if self.sending and _is_inside((Link._send.__code__,), sys._getframe(1)):
            # A signal handler that interrupted a send of its own thread: half a line may be out.
            return self._drop(sock)
        try:
            self.sending = True
            while True:
                try:
                    sent = sock.send(data, SEND_FLAGS)
                    if sent == len(data):
                        return
                    data = memoryview(data)[sent:]
                except BlockingIOError:
                    self._await_room(sock)
        except OSError:
            self.broken = True
        except BaseException:
            self._drop(sock)
            raise
        finally:
            self.sending = False

    def _await_room(self, sock):
        """Waits until bytes can go out, and reads meanwhile: a daemon that cannot write may not read either."""
        from select import POLLIN, POLLOUT, poll

        nested = self._is_nested()
        try:
            reads = nested or self.reading.acquire(False)
            waiter = poll()
            waiter.register(sock.fileno(), POLLOUT | POLLIN if reads else POLLOUT)
            events = waiter.poll(1000)
            if reads and events and events[0][1] & ~POLLOUT:
                data = sock.recv(1 << 16)
                if not data:
                    self._drop(sock)
                elif sock is self.sock:
                    self._feed(sock, data)
            if sock is not self.sock:
                raise OSError("dropped")
        finally:
            self._leave(None, nested)

    # asyncio.

    def submit(self, later, then):
        """Begins a call whose end is handed to `then`, in the thread that reads for asyncio."""
        if self.later is None:
            self.later = _event()
            start_new_thread(self._serve, ())
        call = self.begin(later.tool, later.args, later.timeout, self.later, then)
        _release(self.later)
        return call

    def _serve(self):
        while True:
            try:
                self._wait(self.later, lambda: not any(call.then for call in list(self.pending.values())))
            except BaseException as error:  # no other thread reads for these calls
                self._fail({"message": "the reader of the channel failed: %r" % error, "data": {"kind": "internal"}})
            self.later.acquire()


def _cancel(id):
    return b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"%s"}}\n' % id.encode()


def _kind(error):
    data = error.get("data") if isinstance(error, dict) else None
    return data.get("kind") if isinstance(data, dict) else None


def _error(answer, tool, id):
    error = answer.get("error")
    if not isinstance(error, dict):
        return api.ToolError("%s: the answer has neither a result nor an error" % (tool or "the daemon"), "internal", {}, tool, id)
    data = error.get("data") if isinstance(error.get("data"), dict) else {}
    kind = str(data.get("kind") or {-32602: "invalid_params", -32800: "cancelled"}.get(error.get("code"), "internal"))
    # A question that no person answered in time is `denied` with the reason `timeout`: to repeat it would ask again.
    timed_out = kind == "timeout" or data.get("limit") in ("call_timeout_ms", "script.call_timeout_ms", "timeout_ms")
    if timed_out:
        return api.ToolTimeout(str(error.get("message")), "timeout", data, tool, id)
    return KINDS.get(kind, api.ToolError)(str(error.get("message")), kind, data, tool, id)


def _raise(error):
    raise error


_current = None


def link():
    """Returns the link of this process."""
    global _current
    if _current is None:
        with _making:
            if _current is None:
                _current = Link()
    return _current


def flush():
    """Waits until every note is acknowledged."""
    if _current is not None:
        _current.flush()


def _after_fork():
    """Leaves the connection to the parent: the child has its own link, with its own ids."""
    global _current, _making
    if _current is not None and _current.sock is not None:
        _current.sock.close()
    _current, _making = None, allocate_lock()


_making = allocate_lock()
os.register_at_fork(after_in_child=_after_fork)
