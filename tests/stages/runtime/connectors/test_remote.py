"""The connector over ZeroMQ passes the conformance suite, over rings too; it tells of lost ends."""

import os
import time
from dataclasses import replace

import numpy as np
import pytest

from stages.contract.messages import AudioChunk, TextChunk
from stages.runtime.connectors.contract import LaneSignal
from stages.runtime.connectors.remote import Address, NetworkWakeup, RemoteEdge
from tests.stages.runtime.connectors.conformance import *  # noqa: F403
from tests.stages.runtime.connectors.relay import Relay

pytestmark = pytest.mark.ray

SETTLE_MS = 100  # what takes microseconds here has arrived by then, or never will


class Settled:
    """An end whose reads wait until what was sent has arrived: between threads it takes a while."""

    def __init__(self, end, site, name, rung):
        self._end, self._site, self._name, self._rung = end, site, name, rung

    def __getattr__(self, name):
        return getattr(self._end, name)

    def settle(self):
        settle(self._site)

    def receive(self):
        self.settle()
        return self._end.receive()

    def changed(self):
        self.settle()
        return self._end.changed()

    def flush(self):
        streams = self._end._data
        fresh = bool(streams._records or getattr(self._end, "_consumed", None))
        fresh = fresh or (streams.rings is not None and streams.rings.out._unflushed)
        self._end.flush()
        if fresh:
            self._rung.append(self._name)


def settle(site):
    """Wait a while for something that rings."""
    site.rung = {bell for bell, _ in site._poller.poll(SETTLE_MS)}


def site_of(links):
    return NetworkWakeup("127.0.0.1", lambda _, is_up: links.append(is_up))


class Both:
    """The two ends, each with a site of its own, as in two processes."""

    def __init__(self, relay=None, door=True):
        edge = RemoteEdge("a>b", 4)
        self.rung, self.links = [], []
        self.sites = [site_of([]), site_of(self.links)]
        sender, receiver = edge.open_sender(self.sites[0]), edge.open_receiver(self.sites[1])
        self.address = receiver.address
        self.sender = Settled(sender, self.sites[0], "receiver", self.rung)
        self.receiver = Settled(receiver, self.sites[1], "sender", self.rung)
        self.relay = relay and relay(self.address.endpoint)
        if relay:
            self.address = replace(self.address, endpoint=self.relay.endpoint)
        if not door:
            self.address = replace(self.address, door="")
        sender.call(self.address)
        self.until(lambda: self.links == [True])
        self.is_closed = False

    def until(self, condition, seconds=10):
        """Turn both ends until it is so; what they deliver meanwhile."""
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
            self.sender.shut()
            self.receiver.shut()

    def free(self):
        self.close()
        if self.relay:
            self.relay.close()
        for site in self.sites:
            site.close()


@pytest.fixture(params=[False, True], ids=["sockets", "rings"])
def edge(request):
    both = Both(door=request.param)
    assert (both.sender._call.rings is not None) == request.param
    both.receiver.receive()
    yield both
    both.free()


@pytest.fixture(params=[False, True], ids=["sockets", "rings"])
def relayed(request):
    both = Both(Relay, door=request.param)
    both.receiver.receive()
    yield both
    both.free()


def test_a_turn_is_one_message_and_arrays_come_through(edge):
    edge.sender.open("a")
    samples = np.arange(20_000, dtype=np.int16)
    edge.sender.send("a", AudioChunk(samples, 24_000))
    edge.sender.send("a", TextChunk("x"))
    edge.sender.end("a")
    edge.sender.flush()
    edge.receiver.settle()
    first, second, end = edge.receiver._end.receive()
    assert np.array_equal(first.item.samples, samples)
    assert (second.item, end.item) == (TextChunk("x"), LaneSignal.END)


def test_a_lane_that_is_opened_before_the_receiver_was_met_is_lost():
    site = site_of([])
    sender = RemoteEdge("a>b", 4).open_sender(site)
    sender.open("a")
    assert sender.lost("a")
    assert sender.drained("a")
    site.close()


def test_a_silent_partition_loses_the_lanes_and_a_mended_one_begins_anew(relayed):
    relayed.sender.open("a")
    relayed.sender.send("a", TextChunk("x"))
    relayed.sender.flush()
    relayed.until(lambda: True)
    relayed.relay.cut()
    began = time.monotonic()
    _, changed = relayed.until(lambda: relayed.sender.lost("a") and not relayed.links[-1])
    assert time.monotonic() - began < 5
    assert changed == ["a"]
    relayed.sender.open("b")
    assert relayed.sender.lost("b")
    relayed.relay.mend()
    delivered, _ = relayed.until(lambda: relayed.links[-1] and relayed.sender._call.is_up)
    relayed.sender.open("c")
    relayed.sender.send("c", TextChunk("y"))
    relayed.sender.flush()
    delivered += relayed.receiver.receive()
    while len(delivered) < 2 or delivered[-1].request_id != "c":
        delivered += relayed.receiver.receive()
    assert LaneSignal.RESET in [delivery.item for delivery in delivered]
    assert not relayed.sender.lost("c")


def test_who_does_not_know_the_secret_is_not_heard(edge):
    site = site_of([])
    stranger = RemoteEdge("a>b", 4).open_sender(site)
    stranger.call(Address(edge.address.endpoint, "guess"))
    for _ in range(5):
        settle(site)
        stranger.changed()
        assert edge.receiver.receive() == []
    stranger.open("a")
    assert stranger.lost("a")
    stranger.shut()
    site.close()


def test_the_last_sender_that_said_hello_is_the_one(edge):
    edge.sender.open("a")
    site = site_of([])
    other = RemoteEdge("a>b", 4).open_sender(site)
    other.call(edge.address)
    while not other._call.is_up:
        settle(site)
        other.changed()
    came = []
    end = time.monotonic() + 10
    while not came and time.monotonic() < end:  # its hello may still be under way
        came += edge.receiver.receive()
    assert [d.item for d in came] == [LaneSignal.RESET]
    edge.sender.send("a", TextChunk("of the old one"))
    edge.sender.flush()
    assert edge.receiver.receive() == []
    other.shut()
    site.close()


def test_rings_leave_no_descriptor_behind():
    Both().free()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        Both().free()
    assert len(os.listdir("/proc/self/fd")) <= before
