"""Runs the app on a socket until it is told to stop, or until the models fail to start."""

from __future__ import annotations

import gc
import signal
import socket
import sys
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING

import anyio
import structlog
import uvicorn

from server.app import create_app
from server.config.keys import keys_of
from server.http.protocol import limited_protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from server.config.settings import Settings
    from server.serving.service import Service

log = structlog.get_logger(__name__)

BACKLOG = 2048
CLEANUP_S = 5  # for the ends of requests to reach their clients


def listen(settings: Settings) -> socket.socket:
    """A listening socket, before anything is loaded. Raises OSError where the address is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only where the protocol is named: 44 ms a response.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":  # a reader that was cut off never takes what is still buffered
            stall_ms = round(1000 * settings.stall_s)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stall_ms)
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def log_who_may_connect(settings: Settings) -> None:
    """Say it where nothing but the address keeps others out. Raises SettingsError."""
    if keys_of(settings):
        return
    if is_loopback(settings.host):
        log.info("no_api_keys", host=settings.host, open_to="this machine")
    else:
        log.warning("no_api_keys", host=settings.host, open_to="everyone who can connect")


def is_loopback(host: str) -> bool:
    """Whether an address is one that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Server(uvicorn.Server):
    """uvicorn without its signal handlers: it would end the process by the signal, not with 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are `serve`'s."""
        yield


def uvicorn_server(service: Service) -> uvicorn.Server:
    """The web server, as it is always run."""
    config = uvicorn.Config(
        create_app(service),
        http=limited_protocol(service.settings),
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here asks who the client is, or by which scheme it came
        backlog=BACKLOG,
        ssl_certfile=service.settings.ssl_certfile,
        ssl_keyfile=service.settings.ssl_keyfile,
        timeout_graceful_shutdown=round(service.settings.shutdown_s) + CLEANUP_S,
    )
    return Server(config)


async def serve(service: Service, listener: socket.socket, tell: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. `tell` gets a line for people when something changes.

    After the signal nothing new is accepted, and streams may finish for `shutdown_s`; then, or at
    a second signal, the rest get their error; a third ends the process as it is. Raises the error
    that kept the models from starting.
    """
    server = uvicorn_server(service)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_announce, service, server, url_of(listener, service.settings), tell)
        tasks.start_soon(_obey_signals, service, server, tell)
        await server.serve([listener])
        tasks.cancel_scope.cancel()
    if service.failure is not None:
        raise service.failure


async def _announce(
    service: Service, server: uvicorn.Server, url: str, tell: Callable[[str], None]
) -> None:
    await service.settled.wait()
    if service.failure is not None:
        server.should_exit = True
    else:
        gc.collect()
        gc.freeze()  # what is loaded stays: no collection needs to walk it again
        tell(f"nano-omni is ready on {url}/v1")


async def _obey_signals(
    service: Service, server: uvicorn.Server, tell: Callable[[str], None]
) -> None:
    with (
        ExitStack() as behind,
        anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
    ):
        await anext(signals)
        # Without the receiver Python would raise KeyboardInterrupt wherever it just is.
        behind.callback(signal.signal, signal.SIGINT, signal.SIG_DFL)
        server.should_exit = True
        if running := service.admission.stats().num_running:
            limit_s = service.settings.shutdown_s
            tell(f"stopping: {running} running may take up to {limit_s:g} s; again to stop now")
        with anyio.move_on_after(service.settings.shutdown_s):
            await anext(signals)
    await service.abort_requests()


def url_of(listener: socket.socket, settings: Settings) -> str:
    """Where the server can be reached."""
    host, port = listener.getsockname()[:2]
    scheme = "http" if settings.ssl_certfile is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
