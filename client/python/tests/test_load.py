"""Many threads, forks, cancelled tasks, slow readers, much output, characters in pieces."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import rig
from toold import AsyncToold, Toold, WaitTimeout

# More than a client may need for its own work, and far less than the output.
MAX_RSS_KIB = 64 * 1024
SIZE = 100_000_000


class Load(rig.DaemonCase):
    def test_threads_share_a_client(self):
        failures, count = [], 12

        def work(n):
            for i in range(5):
                p = t.exec(f"echo {n}; exit {n}")
                found = (list(p.follow()), p.wait(timeout=rig.DEADLINE).exit_code)
                if found != ([str(n)], n):
                    failures.append(found)

        with Toold() as t:
            threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(rig.DEADLINE)
                self.assertFalse(thread.is_alive())
        self.assertEqual(failures, [])

    def test_a_fork_uses_the_client_beside_its_parent(self):
        with Toold() as t:
            blocked = t.exec("read x", stdin="pipe")
            thread = threading.Thread(target=blocked.wait)
            thread.start()
            t.list()
            events = t.events(types=["exited"])
            pid = os.fork()
            if pid == 0:
                code = 99
                try:
                    code = t.exec("exit 11").wait(timeout=rig.DEADLINE).exit_code
                    code += next(events).exit_code
                finally:
                    os._exit(code)
            self.assertEqual(t.exec("exit 11").wait(timeout=rig.DEADLINE).exit_code, 11)
            self.assertEqual(next(events).exit_code, 11)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 22)
            blocked.submit("go")
            thread.join(rig.DEADLINE)
            self.assertFalse(thread.is_alive())
            events.close()

    def run_script(self, text):
        env = dict(os.environ, PYTHONPATH=rig.PACKAGE, PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run([sys.executable, "-c", text], env=env, stdout=subprocess.PIPE, timeout=300, check=True)
        return json.loads(done.stdout)

    def test_much_output_is_followed_in_little_memory(self):
        found = self.run_script(f"""
