"""Driver of a Python kernel: takes cells from the channel, runs them in one namespace, reports their ends there.

SIGINT interrupts the running cell and keeps the namespace; between cells it does nothing. SystemExit ends the cell
with an error and not the kernel, as in Jupyter. A thread belongs to the cell that started it, however deep.
A reset is an exec of the same program in the same process, so that its id, its pipes and its channel stay; SIGHUP
demands one at once, in whatever runs.
"""
import ast
import os
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:1] = [HERE, os.getcwd()]
import toold_link  # noqa: E402, from HERE

MAX_VALUE_BYTES = 64 << 10
MAX_DRAIN_SECONDS = 2.0  # the reader of the pipes may be gone
CO_COROUTINE = 0x80
AFTER = "TOOLD_KERNEL_AFTER"  # the last cell of the interpreter before this one
CELL = "TOOLD_CELL"  # the cell that runs, for the programs that it starts
START = sys.executable, os.getcwd(), dict(os.environ)


class Kernel:
    def __init__(self):
        self.owner = os.getpid()
        self.cell = int(os.environ.pop(AFTER, 0))
        self.running = False
        self.loop = None
        self.main = type(sys)("__main__")
        self.main.__builtins__ = __builtins__
        self.space = self.main.__dict__
        self.local = threading.local()

    def serve(self):
        sys.modules["__main__"] = self.main
        link = toold_link.link()
        asked = link.start("kernel.next", {"after": self.cell}, toold_link._event())
        import linecache  # while the first cell is on its way
        import traceback

        import toold_report

        while True:
            signal.signal(signal.SIGINT, self.on_interrupt)
            answer = link.wait(asked)
            if "result" not in answer:
                raise toold_link._error(answer, None, asked.id)
            self.cell, code = answer["result"]["cell"], answer["result"].get("code")
            if code is None:
                self.renew()
            os.environ[CELL] = str(self.cell)
            name = "<cell %d>" % self.cell
            linecache.cache[name] = (len(code), None, code.splitlines(True), name)
            end = self.run(link, code, name)
            if os.getpid() != self.owner:
                os._exit(0 if end["status"] == "ok" else 1)  # a child that a cell forked and did not end
            link.settle()
            if "error" in end:
                error = end["error"]
                end["error"] = toold_report.describe(error, name)
                try:
                    traceback.print_exception(type(error), error, error.__traceback__)
                except Exception:
                    pass  # stderr was closed by the cell
                error = None
            drain()
            link.report({"cell": end})
            asked = link.start("kernel.next", {"after": self.cell}, toold_link._event())

    def run(self, link, code, name):
        """Runs a cell and returns its end, for the report. `error` is the exception itself."""
        end = {"number": self.cell, "status": "ok"}
        try:
            value = self.execute(link, code, name)
            if value is not None:
                end["value"] = value
        except KeyboardInterrupt as error:
            end.update(status="interrupted", error=trim(error))
        except BaseException as error:
            end.update(status="error", error=trim(error))
        return end

    def execute(self, link, code, name):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree = compile(code, name, "exec", flags | ast.PyCF_ONLY_AST, True)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = compile(ast.Expression(tree.body.pop().value), name, "eval", flags, True)
        body = compile(tree, name, "exec", flags, True)
        try:
            self.running = True
            # An interrupt waits for this: before it, a signal would find nothing to interrupt.
            link.start("script.report", {"cell": {"number": self.cell, "status": "running"}}, toold_link._event())
            self.evaluate(body)
            value = self.evaluate(last) if last else None
            if value is None:
                return None
            self.space["_"] = value
            return bounded(repr(value))
        finally:
            self.running = False

    def evaluate(self, code):
        value = eval(code, self.space)
        if not code.co_flags & CO_COROUTINE:
            return value
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        task = self.loop.create_task(value)
        try:
            return self.loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            raise

    def on_interrupt(self, signum, frame):
        if self.running:
            raise KeyboardInterrupt("the cell was interrupted; its state is kept")

    def on_hangup(self, signum, frame):
        if os.getpid() != self.owner:
            os._exit(128 + signum)  # a child that a cell forked is no kernel
        self.renew()

    def renew(self):
        """Replaces the interpreter by a new one, with the directory and the variables of the first."""
        program, directory, variables = START
        drain()
        try:
            os.chdir(directory)
        except OSError:
            pass  # removed by a cell
        variables[AFTER] = str(self.cell)
        os.closerange(3, 1 << 16)
        os.execve(program, [program, "-X", "utf8", __file__], variables)

    def cell_of_thread(self):
        cell = getattr(threading.current_thread(), "_toold_cell", None)
        return cell or getattr(self.local, "cell", None) or self.cell

    def tag_threads(self):
        """Makes every thread remember the cell of the thread that started it."""
        import _thread

        start, start_new = threading.Thread.start, _thread.start_new_thread

        def tagged_start(thread):
            thread._toold_cell = self.cell_of_thread()
            return start(thread)

        def tagged_start_new(function, args, kwargs={}):
            cell = self.cell_of_thread()

            def run():
                self.local.cell = cell
                function(*args, **kwargs)

            return start_new(run, ())

        threading.Thread.start = tagged_start
        _thread.start_new_thread = _thread.start_new = tagged_start_new


def trim(error):
    """Leaves out the frames of this file."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename == __file__:
        step = step.tb_next
    return error.with_traceback(step)


def bounded(text):
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_VALUE_BYTES:
        return data.decode()
    cut = data[:MAX_VALUE_BYTES].decode("utf-8", "ignore")
    return "%s… (%d more bytes)" % (cut, len(data) - len(cut.encode()))


def drain():
    """Flushes Python's and C's buffers, and waits until the reader has all of the pipes 1 and 2."""
    import fcntl
    import stat
    import termios

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # replaced or closed by the cell
    if FFLUSH is not None:
        FFLUSH(None)
    until, pause = time.monotonic() + MAX_DRAIN_SECONDS, 0.0001
    for fd in (1, 2):
        try:
            if not stat.S_ISFIFO(os.fstat(fd).st_mode):
                continue
            while any(fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0")) and time.monotonic() < until:
                time.sleep(pause)
                pause = min(pause * 2, 0.005)
        except OSError:
            pass  # closed by the cell


def c_flush():
    """Returns fflush of the C library, or None where there is no ctypes."""
    try:
        import ctypes

        return ctypes.CDLL(None).fflush
    except (ImportError, OSError, AttributeError):
        return None


def no_input(prompt=""):
    raise EOFError("input() cannot be used: a cell has no stdin; write the value into the code")


kernel = Kernel()
signal.signal(signal.SIGINT, kernel.on_interrupt)
signal.signal(signal.SIGHUP, kernel.on_hangup)
kernel.tag_threads()
toold_link.cell_of_thread = kernel.cell_of_thread
__import__("builtins").input = no_input
FFLUSH = c_flush()
if __name__ == "__main__":
    try:
        kernel.serve()
    except toold_link.api.ToolError as error:
        sys.exit("the kernel ends: %s" % error.message)
