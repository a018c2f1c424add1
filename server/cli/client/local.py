"""Runs a server in this process for as long as a command runs. Only the command can use it."""

from __future__ import annotations

import secrets
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from server.cli.client.api import ServerAddress
from server.serve import listen, url_of, uvicorn_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from server.config.settings import Settings
    from server.serving.service import Service

SHUTDOWN_S = 10.0


@contextmanager
def local_server(
    settings: Settings, build_service: Callable[[Settings], Service]
) -> Iterator[ServerAddress]:
    """Serve on a free loopback port with a random API key. Yields once the models are loaded.

    Raises the error that kept the models from starting.
    """
    api_key = secrets.token_urlsafe()
    overrides = {
        "host": "127.0.0.1",
        "port": 0,
        "api_keys": api_key,
        "api_keys_file": None,
        "ssl_certfile": None,
        "ssl_keyfile": None,
        "root_path": "",
    }
    given = settings.model_dump(exclude={"api_keys"}, by_alias=True)
    local_settings = settings.model_validate({**given, **overrides})
    service = build_service(local_settings)
    listener = listen(local_settings)
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
        yield ServerAddress(url_of(listener, local_settings), api_key)
    finally:
        server.should_exit = True
        thread.join(SHUTDOWN_S)
        listener.close()
