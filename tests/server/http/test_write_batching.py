"""The writes of one turn of the event loop are sent as one, in order, and nothing is lost."""

import asyncio

import anyio.lowlevel

from server.http.write_batching import BatchingTransport, WriteBatch


class Recorder(asyncio.Transport):
    def __init__(self):
        super().__init__()
        self.written = []
        self.closed = False

    def write(self, data):
        assert not self.closed
        self.written.append(data)

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed


async def test_the_writes_of_each_turn_are_sent_as_one():
    turn = WriteBatch()
    inner = [Recorder(), Recorder()]
    first, second = (BatchingTransport(each, turn) for each in inner)
    first.write(b"head ")
    second.write(b"other")
    first.write(b"body")
    assert inner[0].written == []
    await anyio.lowlevel.checkpoint()
    first.write(b"end")
    await anyio.lowlevel.checkpoint()
    assert inner[0].written == [b"head body", b"end"]
    assert inner[1].written == [b"other"]


async def test_closing_sends_what_was_written_before():
    inner = Recorder()
    transport = BatchingTransport(inner, WriteBatch())
    transport.write(b"a")
    transport.write(b"b")
    transport.close()
    assert inner.written == [b"ab"]
    assert transport.is_closing()


async def test_writes_to_a_lost_connection_are_discarded():
    inner = Recorder()
    transport = BatchingTransport(inner, WriteBatch())
    transport.write(b"a")
    inner.closed = True
    await anyio.lowlevel.checkpoint()
    assert inner.written == []
