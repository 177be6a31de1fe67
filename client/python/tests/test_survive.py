"""kill -9 of the daemon: the client reconnects, repeats what is safe, and goes on where it was."""

import asyncio
import os
import threading
import unittest

import rig
from toold import AsyncToold, ConnectionLost, DaemonUnreachable, Toold
import toold.subprocess


def in_thread(function):
    """Runs a function beside the test. The returned function waits for its result."""
    done = []

    def run():
        try:
            done.append((function(), None))
        except BaseException as error:
            done.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()

    def result():
        thread.join(rig.DEADLINE)
        assert not thread.is_alive(), "it does not end"
        value, error = done[0]
        if error is not None:
            raise error
        return value

    return result


class Survive(unittest.TestCase):
    def setUp(self):
        self.daemon = rig.Daemon()
        self.addCleanup(self.daemon.stop)
        self.gate = os.path.join(self.daemon.root, "tmp", "gate")
        self.wait_for_gate = f"while [ ! -e {self.gate} ]; do sleep 0.01; done"

    def open_gate(self):
        with open(self.gate, "w"):
            pass

    def connected(self, count):
        """Waits until the daemon has so many connections beside the one that asks."""
        rig.eventually(f"{count} connections", lambda: (self.daemon.info() or {"counts": {"connections": 0}})["counts"]["connections"] > count)

    def test_the_first_call_starts_the_daemon(self):
        with Toold() as t:
            self.assertEqual(t.exec("exit 3").wait().exit_code, 3)
        with Toold(autostart=False) as t:
            self.assertEqual(t.daemon_info()["paths"]["socket"], self.daemon.socket)

    def test_without_a_daemon_and_autostart_the_error_names_the_socket(self):
        for client in (Toold(autostart=False), Toold("/nonexistent/toold.sock", autostart=False)):
            with self.assertRaisesRegex(DaemonUnreachable, f"no daemon answers at {client.socket}"):
                client.list()

    def test_nothing_is_sent_to_a_directory_of_others(self):
        place = os.path.join(self.daemon.root, "open")
        os.mkdir(place)
        os.chmod(place, 0o777)
        with self.assertRaisesRegex(DaemonUnreachable, "nothing was sent to .*has mode 777"):
            Toold(os.path.join(place, "toold.sock")).list()

    def test_an_idle_client_reconnects(self):
        self.daemon.start()
        with Toold() as t:
            p = t.exec(self.wait_for_gate + "; exit 6")
            self.daemon.kill9()
            self.assertEqual(p.poll().status, "running")
            self.open_gate()
            self.assertEqual(p.wait().exit_code, 6)

    def test_a_wait_in_flight_is_repeated(self):
        self.daemon.start()
        with Toold() as t:
            p = t.exec(self.wait_for_gate + "; exit 7")
            result = in_thread(lambda: p.wait(timeout=rig.DEADLINE).exit_code)
            self.connected(1)
            self.daemon.kill9()
            self.open_gate()
            self.assertEqual(result(), 7)

    def test_an_exec_in_flight_is_repeated_and_starts_one_process(self):
        self.daemon.start()
        with Toold() as t:
            command = f"echo run >> {self.gate}.runs; {self.wait_for_gate}; exit 8"
            result = in_thread(lambda: t.exec(command, yield_ms=60000))
            rig.eventually("it runs", lambda: os.path.exists(self.gate + ".runs"))
            self.daemon.kill9()
            self.open_gate()
            self.assertEqual(result().wait().exit_code, 8)
            self.assertEqual(t.list()["total"], 1)
        with open(self.gate + ".runs") as file:
            self.assertEqual(file.read(), "run\n")

    def test_a_kill_in_flight_is_not_repeated_and_the_error_states_it(self):
        self.daemon.start()
        with Toold() as t:
            p = t.exec(f"trap 'echo term > {self.gate}.term' TERM; echo ready; while :; do sleep 0.01; done")
            p.wait(timeout=rig.DEADLINE, until={"match": "ready"})
            result = in_thread(lambda: t.kill(id=p, grace_ms=600000))
            rig.eventually("it is signalled", lambda: os.path.exists(self.gate + ".term"))
            self.daemon.kill9()
            with self.assertRaises(ConnectionLost) as caught:
                result()
            self.assertEqual(caught.exception.method, "kill")
            self.assertIn("not known whether the call had an effect", str(caught.exception))
            self.assertEqual(p.kill(grace_ms=0).survivors, [])

    def test_a_follow_goes_on_with_the_next_byte(self):
        self.daemon.start()
        with Toold() as t:
            p = t.exec(f"seq 1000; {self.wait_for_gate}; seq 1001 3000")
            lines = p.follow()
            found = [next(lines) for _ in range(1000)]
            self.daemon.kill9()
            self.open_gate()
            found += lines
        self.assertEqual(found, [str(n) for n in range(1, 3001)])

    def test_a_subscription_goes_on_with_the_next_number(self):
        self.daemon.start()
        with Toold() as t, t.events() as events:
            p = t.exec(self.wait_for_gate + "; exit 9", notify=True)
            first = events.next(timeout=rig.DEADLINE)
            self.daemon.kill9()
            self.open_gate()
            rest = [events.next(timeout=rig.DEADLINE) for _ in range(3)]
            found = [(e.type, e.id) for e in [first, *rest]]
            self.assertEqual(found, [(kind, p.id) for kind in ("started", "exited", "closed", "completion")])
            self.assertEqual([e.seq for e in rest], list(range(first.seq + 1, first.seq + 4)))

    def test_a_subscription_that_had_no_event_yet_misses_none(self):
        self.daemon.start()
        with Toold() as t:
            t.exec("true").wait(until="closed")
            with t.events() as events:
                self.daemon.kill9()
                p = t.exec("true")
                self.assertEqual((events.next(timeout=rig.DEADLINE).type, p.wait().exit_code), ("started", 0))

    def test_output_that_a_subscription_missed_is_reported(self):
        self.daemon.start()
        with Toold() as t, t.events(output=True, types=["closed"]) as events:
            p = t.exec(f"echo one; {self.wait_for_gate}; echo two")
            first = events.next(timeout=rig.DEADLINE)
            self.assertEqual((first.type, first.data, first.next_cursor), ("output", "one\n", 4))
            self.daemon.kill9()
            self.open_gate()
            rig.eventually("it has ended", lambda: not os.path.exists(f"/proc/{p.pid}"))
            missed, closed = (events.next(timeout=rig.DEADLINE) for _ in range(2))
            self.assertEqual(missed.fields, {"type": "lagged", "of": "output", "id": p.id, "from": 4, "to": 8})
            self.assertEqual((closed.type, closed.bytes, missed.from_), ("closed", 8, 4))

    def test_a_write_in_flight_is_written_once(self):
        self.daemon.start()
        data = b"".join(b"%07d\n" % n for n in range(40000))
        with Toold() as t:
            p = t.exec(f"echo up; {self.wait_for_gate}; sha256sum", stdin="pipe")
            p.wait(until={"match": "up"})
            result = in_thread(lambda: p.write(data, timeout_ms=600000))
            self.connected(1)
            self.daemon.kill9()
            self.open_gate()
            written = result()
            rest = data[written["bytes_written"] :]
            if rest:
                p.write(rest, timeout_ms=600000)
            p.close()
            import hashlib

            self.assertEqual(list(p.follow()), ["up", hashlib.sha256(data).hexdigest() + "  -"])

    def test_a_popen_goes_on(self):
        self.daemon.start()
        script = f'read x; echo "first $x"; {self.wait_for_gate}; read y; echo "second $y"; exit 4'
        with toold.subprocess.Popen(script, shell=True, stdin=-1, stdout=-1, text=True) as process:
            process.stdin.write("a\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "first a\n")
            self.daemon.kill9()
            self.open_gate()
            self.assertEqual(process.communicate("b\n", timeout=rig.DEADLINE), ("second b\n", None))
        self.assertEqual(process.returncode, 4)

    def test_asyncio_calls_and_subscriptions_go_on(self):
        self.daemon.start()

        async def main():
            async with AsyncToold() as t, t.events(types=["exited"]) as events:
                waiting = [await t.exec(self.wait_for_gate + f"; exit {n}") for n in range(5)]
                tasks = [asyncio.ensure_future(p.wait()) for p in waiting]
                executed = asyncio.ensure_future(t.exec(self.wait_for_gate + "; exit 5", yield_ms=60000))
                while len((await t.list())["processes"]) < 6:
                    pass
                killed = asyncio.ensure_future(t.kill(id=waiting[0], signal="SIGCONT", grace_ms=600000))
                await t.list()
                self.daemon.kill9()
                self.open_gate()
                self.assertEqual([(await task).exit_code for task in tasks], list(range(5)))
                self.assertEqual((await (await executed).wait()).exit_code, 5)
                with self.assertRaises(ConnectionLost):
                    await killed
                seen = [await events.__anext__() for _ in range(6)]
                self.assertEqual(sorted(e.exit_code for e in seen), list(range(6)))
                self.assertEqual((await t.list())["total"], 6)

        asyncio.run(asyncio.wait_for(main(), rig.DEADLINE))


if __name__ == "__main__":
    unittest.main()
