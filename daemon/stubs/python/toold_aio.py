"""Tools for asyncio. The stub imports this at the first use of `aio`."""
import asyncio

import toold_link


class Aio:
    """Tools for asyncio: `await aio.terminal("ls")`."""

    def __init__(self, source):
        self.__dict__["_source"] = source

    def __getattr__(self, name):
        tool = getattr(self._source, name)
        return self._awaitable(tool) if hasattr(tool, "later") else Aio(tool)

    def __getitem__(self, name):
        return self._awaitable(self._source[name])

    def _awaitable(self, tool):
        async def call(*args, **kwargs):
            later, loop = tool.later(*args, **kwargs), asyncio.get_running_loop()
            ended, here = loop.create_future(), toold_link.link()

            def settle():
                if not ended.done():
                    ended.set_result(None)

            def then(call):
                try:
                    loop.call_soon_threadsafe(settle)
                except RuntimeError:
                    pass  # the loop is closed

            started = here.submit(later, then)
            try:
                await ended
            except asyncio.CancelledError:
                here.cancel(started)
                raise
            return here.value(started.answer, later.tool, started.id)

        call.__name__, call.__doc__, call.__wrapped__ = tool.__name__, tool.__doc__, tool.__wrapped__
        return call
