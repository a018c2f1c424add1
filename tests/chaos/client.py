"""Sends one HTTP request over a raw socket, and records the response and how it ended."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

HANG_S = 120  # a request or a wait that takes longer hangs, even on a slow and busy machine


@dataclass
class Answer:
    """A response. `clean`: the body ended as HTTP requires, rather than with a lost connection.

    `left`: the client disconnected on purpose. `ended`: nothing more is read. `chunks`: the sizes
    of the HTTP chunks.
    """

    status: int = 0
    body: bytes = b""
    clean: bool = False
    left: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    chunks: list = field(default_factory=list)

    @property
    def ending(self):
        """How the request ended: "left", a status, "done", "error", or "WRONG" with details."""
        if self.left:
            return "left"
        if self.status != 200:
            return str(self.status)
        events = [event for event in self.body.split(b"\n\n") if event.startswith(b"data: ")]
        last = events[-1] if events else b""
        done = self.body.count(b"data: [DONE]")
        if self.clean and done == 1 and last == b"data: [DONE]":
            return "done"
        if not self.clean and done == 0 and b'"error"' in last:
            return "error"
        return f"WRONG: clean={self.clean} done={done} last={last[:80]!r}"


async def post(port, path, body, leave_after=None, headers="", on_chunk=None, answer=None):
    """Send a request and read the response to its end, into `answer` if that is given.

    With `leave_after` it disconnects after that many chunks. With 0 it does so before the response
    starts, once the server has asked for the body.
    """
    answer = answer or Answer()
    if leave_after == 0:
        headers += "expect: 100-continue\r\n"
    payload = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {len(payload)}\r\n\r\n"
    async with asyncio.timeout(HANG_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode() + payload)
        try:
            await writer.drain()
            await _read(reader, answer, leave_after, on_chunk)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            answer.ended.set()
            await leave(writer)
    return answer


async def leave(writer):
    """Disconnect. When this returns, the connection is closed."""
    writer.transport.abort()
    with suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def under_way(port, path, body):
    """Send a request, and yield its answer once the first chunk has arrived.

    On exit the client disconnects if the response has not ended.
    """
    began, answer = asyncio.Event(), Answer()
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(post(port, path, body, on_chunk=began.set, answer=answer))
        asking.add_done_callback(lambda _: began.set())
        await began.wait()
        yield answer
        asking.cancel()


async def _read(reader, answer, leave_after, on_chunk):
    if leave_after == 0:
        await reader.readuntil(b"\r\n\r\n")
        answer.left = True
        return
    head = await reader.readuntil(b"\r\n\r\n")
    answer.status = int(head.split()[1])
    if b"chunked" not in head.lower():
        length = int(head.lower().split(b"content-length:")[1].split()[0])
        answer.body = await reader.readexactly(length)
        answer.clean = True
        return
    while True:
        size = int(await reader.readuntil(b"\r\n"), 16)
        piece = await reader.readexactly(size + 2)
        if size == 0:
            answer.clean = True
            return
        answer.body += piece[:-2]
        answer.chunks.append(size)
        if on_chunk is not None:
            on_chunk()
        if leave_after is not None and len(answer.chunks) >= leave_after:
            answer.left = True
            return
