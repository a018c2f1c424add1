"""The connector over ZeroMQ, with and without rings: conformance, and connections that are lost."""

import os
import threading
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from stages.contract.messages import AudioChunk, TextChunk
from stages.runtime.connectors.contract import Address, LaneSignal
from stages.runtime.connectors.remote.edge import RemoteEdge
from stages.runtime.connectors.remote.sockets import NetworkWakeup
from tests.stages.runtime.connectors.conformance import *  # noqa: F403
from tests.stages.runtime.connectors.relay import Relay

pytestmark = pytest.mark.ray

SETTLE_S = 0.1  # what takes microseconds here has arrived by then, or never will


class SettledSide:
    """A sender or receiver whose reads wait until what was sent has arrived.

    Between threads that takes a while. `flush` notes whether it woke the other side.
    """

    def __init__(self, side, wakeup, other_wakeup, other_name, woken):
        self._side, self._wakeup, self._other_wakeup = side, wakeup, other_wakeup
        self._other_name, self._woken = other_name, woken

    def __getattr__(self, name):
        return getattr(self._side, name)

    def receive(self):
        settle(self._wakeup)
        return self._side.receive()

    def changed(self):
        settle(self._wakeup)
        return self._side.changed()

    def flush(self):
        was_woken = settle(self._other_wakeup)
        self._side.flush()
        if settle(self._other_wakeup) and not was_woken:
            self._woken.append(self._other_name)


def settle(wakeup):
    """Wait a while for something to read; whether there is."""
    timer = threading.Timer(SETTLE_S, wakeup.wake)
    timer.start()
    wakeup.wait(block=True)
    timer.cancel()
    timer.join()
    readable = wakeup.readable
    wakeup.wait(block=False)
    return bool(readable & wakeup.readable)


def make_wakeup(changes=None):
    """A wakeup that appends to `changes` when a connection comes up or is lost."""
    changes = [] if changes is None else changes
    return NetworkWakeup("127.0.0.1", lambda _, is_up: changes.append(is_up))


def num_rings():
    """How many rings were handed over and are still open."""
    names = []
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/self/fd/{fd}"))
    return sum("memfd:nano-omni:handed over" in name for name in names)


class BothSides:
    """Sender and receiver, each with a wakeup of its own, as in two processes."""

    def __init__(self, relay=None, edge_inbox=True):
        edge = RemoteEdge("a>b", 4)
        self.woken, self.connections = [], []
        self.wakeups = [make_wakeup(), make_wakeup(self.connections)]
        sender, receiver = edge.open_sender(self.wakeups[0]), edge.open_receiver(self.wakeups[1])
        self.address = receiver.address
        self.sender = SettledSide(sender, *self.wakeups, "receiver", self.woken)
        self.receiver = SettledSide(receiver, *reversed(self.wakeups), "sender", self.woken)
        self.relay = relay and relay(self.address.endpoint)
        if relay:
            self.address = replace(self.address, endpoint=self.relay.endpoint)
        if not edge_inbox:
            self.address = replace(self.address, edge_inbox="")
        sender.connect(self.address)
        self.until(lambda: self.connections == [True])
        self.is_closed = False

    def until(self, condition, seconds=10):
        """Turn both sides until it is so; what they deliver meanwhile."""
        delivered, changed = [], []
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end
            changed += self.sender.changed()
            delivered += self.receiver.receive()
        return delivered, changed

    def stats(self):
        return self.sender.stats()

    def close(self):
        if not self.is_closed:
            self.is_closed = True
            self.sender.close()
            self.receiver.close()

    def free(self):
        self.close()
        if self.relay:
            self.relay.close()
        for wakeup in self.wakeups:
            wakeup.close()


@pytest.fixture(params=[False, True], ids=["sockets", "rings"])
def edge(request):
    both = BothSides(edge_inbox=request.param)
    assert (num_rings() > 0) == request.param
    both.receiver.receive()
    yield both
    both.free()


@pytest.fixture(params=[False, True], ids=["sockets", "rings"])
def relayed(request):
    both = BothSides(Relay, edge_inbox=request.param)
    both.receiver.receive()
    yield both
    both.free()


def test_a_turn_is_one_message_and_arrays_come_through(edge):
    edge.sender.open_lane("a")
    samples = np.arange(20_000, dtype=np.int16)
    edge.sender.send("a", AudioChunk(samples, 24_000))
    edge.sender.send("a", TextChunk("x"))
    edge.sender.finish("a")
    edge.sender.flush()
    first, second, end = edge.receiver.receive()
    assert np.array_equal(first.item.samples, samples)
    assert (second.item, end.item) == (TextChunk("x"), LaneSignal.END)


def test_a_lane_that_is_opened_before_the_receiver_is_connected_is_lost():
    wakeup = make_wakeup()
    sender = RemoteEdge("a>b", 4).open_sender(wakeup)
    sender.open_lane("a")
    assert sender.is_lost("a")
    assert sender.is_drained("a")
    wakeup.close()


def test_a_silent_partition_loses_the_lanes_and_a_mended_one_begins_anew(relayed):
    relayed.sender.open_lane("a")
    relayed.sender.send("a", TextChunk("x"))
    relayed.sender.flush()
    relayed.until(lambda: True)
    relayed.relay.cut()
    began = time.monotonic()
    _, changed = relayed.until(lambda: relayed.sender.is_lost("a") and not relayed.connections[-1])
    assert time.monotonic() - began < 5
    assert changed == ["a"]
    relayed.sender.open_lane("b")
    assert relayed.sender.is_lost("b")
    relayed.relay.mend()
    delivered, _ = relayed.until(lambda: relayed.connections[-1] and relayed.sender.is_connected)
    relayed.sender.open_lane("c")
    relayed.sender.send("c", TextChunk("y"))
    relayed.sender.flush()
    delivered += relayed.receiver.receive()
    while len(delivered) < 2 or delivered[-1].request_id != "c":
        delivered += relayed.receiver.receive()
    assert LaneSignal.RESET in [delivery.item for delivery in delivered]
    assert not relayed.sender.is_lost("c")


def test_who_does_not_know_the_secret_is_not_heard(edge):
    wakeup = make_wakeup()
    stranger = RemoteEdge("a>b", 4).open_sender(wakeup)
    stranger.connect(Address(edge.address.endpoint, "guess"))
    for _ in range(5):
        settle(wakeup)
        stranger.changed()
        assert edge.receiver.receive() == []
    stranger.open_lane("a")
    assert stranger.is_lost("a")
    stranger.close()
    wakeup.close()


def test_the_last_sender_that_said_hello_is_the_one(edge):
    edge.sender.open_lane("a")
    wakeup = make_wakeup()
    other = RemoteEdge("a>b", 4).open_sender(wakeup)
    other.connect(edge.address)
    while not other.is_connected:
        settle(wakeup)
        other.changed()
    came = []
    end = time.monotonic() + 10
    while not came and time.monotonic() < end:  # its hello may still be under way
        came += edge.receiver.receive()
    assert [d.item for d in came] == [LaneSignal.RESET]
    edge.sender.send("a", TextChunk("of the old one"))
    edge.sender.flush()
    assert edge.receiver.receive() == []
    other.close()
    wakeup.close()


def test_rings_leave_no_descriptor_behind():
    BothSides().free()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        BothSides().free()
    assert len(os.listdir("/proc/self/fd")) <= before
