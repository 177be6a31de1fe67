"""A program as a user writes it: type checkers must know every name and type in it. It is not run."""

import subprocess
from typing import List, Optional

from toold import AlreadyExited, AsyncToold, NotFound, RpcError, Toold, WaitTimeout, types
from toold.subprocess import PIPE, Popen


def main() -> Optional[int]:
    with Toold(autostart=False) as t:
        p = t.exec("make -j", cwd=".", name="build", notify=True, watch=["error", {"regex": "^warning"}])
        lines: List[str] = [line.upper() for line in p.follow()]
        for cursor, stream, data in p.stream(raw=True):
            print(cursor + 1, stream.upper(), data)
        try:
            r = p.wait(timeout=60, until={"match": "ready"})
            code: Optional[int] = r.exit_code
            p.submit("y")
            p.kill(signal="SIGINT")
            t.run(["pytest"], check=True)
            listed: types.ListResult = t.list(status="running")
            gap: Optional[types.Gap] = t.poll(id=p, cursor=0)["gap"]
            t.kill(ids=[p, "other"])
            return code if gap is None else listed["total"] + len(lines)
        except (NotFound, AlreadyExited) as error:
            return error.code
        except WaitTimeout:
            return None
        except subprocess.CalledProcessError as error:
            return int(error.returncode)
        except RpcError as error:
            return len(error.data)


async def events() -> None:
    async with AsyncToold() as t:
        process = await t.exec(["make"], env={"A": "b"})
        async for line in process.follow():
            print(line.upper())
        async for e in t.events(types=["completion"], consumer="me"):
            number: int = e.seq
            print(number, e.type.upper(), e.id)
            await e.ack()


def popen() -> Optional[int]:
    process: "Popen[str]" = Popen(["cat"], stdin=PIPE, stdout=PIPE, text=True)
    return process.poll()
