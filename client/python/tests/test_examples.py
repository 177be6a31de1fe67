"""The examples of the contract, as they are written there."""

import asyncio
import os
import subprocess
import unittest

import rig
from toold import AsyncToold, NotFound, Toold, WaitTimeout


class Examples(rig.DaemonCase):
    def test_a_build_is_started_followed_and_waited_for(self):
        with Toold() as t:
            p = t.exec("printf 'one\\ntwo\\n'; exit 3", cwd=".", name="build", notify=True)
            self.assertEqual([p.name, p.cwd, p.notify, p.backend], ["build", os.getcwd(), True, "local"])
            self.assertEqual([line for line in p.follow()], ["one", "two"])
            r = p.wait(timeout=60)
            self.assertEqual((r.exit_code, r.signal, r.status, r.reason), (3, None, "exited", "exited"))

    def test_a_stream_has_cursors_streams_and_bytes(self):
        with Toold() as t:
            p = t.exec(["sh", "-c", "printf 'gr\\303\\274'; printf x >&2"])
            parts = sorted(p.stream(raw=True), key=lambda part: part[1])
            self.assertEqual([(stream, data) for _, stream, data in parts], [("stderr", b"x"), ("stdout", "grü".encode())])
            self.assertEqual(sorted(cursor for cursor, _, _ in parts)[0], 0)
            self.assertEqual("".join(text for _, stream, text in p.stream() if stream == "stdout"), "grü")

    def test_a_wait_that_times_out_leaves_the_process_running(self):
        with Toold() as t:
            p = t.exec("read x; echo got $x", stdin="pipe")
            with self.assertRaises(WaitTimeout) as caught:
                p.wait(timeout=0.05)
            self.assertIsInstance(caught.exception, TimeoutError)
            self.assertEqual(str(caught.exception), "timed out after 0.05 s; the process keeps running")
            self.assertEqual((caught.exception.process.status, t.poll(id=p).status), ("running", "running"))
            self.assertEqual(p.submit("y").bytes_written, 2)
            self.assertEqual((p.wait(timeout=60).exit_code, p.output), (0, "got y\n"))

    def test_kill_ends_the_tree_and_gives_a_receipt(self):
        with Toold() as t:
            p = t.exec("sleep 100")
            receipt = p.kill()
            self.assertEqual((receipt.status, receipt.survivors, receipt["exit_code"]), ("killed", [], 143))
            self.assertEqual((p.exit_code, p.signal, p.reason), (143, "SIGTERM", "killed"))

    def test_run_with_check_raises_the_error_of_subprocess(self):
        with Toold() as t:
            with self.assertRaises(subprocess.CalledProcessError) as caught:
                t.run(["sh", "-c", "echo out; echo err >&2; exit 2"], check=True, capture_output=True, text=True)
            error = caught.exception
            self.assertEqual((error.returncode, error.stdout, error.stderr), (2, "out\n", "err\n"))
            self.assertEqual(t.run(["true"], check=True).returncode, 0)
            self.assertEqual(t.run("kill -TERM $$", shell=True).returncode, -15)
            with self.assertRaises(FileNotFoundError):
                t.run(["/nonexistent/program"])

    def test_an_unknown_process_is_not_found(self):
        with Toold() as t:
            with self.assertRaises(NotFound) as caught:
                t.poll(id="ghost")
        error = caught.exception
        self.assertEqual((error.code, error.kind, error.data["id"]), (-32001, "not_found", "ghost"))

    def test_a_consumer_gets_each_completion_once(self):
        async def acknowledged(count):
            found = []
            async with AsyncToold() as t:
                async for e in t.events(types=["completion"], consumer="me", session_key="example"):
                    found.append((e.id, e.type, e.exit_code))
                    await e.ack()
                    if len(found) == count:
                        return found

        with Toold() as t:
            first = [t.exec(f"exit {n}", notify=True, session_key="example").wait() for n in (1, 2)]
            expected = [(p.id, "completion", p.exit_code) for p in first]
            self.assertEqual(sorted(asyncio.run(acknowledged(2))), sorted(expected))
            third = t.exec("exit 3", notify=True, session_key="example").wait()
        self.assertEqual(asyncio.run(acknowledged(1)), [(third.id, "completion", 3)])

    def test_an_event_that_is_not_acknowledged_comes_again(self):
        with Toold() as t:
            p = t.exec("true", notify=True, session_key="again").wait()
            for _ in range(2):
                with t.events(types=["completion"], consumer="again", session_key="again") as events:
                    self.assertEqual(next(events).id, p.id)
            with t.events(types=["completion"], session_key="again", after=0) as events:
                event = next(events)
            with self.assertRaisesRegex(Exception, "consumer"):
                event.ack()


if __name__ == "__main__":
    unittest.main()
