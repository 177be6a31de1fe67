"""The methods are those of the daemon, one to one: names, parameters, defaults, errors."""

import asyncio
import inspect
import json
import keyword
import os
import unittest

import rig
import toold
from toold import AsyncToold, Toold, _kinds, types

DOCUMENT = os.path.join(rig.PACKAGE, "..", "..", "proto", "openrpc.json")


def default_of(schema):
    """The default of a type on the wire."""
    return {"boolean": False, "integer": 0}.get(schema.get("type") if isinstance(schema.get("type"), str) else None)


class Signatures(unittest.TestCase):
    maxDiff = None

    def test_every_method_has_its_parameters_as_keywords_with_their_defaults(self):
        with open(DOCUMENT) as file:
            document = json.load(file)
        for client in (Toold, AsyncToold):
            for method in document["methods"]:
                function = getattr(client, method["name"].replace(".", "_"))
                found = dict(inspect.signature(function).parameters)
                del found["self"]
                if method["name"] == "tools.register":
                    self.assertEqual(found.pop("invoke").kind, inspect.Parameter.KEYWORD_ONLY)
                expected = {}
                for param in method["params"]:
                    name = param["name"] + ("_" if keyword.iskeyword(param["name"]) else "")
                    is_command = (method["name"], name) == ("exec", "command")
                    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if is_command else inspect.Parameter.KEYWORD_ONLY
                    default = inspect.Parameter.empty if param["required"] else default_of(param["schema"])
                    expected[name] = (kind, default)
                self.assertEqual({n: (p.kind, p.default) for n, p in found.items()}, expected, method["name"])

    def test_every_component_is_a_type_and_every_kind_an_exception(self):
        with open(DOCUMENT) as file:
            document = json.load(file)
        missing = [name for name in document["components"]["schemas"] if not hasattr(types, name)]
        self.assertEqual(missing, [])
        kinds = {error["data"]["kind"] for method in document["methods"] for error in method["errors"]}
        self.assertEqual(kinds - set(_kinds.KINDS), set())
        for kind, error in _kinds.KINDS.items():
            self.assertIs(getattr(toold, error.__name__), error)
            self.assertEqual(error.kind, kind)
            self.assertTrue(issubclass(error, toold.RpcError))

    def test_required_and_optional_fields_are_known_at_run_time(self):
        self.assertIn("id", types.Process.__required_keys__)
        self.assertIn("exit_code", types.Process.__optional_keys__)
        self.assertEqual(types.Gap.__required_keys__, {"from", "to"})
        self.assertIn("from", types.PollResult.__required_keys__)

    def test_the_version_is_that_of_the_daemon(self):
        with open(os.path.join(rig.PACKAGE, "pyproject.toml")) as file:
            self.assertIn(f'version = "{toold.__version__}"', file.read())
        with open(DOCUMENT) as file:
            self.assertEqual(json.load(file)["info"]["version"], toold.__version__)


class Calls(rig.DaemonCase):
    def test_a_result_is_the_one_of_the_wire(self):
        with Toold() as t:
            p = t.exec("echo hi", yield_ms=60000, labels={"a": "b"}, request_id="same")
            same = t.exec("echo hi", yield_ms=60000, labels={"a": "b"}, request_id="same")
            self.assertEqual((p.id, p.existing, same.existing), (same.id, False, True))
            self.assertEqual((p.output, p["output"], p.get("nothing"), "labels" in p), ("hi\n", "hi\n", None, True))
            log = t.log(id=p, offset=0)
            self.assertEqual((log["output"], log.total_lines), ("hi\n", 1))
            self.assertEqual([one["id"] for one in t.list(label="a=b")["processes"]], [p.id])
            self.assertEqual([one.id for one in t.processes(label="a=b")], [p.id])
            self.assertEqual(t.poll(id=p, cursor=0, fields=["exit_code", "output"]).fields, {"exit_code": 0, "output": "hi\n"})
            self.assertEqual(t.get(p.id[:12]).log_path, t.inspect(id=p)["log_path"])
            self.assertEqual(t.call("daemon.info")["pid"], self.daemon.pid())
            self.assertEqual(t.forget(ids=[p]).forgotten, [p.id])

    def test_a_wrong_parameter_is_refused_by_name(self):
        with Toold() as t:
            with self.assertRaises(TypeError):
                t.exec("true", comand="x")
            with self.assertRaises(toold.InvalidParams) as caught:
                t.call("exec", comand="x")
            self.assertEqual(caught.exception.data["param"], "comand")
            with self.assertRaises(toold.InvalidParams):
                t.exec()
            with self.assertRaises(UnicodeEncodeError):
                t.exec("\udcff")
            with self.assertRaises(AttributeError):
                t.exec("true").nothing

    def test_errors_have_their_kinds(self):
        with Toold() as t:
            p = t.exec("true", name="used").wait()
            with self.assertRaises(toold.AlreadyExited) as exited:
                p.send_signal(15)
            self.assertEqual(exited.exception.data["exit_code"], 0)
            running = t.exec("sleep 100", name="running")
            with self.assertRaises(toold.AlreadyExists):
                t.exec("true", name="running")
            with self.assertRaises(toold.StdinUnavailable):
                running.write("x")
            with self.assertRaises(toold.SpawnFailed):
                t.exec(["/nonexistent"])
            running.kill()

    def test_a_terminal_has_a_screen_and_takes_keys(self):
        with Toold() as t:
            p = t.exec(["sh", "-c", "stty -echo; printf ready; read x; echo \" $x\""], pty={"rows": 10, "cols": 40})
            p.wait(timeout=60, until={"match": "ready"})
            p.resize(rows=11, cols=41)
            p.write(keys=["u", "p", "Enter"])
            self.assertEqual(list(p.follow()), ["ready up"])
            self.assertEqual((p.screen().text.strip(), p.screen().rows), ("ready up", 11))

    def test_a_process_is_paused_resumed_and_restarted(self):
        with Toold() as t:
            p = t.exec("sleep 100", name="again")
            self.assertTrue(p.pause().stopped)
            self.assertFalse(p.resume().stopped)
            new = p.restart(grace_ms=100)
            self.assertEqual((new.restart_of, new.name, new.status), (p.id, "again", "running"))
            new.kill()
            self.assertEqual(p.wait().reason, "killed")

    def test_a_timeout_may_be_infinite(self):
        async def waited():
            async with toold.AsyncToold() as t:
                return (await (await t.exec("exit 5")).wait(timeout=float("inf"))).exit_code

        with Toold() as t:
            self.assertEqual(t.exec("exit 4").wait(timeout=float("inf")).exit_code, 4)
            running = t.exec("sleep 100")
            with self.assertRaises(toold.WaitTimeout):
                running.wait(timeout=float("-inf"))
            running.kill()
        self.assertEqual(asyncio.run(waited()), 5)

    def test_a_message_that_is_too_long_is_refused_and_the_client_goes_on(self):
        with Toold() as t:
            with self.assertRaises(toold.RpcError):
                t.exec("x" * (17 << 20))
            self.assertEqual(t.exec("exit 4").wait().exit_code, 4)


if __name__ == "__main__":
    unittest.main()