import json, resource, toold
t = toold.Toold()
p = t.exec("head -c {SIZE} /dev/zero | tr '\\\\0' x | fold -w 99")
lines = sum(1 for _ in p.follow())
size = sum(len(data) for _, _, data in p.stream(raw=True))
print(json.dumps([lines, size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
""")
        self.assertEqual(found[:2], [-(-SIZE // 99), SIZE + SIZE // 99])
        self.assertLess(found[2], MAX_RSS_KIB)

    def test_asyncio_follows_much_output_in_little_memory(self):
        found = self.run_script(f"""
import asyncio, json, resource, toold
async def main():
    async with toold.AsyncToold() as t:
        p = await t.exec("head -c {SIZE} /dev/zero")
        size = 0
        async for _, _, data in p.stream(raw=True):
            size += len(data)
        print(json.dumps([size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
asyncio.run(main())
""")
        self.assertEqual(found[0], SIZE)
        self.assertLess(found[1], MAX_RSS_KIB)

    def test_a_slow_reader_of_a_subscription_costs_no_memory_and_blocks_no_call(self):
        found = self.run_script("""
import json, resource, toold
with toold.Toold() as t, t.events(output=True, session_key="slow") as events:
    p = t.exec("head -c 30000000 /dev/zero | tr '\\\\0' y | fold -w 99; exit 3", session_key="slow")
    code = p.wait(until="closed").exit_code
    seen = {}
    end, gaps = 0, 0
    for e in events:
        seen[e.type] = seen.get(e.type, 0) + 1
        if e.type == "output":
            assert e.cursor == end, (e.cursor, end)
            end = e.next_cursor
        if e.type == "lagged":
            assert e.from_ == end, (e.from_, end)
            end = e.to
        if e.type == "closed":
            break
    print(json.dumps([code, end, seen["started"], seen["exited"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
""")
        self.assertEqual(found[:4], [3, 30000000 + 30000000 // 99, 1, 1])
        self.assertLess(found[4], MAX_RSS_KIB)

    def test_characters_in_pieces_come_out_whole(self):
        text = "grüß €uro 😀\n"
        octets = "; ".join(f"printf '\\{byte:03o}'; sleep 0.002" for byte in text.encode())
        with Toold() as t:
            with t.events(output=True, types=["closed"], session_key="pieces") as events:
                p = t.exec(["sh", "-c", octets], session_key="pieces")
                pushed = []
                for e in events:
                    if e.type == "closed":
                        break
                    pushed.append(e.data)
            self.assertEqual("".join(pushed), text)
            p = t.exec(["sh", "-c", octets + "; printf '\\303'"])
            self.assertEqual(list(p.follow()), [text[:-1], "\ufffd"])
            self.assertEqual("".join(part for _, _, part in p.stream()), text + "\ufffd")
            self.assertEqual(b"".join(part for _, _, part in p.stream(raw=True)), text.encode() + b"\xc3")

    def test_a_subscription_that_is_closed_ends_its_thread(self):
        with Toold() as t:
            events, found = t.events(session_key="nothing"), []
            thread = threading.Thread(target=lambda: found.append(list(events)))
            thread.start()
            self.assertTrue(t.events_unsubscribe(subscription=events))
            thread.join(rig.DEADLINE)
            self.assertEqual((found, t.events_unsubscribe(subscription=events)), ([[]], False))
            with t.events(session_key="nothing") as events, self.assertRaises(WaitTimeout):
                events.next(timeout=0.01)

    def test_a_cancelled_task_leaves_the_others_alone(self):
        async def main():
            async with AsyncToold() as t:
                p = await t.exec("read x; exit 3", stdin="pipe")
                tasks = [asyncio.ensure_future(p.wait()) for _ in range(50)]
                await t.list()
                for task in tasks[::2]:
                    task.cancel()
                done = await asyncio.gather(*tasks[::2], return_exceptions=True)
                self.assertTrue(all(isinstance(one, asyncio.CancelledError) for one in done))
                async def follow():
                    async for _ in p.follow():
                        pass
                following = asyncio.ensure_future(follow())
                await t.list()
                following.cancel()
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(t.events(types=["exited"]).__anext__(), 0.05)
                await p.submit("go")
                self.assertEqual([(await task).exit_code for task in tasks[1::2]], [3] * 25)

        asyncio.run(asyncio.wait_for(main(), rig.DEADLINE))

    def test_a_cancelled_event_is_not_lost(self):
        async def main():
            async with AsyncToold() as t:
                async with t.events(types=["completion"], session_key="cancel") as events:
                    for n in range(20):
                        waiting = asyncio.ensure_future(events.__anext__())
                        await t.list()
                        waiting.cancel()
                        await asyncio.wait([waiting])
                        p = await t.exec(f"exit {n}", notify=True, session_key="cancel")
                        event = await asyncio.wait_for(events.__anext__(), rig.DEADLINE)
                        self.assertEqual((event.id, event.exit_code), (p.id, n))

        asyncio.run(asyncio.wait_for(main(), rig.DEADLINE))


class Fake(unittest.TestCase):
    """A daemon that answers nothing, to see what is sent."""

    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="toold-py-")
        self.addCleanup(os.rmdir, self.place)
        self.path = os.path.join(self.place, "toold.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.addCleanup(os.unlink, self.path)
        self.addCleanup(self.listener.close)

    def test_a_cancelled_task_cancels_its_request(self):
        async def main():
            async with AsyncToold(self.path) as t:
                task = asyncio.ensure_future(t.wait(id="x"))
                peer, _ = await asyncio.get_running_loop().run_in_executor(None, self.listener.accept)
                with peer, peer.makefile("rb") as lines:
                    first = await asyncio.get_running_loop().run_in_executor(None, lines.readline)
                    task.cancel()
                    second = await asyncio.get_running_loop().run_in_executor(None, lines.readline)
                self.assertEqual(json.loads(first), {"jsonrpc": "2.0", "id": 1, "method": "wait", "params": {"id": "x"}})
                self.assertEqual(json.loads(second), {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}})

        asyncio.run(asyncio.wait_for(main(), rig.DEADLINE))

    def test_a_daemon_that_dies_of_a_call_is_given_up(self):
        def accept():
            for _ in range(6):
                peer, _ = self.listener.accept()
                with peer:
                    peer.recv(65536)

        thread = threading.Thread(target=accept)
        thread.start()
        with Toold(self.path, autostart=False) as t, self.assertRaisesRegex(ConnectionError, "ended 6 times in a row during `list`"):
            t.list()
        thread.join(rig.DEADLINE)

    def test_a_call_that_changes_something_is_sent_once(self):
        seen = []

        def accept():
            peer, _ = self.listener.accept()
            with peer:
                seen.append(json.loads(peer.recv(65536)))

        thread = threading.Thread(target=accept)
        thread.start()
        with Toold(self.path, autostart=False) as t, self.assertRaisesRegex(ConnectionError, "during `signal`"):
            t.signal(id="x", signal="SIGHUP")
        thread.join(rig.DEADLINE)
        self.assertEqual([one["method"] for one in seen], ["signal"])


if __name__ == "__main__":
    unittest.main()
