"""What is written in one turn of the loop leaves in one piece, in order, and nothing is lost."""

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


async def test_the_writes_of_a_turn_are_one_and_those_of_the_next_another():
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


async def test_what_is_written_to_a_connection_that_was_lost_goes_nowhere():
    inner = Recorder()
    transport = BatchingTransport(inner, WriteBatch())
    transport.write(b"a")
    inner.closed = True
    await anyio.lowlevel.checkpoint()
    assert inner.written == []
