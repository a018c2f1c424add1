"""Sends one HTTP request over a raw socket, and records the response and how it ended."""

import asyncio
import json
from dataclasses import dataclass, field


@dataclass
class Answer:
    """A response. `clean`: the body ended as HTTP requires, rather than with a lost connection.

    `left`: the client disconnected on purpose. `chunks`: the sizes of the HTTP chunks.
    """

    status: int = 0
    body: bytes = b""
    clean: bool = False
    left: bool = False
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


async def post(port, path, body, leave_after=None, headers="", on_chunk=None):
    """Send a request and read the response to its end.

    With `leave_after` it disconnects after that many chunks (0: before the response starts).
    """
    answer = Answer()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    payload = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {len(payload)}\r\n\r\n"
    writer.write(head.encode() + payload)
    try:
        await writer.drain()
        await _read(reader, answer, leave_after, on_chunk)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.transport.abort()
    return answer


async def _read(reader, answer, leave_after, on_chunk):
    if leave_after == 0:
        await asyncio.sleep(0.01)
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
