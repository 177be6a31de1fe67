"""A daemon of its own for a test: own home, state and socket, and nothing left behind."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
if PACKAGE not in sys.path:
    sys.path.insert(0, PACKAGE)

# The directory of `toold` and `toolctl`.
BIN = os.environ.get("TOOLD_BIN_DIR") or os.path.join(PACKAGE, "..", "..", "target", "debug")
# Seconds that everything that waits in these tests may take.
DEADLINE = 60
ENVIRONMENT = ("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PATH", "TOOLD_SOCKET", "TOOLD_STATE_DIR")


class Daemon:
    def __init__(self, config=""):
        self.root = tempfile.mkdtemp(prefix="toold-py-")
        self.saved = {name: os.environ.get(name) for name in ENVIRONMENT}
        for name in ("home", "tmp", "run", "state", "config/toold"):
            os.makedirs(os.path.join(self.root, name), mode=0o700)
        with open(os.path.join(self.root, "config/toold/config.toml"), "w") as file:
            file.write(config)
        self.env = {
            "PATH": os.path.abspath(BIN) + os.pathsep + os.environ["PATH"],
            "HOME": os.path.join(self.root, "home"),
            "TMPDIR": os.path.join(self.root, "tmp"),
            "XDG_RUNTIME_DIR": os.path.join(self.root, "run"),
            "XDG_STATE_HOME": os.path.join(self.root, "state"),
            "XDG_CONFIG_HOME": os.path.join(self.root, "config"),
        }
        for name in ENVIRONMENT:
            os.environ.pop(name, None)
        os.environ.update(self.env)
        self.socket = os.path.join(self.root, "run/toold/toold.sock")
        self.child = None

    def start(self):
        log = open(os.path.join(self.root, "toold.log"), "ab")
        program = os.path.join(BIN, "toold")
        self.child = subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        log.close()
        eventually("the daemon answers", lambda: self.info() is not None)
        return self

    def info(self):
        return self.ask("daemon.info")

    def ask(self, method, **params):
        """Calls a method without the client under test. None if no daemon answers."""
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(self.socket)
                message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                connection.sendall(json.dumps(message).encode() + b"\n")
                answer = connection.makefile("rb").readline()
            except OSError:
                return None
        return json.loads(answer)["result"] if answer else None

    def pid(self):
        return self.info()["pid"]

    def kill9(self):
        """kill -9 of the daemon, also of one that the client started."""
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None
            return
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        eventually("the daemon is gone", lambda: self.info() is None)

    def stop(self):
        pid = (self.info() or {}).get("pid")
        self.ask("daemon.shutdown", kill=True)
        if self.child is not None:
            self.child.wait(DEADLINE)
            self.child = None
        eventually("the daemon is gone", lambda: pid is None or not os.path.exists(f"/proc/{pid}"))
        for name, value in self.saved.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        shutil.rmtree(self.root)


def eventually(what, fact):
    """Waits for a condition that has no event."""
    deadline = time.monotonic() + DEADLINE
    while not fact():
        if time.monotonic() > deadline:
            raise AssertionError(f"not in {DEADLINE} s: {what}")
        time.sleep(0.005)


class DaemonCase(unittest.TestCase):
    """A test case with a daemon that all of its tests share."""

    config = ""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(cls.config).start()
        cls.addClassCleanup(cls.daemon.stop)

    def file(self, name):
        """Returns a path in the directory of the daemon."""
        return os.path.join(self.daemon.root, "tmp", f"{self.id().rsplit('.', 1)[1]}-{name}")
