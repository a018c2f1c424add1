"""Leases last while they are renewed. An ended one is reported once. Without any, it is over."""

import threading

import pytest

from stages.runtime.executors.ray_actor import LEASE_S, Leases

pytestmark = pytest.mark.ray


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_lease_that_is_not_renewed_ends_and_the_others_go_on():
    clock = Clock()
    leases = Leases(clock)
    leases.renew("a")
    clock.now = LEASE_S / 2
    leases.renew("b")
    clock.now = LEASE_S
    assert leases.wait()
    assert leases.take_ended() == ["a"]
    assert leases.take_ended() == []


def test_a_lease_that_ended_cannot_be_renewed_only_taken_again():
    clock = Clock()
    leases = Leases(clock)
    leases.renew("a")
    assert leases.renew("a", known=True)
    clock.now = LEASE_S
    assert not leases.renew("a", known=True)
    assert leases.renew("a")
    assert leases.take_ended() == ["a"]


def test_without_any_lease_it_is_over():
    leases = Leases(Clock())
    leases.renew("a")
    waiting = threading.Thread(target=leases.wait)
    waiting.start()
    leases.drop("a")
    waiting.join(10)
    assert not waiting.is_alive()
    assert not leases.wait()
    assert not leases.renew("b")  # a server that came now would lose its worker at once
