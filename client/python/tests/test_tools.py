"""Tools that a client serves over its connection."""

import asyncio
import threading
import unittest

import rig
import toold
from toold import AsyncToold, Toold

TOOLS = [
    {"name": "add", "description": "Add two numbers.", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}, "idempotent": True},
    {"name": "fail", "description": "Fail.", "input_schema": {"type": "object"}},
]


def invoke(call):
    if call.name == "add":
        return {"sum": call.args["a"] + call.args["b"]}
    raise ValueError("as asked")


class Tools(rig.DaemonCase):
    def test_a_client_serves_tools_until_it_withdraws_them(self):
        with Toold() as t, Toold() as other:
            registered = t.tools_register(provider="blocking", tools=TOOLS, invoke=invoke)
            self.assertEqual(registered["tools"], ["blocking.add", "blocking.fail"])
            self.assertEqual(other.tools_call(name="blocking.add", args={"a": 2, "b": 3})["result"], {"sum": 5})
            with self.assertRaisesRegex(toold.ToolFailed, "ValueError: as asked"):
                other.tools_call(name="blocking.fail")
            self.assertEqual(t.tools_unregister(provider="blocking")["tools"], ["blocking.add", "blocking.fail"])
            with self.assertRaises(toold.InvalidParams):
                other.tools_call(name="blocking.add", args={"a": 2, "b": 3})

    def test_a_client_registers_again_after_kill_9(self):
        with Toold() as t:
            t.tools_register(provider="durable", tools=TOOLS, invoke=invoke)
            self.daemon.kill9()
            self.daemon.start()

            def is_ready():
                listed = [one for one in t.tools_list()["tools"] if one["name"].startswith("durable.")]
                return [one["state"] for one in listed] == ["ready", "ready"]

            rig.eventually("the tools are back", is_ready)
            self.assertEqual(t.tools_call(name="durable.add", args={"a": 1, "b": 1})["result"], {"sum": 2})

    def test_calls_run_side_by_side_and_can_be_cancelled(self):
        reached, cancelled = threading.Event(), threading.Event()

        def slow(call):
            if call.name == "fail":
                reached.set()
                call.cancelled.wait(rig.DEADLINE)
                cancelled.set()
            return invoke(call) if call.name == "add" else None

        with Toold() as t:
            t.tools_register(provider="slow", tools=TOOLS, invoke=slow)

            async def main():
                async with AsyncToold() as other:
                    waiting = asyncio.ensure_future(other.tools_call(name="slow.fail"))
                    await asyncio.get_running_loop().run_in_executor(None, reached.wait, rig.DEADLINE)
                    self.assertEqual((await other.tools_call(name="slow.add", args={"a": 4, "b": 4}))["result"], {"sum": 8})
                    waiting.cancel()
                    await asyncio.wait([waiting])

            asyncio.run(asyncio.wait_for(main(), rig.DEADLINE))
            self.assertTrue(cancelled.wait(rig.DEADLINE))

    def test_asyncio_serves_tools(self):
        async def slow(call):
            await asyncio.sleep(0)
            return invoke(call)

        async def main():
            async with AsyncToold() as t:
                await t.tools_register(provider="aio", tools=TOOLS, invoke=slow)
                calls = [t.tools_call(name="aio.add", args={"a": n, "b": 1}) for n in range(10)]
                self.assertEqual([one["result"]["sum"] for one in await asyncio.gather(*calls)], list(range(1, 11)))
                with self.assertRaises(toold.ToolFailed):
                    await t.tools_call(name="aio.fail")
                self.assertEqual((await t.tools_unregister(provider="aio"))["tools"], ["aio.add", "aio.fail"])

        asyncio.run(asyncio.wait_for(main(), rig.DEADLINE))


if __name__ == "__main__":
    unittest.main()
