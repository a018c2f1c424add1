"""A server of its own for as long as a command runs: same wire, same process, no other clients."""

from __future__ import annotations

import secrets
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from server.cli.client.api import Target
from server.serve import listen, url_of, uvicorn_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from server.config.settings import Settings
    from server.serving.service import Service

END_S = 10.0


@contextmanager
def serving_here(settings: Settings, service_of: Callable[[Settings], Service]) -> Iterator[Target]:
    """Serve on a free port of loopback, under a key that nobody else has, once models are loaded.

    Raises what kept them from starting.
    """
    key = secrets.token_urlsafe()
    own = {"host": "127.0.0.1", "port": 0, "api_keys": key, "api_keys_file": None}
    tls = {"ssl_certfile": None, "ssl_keyfile": None, "root_path": ""}
    chosen = settings.model_validate({**settings.model_dump(exclude={"api_keys"}), **own, **tls})
    service = service_of(chosen)
    listener = listen(chosen)
    server = uvicorn_server(service)
    settled = threading.Event()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            await service.settled.wait()
            settled.set()

    thread = threading.Thread(target=anyio.run, args=(main,), daemon=True)
    thread.start()
    try:
        settled.wait()
        if service.failure is not None:
            raise service.failure
        yield Target(url_of(listener, chosen), key)
    finally:
        server.should_exit = True
        thread.join(END_S)
        listener.close()
