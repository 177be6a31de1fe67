"""`toold.subprocess` behaves as `subprocess`: each row runs under both, and the results are compared."""

import io
import os
import signal
import subprocess as real
import sys
import tempfile
import time
import unittest

import rig
import toold.subprocess as ours

SH = ["/bin/sh", "-c"]
ECHO = SH + ["cat; echo end >&2"]


def outcome(case, module):
    """Returns what a row does: its result, or the type and facts of its error."""
    try:
        return case(module)
    except Exception as error:
        facts = {name: getattr(error, name) for name in ("errno", "filename", "returncode", "output", "stderr") if hasattr(error, name)}
        return type(error).__name__, facts


def finished(process):
    return process.communicate(timeout=rig.DEADLINE) + (process.returncode,)


def with_popen(use, *args, **options):
    def case(sp):
        chosen = {name: getattr(sp, value) if value in ("PIPE", "STDOUT", "DEVNULL") else value for name, value in options.items()}
        with sp.Popen(*args, **chosen) as process:
            try:
                return use(process)
            except BaseException:
                process.kill()
                raise

    return case


def to_file(sp):
    with tempfile.TemporaryFile() as out:
        code = sp.call(SH + ["echo to file; echo err >&2; exit 3"], stdout=out, stderr=sp.STDOUT)
        out.seek(0)
        return code, out.read()


def from_file(sp):
    with tempfile.TemporaryFile() as source:
        source.write(b"line\n" * 50000)
        source.seek(0)
        return len(sp.check_output(["cat"], stdin=source))


def pipeline(sp):
    first = sp.Popen(SH + ["printf 'b\\na\\n'"], stdout=sp.PIPE)
    second = sp.Popen(["sort"], stdin=first.stdout, stdout=sp.PIPE)
    first.stdout.close()
    return second.communicate(), first.wait(), second.returncode


def partial_reads(process):
    return process.stdout.read(3), process.stdout.readline(), process.stdout.read(), process.wait()


def lines(process):
    return list(process.stdout), process.wait()


def dialogue(process):
    answers = []
    for number in range(3):
        process.stdin.write(f"{number}\n")
        process.stdin.flush()
        answers.append(process.stdout.readline())
    process.stdin.close()
    return answers, process.stdout.read(), process.wait()


def line_buffered(process):
    process.stdin.write("a line\n")
    return process.stdout.readline(), process.communicate("more\n"), process.returncode


def unbuffered(process):
    return process.stdin.write(b"abc"), process.stdin.close(), process.stdout.read(), type(process.stdout).__name__


def timed_out(process):
    try:
        process.communicate(timeout=0.3)
    except (real.TimeoutExpired, ours.TimeoutExpired) as error:
        seen = (error.timeout, error.output)
    process.kill()
    return seen, process.communicate(), process.returncode


def timed_out_wait(process):
    try:
        process.wait(timeout=0.05)
    except real.TimeoutExpired as error:
        seen = error.timeout
    process.terminate()
    return seen, process.poll() in (None, -15), process.wait(), process.poll()


def slow_then_rest(process):
    try:
        process.communicate("in\n", timeout=0.2)
    except real.TimeoutExpired:
        seen = "timed out"
    with open(process.args[-1], "w"):
        pass
    return seen, process.communicate(timeout=rig.DEADLINE), process.returncode


def write_to_ended(process):
    process.wait()
    process.stdin.write(b"x" * 100000)
    process.stdin.flush()


def closed_reader(process):
    process.stdout.readline()
    process.stdout.close()
    return process.wait(timeout=rig.DEADLINE)


def started_twice(process):
    try:
        process.communicate(b"x", timeout=0.01)
    except real.TimeoutExpired:
        pass
    try:
        process.communicate(b"y")
    except ValueError as error:
        seen = str(error)
    process.kill()
    process.communicate()
    return seen, process.returncode


def communicate_twice(process):
    first = process.communicate()
    try:
        return first, process.communicate()
    except ValueError as error:
        return first, str(error)


