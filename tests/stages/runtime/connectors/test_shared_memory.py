"""The shared-memory connector passes the conformance suite, and its ring survives hard use."""

import os
import random
import select
from pathlib import Path

import numpy as np
import pytest
import torch

from stages.contract.messages import AudioChunk, LatentChunk, TextChunk
from stages.runtime.connectors.ring import RingFiles, RingReader, RingWriter
from stages.runtime.connectors.serialization import decode, encode
from stages.runtime.connectors.shared_memory import SharedMemoryEdge
from stages.runtime.connectors.wakeup import PollWakeup
from tests.stages.runtime.connectors.conformance import *  # noqa: F403


class NotedFlush:
    """A sender or receiver that notes how often its flush wakes the other side."""

    def __init__(self, side, wakeup_fd, other_name, woken):
        self._side, self._wakeup_fd = side, wakeup_fd
        self._other_name, self._woken = other_name, woken

    def __getattr__(self, name):
        return getattr(self._side, name)

    def flush(self):
        before = wake_count(self._wakeup_fd)
        self._side.flush()
        self._woken += [self._other_name] * (wake_count(self._wakeup_fd) - before)


def wake_count(fd):
    """How often an eventfd was written since it was read."""
    lines = Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines()
    (count,) = (line.split()[1] for line in lines if line.startswith("eventfd-count:"))
    return int(count, 16)


class BothSides:
    """Sender and receiver, each with a wakeup of its own, as in two processes."""

    def __init__(self):
        self._edge = SharedMemoryEdge.create("test", max_chunks=4)
        self._wakeups = [PollWakeup(select.poll()) for _ in range(2)]
        self.woken = []
        sender = self._edge.open_sender(self._wakeups[0])
        receiver = self._edge.open_receiver(self._wakeups[1])
        data_fd, credit_fd = self._edge.data.wakeup_fd, self._edge.credit.wakeup_fd
        self.sender = NotedFlush(sender, data_fd, "receiver", self.woken)
        self.receiver = NotedFlush(receiver, credit_fd, "sender", self.woken)
        self.is_closed = False

    def stats(self):
        return self.sender.stats()

    def close(self):
        if not self.is_closed:
            self.is_closed = True
            for part in (self.sender, self.receiver, *self._wakeups, self._edge):
                part.close()


@pytest.fixture
def edge():
    edge = BothSides()
    yield edge
    edge.close()


@pytest.fixture
def ring():
    files, other = RingFiles.create("test", 4096), RingFiles.create("other", 64)
    writer, reader = RingWriter(files), RingReader(files, other.wakeup_fd)
    yield writer, reader, other, files
    for part in (writer, reader, files, other):
        part.close()


def test_records_of_any_size_come_out_as_they_went_in_around_the_ring(ring):
    writer, reader, _, _ = ring
    rng = random.Random(7)
    sent, taken = [], []
    for n in range(500):
        record = rng.randbytes(rng.randrange(0, 1500))
        sent.append(record)
        writer.push([record[: n % 7], record[n % 7 :]])
        writer.flush()
        if rng.random() < 0.4:
            taken += reader.take()
            writer.flush()
    while len(taken) < len(sent):
        taken += reader.take()
        writer.flush()
    assert taken == sent


def test_a_reader_that_makes_room_wakes_a_writer_that_waits_for_it(ring):
    writer, reader, other, _ = ring
    for _ in range(5):
        writer.push([bytes(1000)])
    writer.flush()
    assert len(reader.take()) == 4
    assert os.eventfd_read(other.wakeup_fd) == 1
    writer.flush()
    assert len(reader.take()) == 1


class WatchedCapacity(int):
    """A ring's capacity that calls `when_full` once, right after a record did not fit."""

    when_full = None

    def __ge__(self, used):
        fits = int(self) >= used
        if not fits and self.when_full is not None:
            act, self.when_full = self.when_full, None
            act()
        return fits


def test_a_writer_that_finds_no_room_looks_again_after_asking_to_be_woken(monkeypatch):
    """Between the two the reader takes everything, and does not see that it is asked."""
    capacity = WatchedCapacity(4096)
    made, other = RingFiles.create("test", 4096), RingFiles.create("other", 64)
    files = RingFiles(made.memory_fd, made.wakeup_fd, capacity)
    writer, reader = RingWriter(files), RingReader(files, other.wakeup_fd)
    writer.push([b"1" * 1000])
    writer.flush()

    def write_behind_the_reader(fd, value):
        monkeypatch.undo()
        for record in (b"2" * 2000, b"3" * 2500):  # the last one does not fit, and waits
            writer.push([record])
            writer.flush()
        os.eventfd_write(fd, value)

    monkeypatch.setattr(os, "eventfd_write", write_behind_the_reader)
    assert reader.take() == [b"1" * 1000]
    assert os.eventfd_read(other.wakeup_fd) == 1
    taken = []
    capacity.when_full = lambda: taken.extend(reader.take())
    writer.flush()
    assert taken == [b"2" * 2000]
    assert wake_count(other.wakeup_fd) == 0
    assert reader.take() == [b"3" * 2500]
    for part in (writer, reader, made, other):
        part.close()


def test_a_record_of_exactly_the_capacity_is_delivered(ring):
    writer, reader, _, _ = ring
    largest = random.Random(3).randbytes(4092)  # its length takes four bytes
    for record in (largest, b"between", largest, largest):
        writer.push([record])
        writer.flush()
        assert reader.take() == [record]


@pytest.mark.parametrize("size", [4093, 5000])
def test_a_record_that_could_never_fit_is_refused(ring, size):
    writer, reader, _, _ = ring
    with pytest.raises(ValueError, match="larger than the ring"):
        writer.push([bytes(size)])
    writer.push([b"next"])
    writer.flush()
    assert reader.take() == [b"next"]


def test_a_new_writer_goes_on_where_the_old_one_had_published(ring):
    writer, reader, _, files = ring
    writer.push([b"published"])
    writer.flush()
    writer.push([b"lost with its writer"])
    again = RingWriter(files)
    again.push([b"new"])
    again.flush()
    again.close()
    assert reader.take() == [b"published", b"new"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_tensors_travel_without_being_pickled(dtype):
    frames = torch.arange(192 * 100).reshape(100, 192).to(dtype)
    parts = encode(LatentChunk(frames, first=True, last=False, pause_s=0.2))
    assert memoryview(parts[1]).nbytes < 400
    chunk = decode(bytearray(b"".join(bytes(part) for part in parts)))
    assert torch.equal(chunk.frames, frames)
    assert (chunk.first, chunk.last, chunk.pause_s) == (True, False, 0.2)
    chunk.frames.add_(1)


def test_an_empty_tensor_arrives_empty():
    chunk = LatentChunk(torch.empty(0, 192), first=True, last=True)
    parts = encode(chunk)
    assert decode(bytearray(b"".join(bytes(part) for part in parts))).frames.shape == (0, 192)


def test_arrays_and_text_travel_too():
    samples = np.arange(2400, dtype=np.int16)
    for message in (AudioChunk(samples, 24_000), TextChunk("héllo 😀", 3)):
        parts = encode(message)
        again = decode(bytearray(b"".join(bytes(part) for part in parts)))
        assert type(again) is type(message)
    assert np.array_equal(
        decode(bytearray(b"".join(map(bytes, encode(AudioChunk(samples, 24_000)))))).samples,
        samples,
    )
