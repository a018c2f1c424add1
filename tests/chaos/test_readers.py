"""Clients that read slowly, stop reading or disconnect: they harm only their own requests."""

import asyncio
import contextlib
import time

import httpx2
import pytest

from tests.chaos.client import post
from tests.chaos.process import holding, server
from tests.chaos.test_chaos import speech, until

LONG = "wonderful " * 400  # 80 s of tones, 3.8 MB


@pytest.fixture(params=["thread", "process"], scope="module")
def faulty(request):
    with server("tests.chaos.faults", request.param, "1") as found:
        yield found


async def stuck_reader(port, text=LONG, **more):
    """Send a request, and read only the first byte of the response."""
    import json

    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    path, body = speech(text, **more)
    payload = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(payload)}\r\n\r\n"
    writer.write(head.encode() + payload)
    await reader.readexactly(1)
    return reader, writer


async def read_rest(reader):
    """Read everything up to the end of the connection, even if the connection is lost."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(1 << 16):
            received += piece
    return received


async def test_a_client_that_stops_reading_delays_no_other_and_is_disconnected(faulty):
    process, port = faulty
    before = holding(process.pid)
    reader, writer = await stuck_reader(port)
    async with httpx2.AsyncClient() as client:
        for _ in range(5):
            began = time.monotonic()
            answer = await client.get(f"http://127.0.0.1:{port}/health/ready")
            assert answer.status_code == 200
            assert time.monotonic() - began < 1
    assert {(await post(port, *speech("one two three"))).ending for _ in range(5)} == {"done"}
    assert holding(process.pid).memory_mb < before.memory_mb + 20
    assert until(lambda: holding(process.pid).descriptors <= before.descriptors)
    assert b"[DONE]" not in await read_rest(reader)
    writer.transport.abort()


async def test_a_client_that_reads_slowly_gets_everything(faulty):
    _, port = faulty
    reader, writer = await stuck_reader(port, "word " * 100)
    received = 1
    while chunk := await reader.read(1 << 15):
        received += len(chunk)
        await asyncio.sleep(0.002)
        if b"data: [DONE]" in chunk:
            break
    writer.transport.abort()
    whole = await post(port, *speech("word " * 100))
    assert received >= len(whole.body)


async def test_a_hundred_clients_that_disconnect_leak_nothing(faulty):
    process, port = faulty
    await post(port, *speech(LONG), leave_after=2)
    before = holding(process.pid)
    for leave_after in (0, 1, 2, 5) * 25:
        answer = await post(port, *speech(LONG), leave_after=leave_after)
        assert answer.left
    assert until(lambda: holding(process.pid).descriptors <= before.descriptors)
    after = holding(process.pid)
    assert after.threads <= before.threads
    assert after.memory_mb < before.memory_mb + 10
    began = time.monotonic()
    assert (await post(port, *speech("one two"))).ending == "done"
    assert time.monotonic() - began < 2