def message_of(*args, **options):
    """Returns a row that compares the message of an error, too."""

    def case(sp):
        try:
            return sp.run(*args, **options).returncode
        except Exception as error:
            return type(error).__name__, str(error)

    return case


def text_modes(sp):
    found = []
    for options in ({}, {"text": True}, {"universal_newlines": True}, {"encoding": "utf-8"}):
        with sp.Popen(["true"], **options) as process:
            found.append((process.universal_newlines, process.text_mode))
            process.universal_newlines = True
            found.append(process.text_mode)
    return found


def is_stopped(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


def signalled(number):
    def use(process):
        process.stdout.readline()
        process.send_signal(number)
        code = process.wait()
        process.send_signal(number)
        return code

    return use


FIFO_WAIT = SH + ['read x; echo "got $x"; while [ ! -e "$0" ]; do sleep 0.01; done; echo rest; exit 5']
CASES = {
    "stdout of a program": with_popen(finished, SH + ["echo out; echo err >&2; exit 3"], stdout="PIPE", stderr="PIPE"),
    "stderr with stdout": with_popen(finished, SH + ["echo 1; echo 2 >&2; echo 3"], stdout="PIPE", stderr="STDOUT"),
    "only stderr": with_popen(finished, SH + ["echo err >&2"], stdout="DEVNULL", stderr="PIPE"),
    "nothing captured": with_popen(finished, ["true"], stdout="DEVNULL"),
    "text": with_popen(finished, SH + ["printf 'a\\r\\nb\\rc\\n'"], stdout="PIPE", text=True),
    "text lines": with_popen(lines, SH + ["printf 'a\\r\\nb\\rc\\nd'"], stdout="PIPE", text=True),
    "universal newlines": with_popen(finished, SH + ["printf 'x\\r\\n'"], stdout="PIPE", universal_newlines=True),
    "encoding": with_popen(finished, SH + ["printf '\\344\\n'"], stdout="PIPE", encoding="latin-1"),
    "errors": with_popen(finished, SH + ["printf '\\377x'"], stdout="PIPE", encoding="utf-8", errors="replace"),
    "bytes lines": with_popen(lines, SH + ["printf 'a\\nb'"], stdout="PIPE"),
    "partial reads": with_popen(partial_reads, SH + ["printf 'abcdef\\nrest\\nmore'"], stdout="PIPE"),
    "unbuffered": with_popen(unbuffered, ["cat"], stdin="PIPE", stdout="PIPE", bufsize=0),
    "small buffer": with_popen(partial_reads, SH + ["printf 'abcdef\\nrest\\nmore'"], stdout="PIPE", bufsize=16),
    "line buffered text": with_popen(line_buffered, ["cat"], stdin="PIPE", stdout="PIPE", text=True, bufsize=1),
    "dialogue": with_popen(dialogue, ["cat"], stdin="PIPE", stdout="PIPE", text=True),
    "input": lambda sp: (lambda r: (r.returncode, r.stdout, r.stderr))(sp.run(ECHO, input=b"in\n", capture_output=True)),
    "text input": lambda sp: sp.run(ECHO, input="grüß\n", capture_output=True, text=True).stdout,
    "empty input": lambda sp: sp.check_output(["cat"], input=b""),
    "large input and output": lambda sp: len(sp.run(["cat"], input=b"x" * 3_000_000, stdout=sp.PIPE).stdout),
    "input that is not read": lambda sp: sp.run(["true"], input=b"x" * 1_000_000).returncode,
    "both streams large": lambda sp: [len(part) for part in sp.Popen(SH + ["head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"], stdout=sp.PIPE, stderr=sp.PIPE).communicate()],
    "stdin is empty": lambda sp: sp.run(["cat"], stdin=sp.DEVNULL, capture_output=True).stdout,
    "to a file": to_file,
    "from a file": from_file,
    "a pipeline": pipeline,
    "shell": lambda sp: sp.check_output("echo $0 $((1+1))", shell=True),
    "shell with arguments": lambda sp: sp.check_output(["echo $0 $1", "a", "b c"], shell=True),
    "shell program": lambda sp: sp.check_output("echo $0", shell=True, executable="/bin/bash"),
    "cwd": lambda sp: sp.check_output(["pwd"], cwd="/usr"),
    "cwd of the caller": lambda sp: sp.check_output(["pwd"]),
    "relative program": lambda sp: sp.check_output(["./sh", "-c", "echo rel"], cwd="/bin"),
    "environment": lambda sp: sorted(line for line in sp.check_output(["env"], env={"A": "1", "B": "ü"}).splitlines() if line[:2] in (b"A=", b"B=")),
    "environment of the caller": lambda sp: sp.check_output(SH + ["echo $TOOLD_TEST_VARIABLE"]),
    "environment in bytes": lambda sp: sp.check_output(SH + ["printf %s \"$A\""], env={"A": b"\xff\xfe", "PATH": os.environ["PATH"]}),
    "path arguments": lambda sp: sp.check_output([b"echo", os.fspath("x")]),
    "one program": lambda sp: sp.call("true"),
    "exit code": lambda sp: sp.call(SH + ["exit 42"]),
    "killed by itself": lambda sp: sp.call(SH + ["kill -9 $$"]),
    "a signal": with_popen(signalled(signal.SIGUSR1), SH + ["echo up; exec sleep 100"], stdout="PIPE"),
    "a handled signal": with_popen(signalled(signal.SIGTERM), SH + ["trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done"], stdout="PIPE"),
    "signal 0": with_popen(lambda process: (process.send_signal(0), process.poll(), process.kill(), process.wait()), ["sleep", "100"]),
    "a signal that does not exist": with_popen(lambda process: process.send_signal(999), ["sleep", "100"]),
    "a negative signal": with_popen(lambda process: process.send_signal(-1), ["sleep", "100"]),
    "a signal of the wrong type": with_popen(lambda process: process.send_signal("TERM"), ["sleep", "100"]),
    "a signal that does not exist after the end": with_popen(lambda process: (process.wait(), process.send_signal(999)), ["true"]),
    "communicate twice": with_popen(communicate_twice, ["echo", "hi"], stdout="PIPE"),
    "communicate twice in text": with_popen(communicate_twice, ["echo", "hi"], stdout="PIPE", text=True),
    "communicate twice with stderr": with_popen(communicate_twice, ["true"], stdout="DEVNULL", stderr="PIPE"),
    "communicate twice with both": with_popen(communicate_twice, ["echo", "hi"], stdout="PIPE", stderr="PIPE"),
    "communicate twice with stdin": with_popen(communicate_twice, ["cat"], stdin="PIPE", stdout="PIPE"),
    "a wait without end": with_popen(lambda process: process.wait(timeout=float("inf")), SH + ["exit 3"]),
    "communicate that times out": with_popen(timed_out, SH + ["echo begin; exec sleep 100"], stdout="PIPE"),
    "communicate without output that times out": with_popen(timed_out, ["sleep", "100"], stdout="PIPE"),
    "communicate again": lambda sp: with_popen(slow_then_rest, FIFO_WAIT + [tempfile.mktemp()], stdin="PIPE", stdout="PIPE", text=True)(sp),
    "communicate with other input": with_popen(started_twice, ["sleep", "100"], stdin="PIPE", stdout="PIPE"),
    "wait that times out": with_popen(timed_out_wait, ["sleep", "100"]),
    "run that times out": lambda sp: sp.run(SH + ["echo begin; exec sleep 100"], timeout=0.3, capture_output=True),
    "a write after the end": with_popen(write_to_ended, ["true"], stdin="PIPE", bufsize=0),
    "a reader that goes away": with_popen(closed_reader, ["yes"], stdout="PIPE"),
    "a missing program": lambda sp: sp.Popen(["/nonexistent/program"]),
    "a missing program in PATH": lambda sp: sp.Popen(["nonexistent-program"]),
    "a missing directory": lambda sp: sp.Popen(["true"], cwd="/nonexistent"),
    "a file as directory": lambda sp: sp.Popen(["true"], cwd="/etc/passwd"),
    "a program without permission": lambda sp: sp.Popen(["/etc/passwd"]),
    "a null byte": lambda sp: sp.Popen(["a\0b"]),
    "a null byte in an argument": message_of(["true", "a\0b"]),
    "a null byte in a directory": message_of(["true"], cwd="/\0"),
    "a variable with an equals sign": message_of(["true"], env={"A=B": "1"}),
    "a variable with an equals sign in bytes": message_of(["true"], env={b"A=B": b"1"}),
    "a variable with a null byte": message_of(["true"], env={"A": "x\0y"}),
    "a variable with a null byte in its name": message_of(["true"], env={"A\0": "x"}),
    "no arguments": message_of([]),
    "an empty program": lambda sp: sp.run([""]),
    "an empty program in bytes": lambda sp: sp.run([b""]),
    "an empty program without PATH": lambda sp: sp.run([""], env={"PATH": "/nonexistent"}),
    "an empty program and a bad variable": message_of([""], env={"A=B": "1"}),
    "text_mode": text_modes,
    "list2cmdline": lambda sp: sp.list2cmdline(["a b", 'c"d', "e\\"]),
    "an argument of the wrong type": lambda sp: sp.Popen(["echo", 1]),
    "stdin and input": lambda sp: sp.run(["cat"], input=b"", stdin=sp.PIPE),
    "stdout and capture_output": lambda sp: sp.run(["cat"], stdout=sp.PIPE, capture_output=True),
    "check": lambda sp: sp.run(SH + ["echo o; echo e >&2; exit 2"], check=True, capture_output=True),
    "check_call": lambda sp: sp.check_call(SH + ["exit 2"]),
    "check_output": lambda sp: sp.check_output(SH + ["echo o; exit 2"]),
    "getstatusoutput": lambda sp: sp.getstatusoutput("echo o; echo e >&2; exit 2"),
    "getoutput": lambda sp: sp.getoutput("echo o"),
    "repr": lambda sp: (lambda p: (repr(p)[-40:], p.wait(), repr(p)[-32:]))(sp.Popen(["sleep", "0.01"])),
    "both text and universal_newlines": lambda sp: sp.Popen(["true"], text=True, universal_newlines=False),
}


class Table(rig.DaemonCase):
    maxDiff = None

    def setUp(self):
        os.environ["TOOLD_TEST_VARIABLE"] = "from here"
        self.addCleanup(os.environ.pop, "TOOLD_TEST_VARIABLE")

    def test_popen_is_exported_with_the_names_of_subprocess(self):
        for name in ours.__all__:
            self.assertTrue(hasattr(real, name), name)
        self.assertIs(ours.CalledProcessError, real.CalledProcessError)


def add(name, case):
    def test(self):
        self.assertEqual(outcome(case, ours), outcome(case, real))

    setattr(Table, "test_" + name.replace(" ", "_"), test)


for row, function in CASES.items():
    add(row, function)


class Own(rig.DaemonCase):
    """What differs from `subprocess`, and what it adds."""

    def test_the_program_has_a_process_of_the_daemon(self):
        with ours.Popen(["sleep", "100"], params={"name": "mine", "labels": {"a": "b"}}) as process:
            self.assertEqual((process.process.name, process.pid), ("mine", process.process.pid))
            process.kill()
        self.assertEqual((process.returncode, process.process.reason), (-9, "killed"))

    def test_what_the_daemon_cannot_do_is_refused(self):
        for option in ({"preexec_fn": print}, {"pass_fds": [1]}, {"user": "x"}, {"umask": 0o22}, {"executable": "/bin/sh"}):
            with self.assertRaisesRegex(ValueError, "not supported"):
                ours.Popen(["true"], **option)

    def test_stdin_has_no_descriptor(self):
        with ours.Popen(["cat"], stdin=ours.PIPE) as process:
            with self.assertRaises(io.UnsupportedOperation):
                process.stdin.fileno()

    def test_a_program_outlives_the_one_that_started_it(self):
        script = "import toold.subprocess as s; print(s.Popen(['sleep', '100'], stdout=s.DEVNULL).process.id)"
        env = dict(os.environ, PYTHONPATH=rig.PACKAGE, PYTHONDONTWRITEBYTECODE="1")
        id = real.run([sys.executable, "-c", script], env=env, stdout=real.PIPE, check=True, text=True).stdout.strip()
        self.assertEqual(self.daemon.ask("poll", id=id)["status"], "running")
        self.daemon.ask("kill", id=id)

    def test_an_argument_that_is_not_utf_8_is_refused_by_its_name(self):
        for given, name in (
            ({"args": ["echo", b"\xff"]}, "args[1]"),
            ({"args": "echo \udcff", "shell": True}, "args[0]"),
            ({"args": ["true"], "cwd": b"/\xff"}, "cwd"),
            ({"args": ["true"], "env": {b"\xff": "1"}}, "the name of an environment variable"),
        ):
            with self.assertRaises(ValueError) as caught:
                ours.run(**given)
            self.assertIs(type(caught.exception), ValueError)
            self.assertTrue(str(caught.exception).startswith(f"{name} is not UTF-8: "), caught.exception)

    # A program whose copy to a file is slow. It ends when the daemon has the output, and a line of its own stdin has come.
    ENDING = """
import sys, time
import toold.subprocess as s
from toold._pipes import Pump
write = Pump._write
Pump._write = lambda *args: (time.sleep(0.3), write(*args))
with open(sys.argv[1], "wb") as file:
    p = s.Popen(["sh", "-c", "echo first; exec sleep 100"], stdin=s.DEVNULL, stdout=file, stderr=s.DEVNULL)
p.process.wait(until={"match": "first"})
print(p.process.id, flush=True)
sys.stdin.readline()
"""

    def ending(self, file):
        env = dict(os.environ, PYTHONPATH=rig.PACKAGE, PYTHONDONTWRITEBYTECODE="1")
        process = real.Popen([sys.executable, "-c", self.ENDING, file], env=env, stdin=real.PIPE, stdout=real.PIPE, text=True)
        id = process.stdout.readline().strip()
        self.addCleanup(self.daemon.ask, "kill", id=id)
        return process

    def test_output_that_has_arrived_is_in_its_file_when_this_program_ends(self):
        path = self.file("out")
        with self.ending(path) as process:
            process.communicate("\n", timeout=rig.DEADLINE)
        with open(path, "rb") as file:
            self.assertEqual((file.read(), process.returncode), (b"first\n", 0))

    def test_the_end_of_this_program_does_not_wait_for_a_daemon_that_is_stopped(self):
        with self.ending(self.file("out")) as process:
            pid = self.daemon.pid()
            os.kill(pid, signal.SIGSTOP)
            try:
                rig.eventually("the daemon is stopped", lambda: is_stopped(pid))
                begin = time.monotonic()
                process.communicate("\n", timeout=rig.DEADLINE)
                self.assertLess(time.monotonic() - begin, 10)
            finally:
                os.kill(pid, signal.SIGCONT)
        self.assertEqual(process.returncode, 0)

    def test_no_byte_is_lost_beyond_the_cap_of_the_log(self):
        with ours.Popen(["seq", "400000"], stdout=ours.PIPE, text=True) as process:
            self.assertEqual([int(line) for line in process.stdout], list(range(1, 400001)))
        self.assertEqual(process.returncode, 0)

    config = "log_max_bytes = 1048576\n"


if __name__ == "__main__":
    unittest.main()
