"""Runs the app on a socket until a signal stops it, or until the models fail to start."""

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
CLEANUP_S = 5  # for the last bytes of requests to reach their clients


def listen(settings: Settings) -> socket.socket:
    """A listening socket, opened before models load. Raises OSError if the address is in use."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is given; without it a response takes 44 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":  # drops clients that never read what is buffered for them
            stall_ms = round(1000 * settings.stall_s)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stall_ms)
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def log_who_may_connect(settings: Settings) -> None:
    """Log who can use a server without API keys. Raises SettingsError for a bad keys file."""
    if keys_of(settings):
        return
    if is_loopback(settings.host):
        log.info("no_api_keys", host=settings.host, open_to="this machine")
    else:
        log.warning("no_api_keys", host=settings.host, open_to="everyone who can connect")


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to `host`."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Server(uvicorn.Server):
    """uvicorn without its signal handlers, which would end the process with a bad status."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: `serve` handles the signals."""
        yield


def uvicorn_server(service: Service) -> uvicorn.Server:
    """The web server of `service`, with its settings."""
    config = uvicorn.Config(
        create_app(service),
        http=limited_protocol(service.settings),
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here uses the client's address or scheme
        backlog=BACKLOG,
        ssl_certfile=service.settings.ssl_certfile,
        ssl_keyfile=service.settings.ssl_keyfile,
        timeout_graceful_shutdown=round(service.settings.shutdown_s) + CLEANUP_S,
    )
    return Server(config)


async def serve(service: Service, listener: socket.socket, notify: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. `notify` gets a line for the operator when something changes.

    After the first signal no connection is accepted, and running requests have `shutdown_s` to
    finish. Then, or at a second signal, the others are aborted with an error. A third signal kills
    the process. Raises the error of a model that failed to start.
    """
    server = uvicorn_server(service)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            _announce_ready, service, server, url_of(listener, service.settings), notify
        )
        tasks.start_soon(_handle_signals, service, server, notify)
        await server.serve([listener])
        tasks.cancel_scope.cancel()
    if service.failure is not None:
        raise service.failure


async def _announce_ready(
    service: Service, server: uvicorn.Server, url: str, notify: Callable[[str], None]
) -> None:
    await service.settled.wait()
    if service.failure is not None:
        server.should_exit = True
    else:
        gc.collect()
        gc.freeze()  # loaded objects stay: the garbage collector need not scan them
        notify(f"nano-omni is ready on {url}/v1")


async def _handle_signals(
    service: Service, server: uvicorn.Server, notify: Callable[[str], None]
) -> None:
    with (
        ExitStack() as after_receiver,
        anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
    ):
        await anext(signals)
        # After the receiver closes, Python would raise KeyboardInterrupt at any point.
        after_receiver.callback(signal.signal, signal.SIGINT, signal.SIG_DFL)
        server.should_exit = True
        if running := service.admission.stats().num_running:
            limit_s = service.settings.shutdown_s
            notify(f"stopping: {running} running may take up to {limit_s:g} s; again to stop now")
        with anyio.move_on_after(service.settings.shutdown_s):
            await anext(signals)
    await service.abort_requests()


def url_of(listener: socket.socket, settings: Settings) -> str:
    """The URL of the server."""
    host, port = listener.getsockname()[:2]
    scheme = "http" if settings.ssl_certfile is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
