"""One HTTP request over a bare socket: the bytes as they came, each with its time.

Nothing is parsed while bytes come, so that the client takes as little of the machine as it can.
The server is asked to close the connection, and its end is the end. Times are the loop's clock.
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
    """`began_s`: the first byte of the body was sent. `refused`: nobody took the connection."""

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
    """Send, and record until the server closes. A connection that is not taken is in the trace."""
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
        pass  # what came is in the trace, and is not complete
    finally:
        transport.abort()
    return trace
