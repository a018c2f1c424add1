"""How long a response waits for a reader that takes nothing: one limit, one timer."""

import anyio
import pytest

from server.http.live_response import ClientSend
from tests.virtual_clock import VirtualClockLoop

START = {"type": "http.response.start", "status": 200, "headers": []}
BODY = {"type": "http.response.body", "body": b"x", "more_body": True}


@pytest.fixture
def anyio_backend():
    return "asyncio", {"loop_factory": VirtualClockLoop}


class Reader:
    """Takes each message after `after_s`."""

    def __init__(self, after_s):
        self.after_s = after_s
        self.taken = []

    async def __call__(self, message):
        await anyio.sleep(self.after_s)
        self.taken.append(message["type"])


async def send(reader, num_messages, num_senders=1, pause_s=0.0):
    """Whether the reader was dropped, and when the sending ended."""
    with anyio.CancelScope() as reading:
        client_send = ClientSend(reader, 10.0, reading.cancel)
        await client_send(START)

        async def send_some():
            for _ in range(num_messages):
                await client_send(BODY)
                await anyio.sleep(pause_s)

        async with anyio.create_task_group() as tasks:
            for _ in range(num_senders):
                tasks.start_soon(send_some)
    client_send.close()
    return reading.cancelled_caught, anyio.current_time()


async def test_a_reader_that_takes_nothing_is_dropped_after_the_limit():
    assert await send(Reader(100), 1) == (True, 10)


async def test_a_reader_that_stops_later_has_the_whole_limit():
    reader = Reader(0)
    reader_stops = 7

    async def take(message):
        if len(reader.taken) > reader_stops:
            await anyio.sleep_forever()
        await reader(message)

    assert await send(take, 20, pause_s=1) == (True, reader_stops + 10)


async def test_a_slow_reader_is_not_dropped():
    reader = Reader(9)
    assert await send(reader, 5) == (False, 6 * 9)
    assert reader.taken == ["http.response.start"] + ["http.response.body"] * 5


async def test_time_between_messages_does_not_count():
    assert await send(Reader(0), 3, pause_s=40) == (False, 120)


async def test_two_senders_share_the_limit():
    given_up, ended_at = await send(Reader(9), 3, num_senders=2)
    assert (given_up, ended_at) == (False, 4 * 9)
