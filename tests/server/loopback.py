"""A real server on a free port, in a thread, for real clients."""

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
import uvicorn

from server.serve import listen, url_of, uvicorn_server


@dataclass(frozen=True)
class Address:
    url: str
    port: int
    server: uvicorn.Server
    loop: asyncio.AbstractEventLoop

    def call(self, function, *args):
        """Run `function` in the server's thread."""
        self.loop.call_soon_threadsafe(function, *args)


@contextmanager
def serving(service, start_s=20):
    """Serve until the end of the `with`. Gives the address once requests can be served."""
    listener = listen(service.settings)
    server = uvicorn_server(service)
    ready = threading.Event()
    loops = []

    async def main():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            await service.settled.wait()
            loops.append(asyncio.get_running_loop())
            ready.set()

    thread = threading.Thread(target=anyio.run, args=(main,))
    thread.start()
    try:
        assert ready.wait(start_s)
        assert service.failure is None
        yield Address(
            url_of(listener, service.settings), listener.getsockname()[1], server, loops[0]
        )
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
    assert not thread.is_alive()
