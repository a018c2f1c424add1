"""What wakes a worker: rung before it waits, or while it does; never after it is closed."""

import os
import select
import threading

import pytest

from stages.runtime.connectors.wakeup import PollWakeup, ThreadWakeup


@pytest.fixture(params=[ThreadWakeup, lambda: PollWakeup(select.poll())], ids=["flag", "bells"])
def site(request):
    return request.param()


def test_a_ring_is_kept_until_the_worker_waits_and_counts_once(site):
    site.ring()
    site.ring()
    site.wait(block=True)
    waiting = threading.Thread(target=site.wait, kwargs={"block": True})
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    site.ring()
    waiting.join(10)
    assert not waiting.is_alive()
    site.close()


def test_without_blocking_nothing_is_waited_for(site):
    site.wait(block=False)
    site.close()


def test_after_the_end_a_neighbour_may_still_ring(site):
    """It may hold the ring of a worker that is gone, whose descriptor is somebody else's now."""
    site.close()
    other = os.eventfd(0, os.EFD_NONBLOCK)
    site.ring()
    with pytest.raises(BlockingIOError):
        os.eventfd_read(other)
    os.close(other)


def test_bells_tell_what_rang():
    bells, bell = PollWakeup(select.poll()), os.eventfd(0)
    bells.add(bell)
    bells.wait(block=False)
    assert bells.rung == set()
    os.eventfd_write(bell, 1)
    bells.wait(block=True)
    assert bells.rung == {bell}
    bells.remove(bell)
    bells.wait(block=False)
    assert bells.rung == set()
    bells.close()
    os.close(bell)
