"""Sends one HTTP request over a raw socket, and records the received bytes with their times.

Nothing is parsed while bytes arrive, so that the client uses as little CPU as possible. The server
is asked to close the connection at the end of the response. Times are those of the loop's clock.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class Trace:
    """A recorded request. `began_s`: when it was sent. `refused`: the connection was refused."""

    began_s: float
    received: list[tuple[float, bytes]] = field(default_factory=list)
    refused: bool = False


class _Recorder(asyncio.Protocol):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.received: list[tuple[float, bytes]] = []
        self.closed: asyncio.Future[None] = loop.create_future()

    def data_received(self, data: bytes) -> None:
        self.received.append((self._loop.time(), data))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


async def post(port: int, path: str, body: Mapping[str, Any], timeout_s: float = 600.0) -> Trace:
    """Send a request, and record until the server closes. A refused connection does not raise."""
    loop = asyncio.get_running_loop()
    payload = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(payload)}\r\nConnection: close\r\n\r\n"
    )
    try:
        transport, recorder = await loop.create_connection(
            lambda: _Recorder(loop), "127.0.0.1", port
        )
    except OSError:
        return Trace(loop.time(), refused=True)
    trace = Trace(loop.time(), recorder.received)
    try:
        transport.write(head.encode() + payload)
        async with asyncio.timeout(timeout_s):
            await recorder.closed
    except TimeoutError:
        pass  # the trace contains the incomplete response
    finally:
        transport.abort()
    return trace
