"""Clients that read slowly, stop reading or disconnect: they harm only their own requests."""

import asyncio
import contextlib
import json

import httpx2
import pytest

from tests.chaos.client import HANG_S, leave, post
from tests.chaos.process import holding, server
from tests.chaos.test_chaos import check_nothing_leaks, is_idle, speech, until

LONG = "wonderful " * 400  # 80 s of tones, 3.8 MB


@pytest.fixture(params=["thread", "process"], scope="module")
def executor(request):
    return request.param


@pytest.fixture(scope="module")
def patient(executor):
    with server("tests.chaos.faults", executor, "1") as found:
        yield found


@pytest.fixture(scope="module")
def strict(executor):
    """A server that disconnects a client that reads nothing for a second."""
    with server("tests.chaos.faults", executor, "1", "stall_s=1") as found:
        yield found


async def stuck_reader(port, text=LONG, **more):
    """Send a request, and read only the first byte of the response."""
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
    async with asyncio.timeout(HANG_S):
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(1 << 16):
                received += piece
    return received


async def test_a_client_that_stops_reading_delays_no_other(patient):
    """The others finish while it is stuck."""
    process, port = patient
    before = holding(process.pid)
    reader, writer = await stuck_reader(port)
    async with httpx2.AsyncClient() as client:
        for _ in range(5):
            answer = await client.get(f"http://127.0.0.1:{port}/health/ready", timeout=HANG_S)
            assert answer.status_code == 200
    assert {(await post(port, *speech("one two three"))).ending for _ in range(5)} == {"done"}
    assert holding(process.pid).memory_mb < before.memory_mb + 20
    assert not is_idle(port)
    await leave(writer)
    assert until(lambda: is_idle(port))
    assert b"[DONE]" not in await read_rest(reader)


async def test_a_client_that_stops_reading_is_disconnected(strict):
    process, port = strict
    await post(port, *speech("one two three"))
    assert until(lambda: is_idle(port))
    before = holding(process.pid)
    reader, writer = await stuck_reader(port)
    assert until(lambda: is_idle(port))
    assert until(lambda: holding(process.pid).descriptors <= before.descriptors)
    assert b"[DONE]" not in await read_rest(reader)
    await leave(writer)


async def test_a_client_that_reads_slowly_gets_everything(patient):
    """Before each read the server answers another request."""
    _, port = patient
    reader, writer = await stuck_reader(port, "word " * 100)
    received, num_waits = 1, 0
    async with asyncio.timeout(HANG_S), httpx2.AsyncClient() as client:
        while chunk := await reader.read(1 << 15):
            received += len(chunk)
            if b"data: [DONE]" in chunk:
                break
            await client.get(f"http://127.0.0.1:{port}/health/live", timeout=HANG_S)
            num_waits += 1
    await leave(writer)
    whole = await post(port, *speech("word " * 100))
    assert received >= len(whole.body)
    assert num_waits > 10


async def test_a_hundred_clients_that_disconnect_leak_nothing(patient):
    process, port = patient
    await post(port, *speech(LONG), leave_after=2)
    assert until(lambda: is_idle(port))
    before = holding(process.pid)
    for leave_after in (0, 1, 2, 5) * 25:
        answer = await post(port, *speech(LONG), leave_after=leave_after)
        assert answer.left
    assert until(lambda: is_idle(port))
    check_nothing_leaks(process, before, memory_mb=10)
    assert (await post(port, *speech("one two"))).ending == "done"
