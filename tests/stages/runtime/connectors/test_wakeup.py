"""What wakes a worker: before it waits, or while it does; never after it is closed."""

import os
import select
import threading

import pytest

from stages.runtime.connectors.wakeup import PollWakeup, ThreadWakeup


@pytest.fixture(params=[ThreadWakeup, lambda: PollWakeup(select.poll())], ids=["flag", "poll"])
def wakeup(request):
    return request.param()


def test_a_wake_is_kept_until_the_worker_waits_and_counts_once(wakeup):
    wakeup.wake()
    wakeup.wake()
    wakeup.wait(block=True)
    waiting = threading.Thread(target=wakeup.wait, kwargs={"block": True})
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    wakeup.wake()
    waiting.join(10)
    assert not waiting.is_alive()
    wakeup.close()


def test_without_blocking_nothing_is_waited_for(wakeup):
    wakeup.wait(block=False)
    wakeup.close()


def test_after_close_a_neighbour_may_still_call_wake(wakeup):
    """It may wake a worker that is gone, whose descriptor now belongs to somebody else."""
    wakeup.close()
    other = os.eventfd(0, os.EFD_NONBLOCK)
    wakeup.wake()
    with pytest.raises(BlockingIOError):
        os.eventfd_read(other)
    os.close(other)


def test_readable_holds_the_descriptors_that_are_readable():
    wakeup, fd = PollWakeup(select.poll()), os.eventfd(0)
    wakeup.add(fd)
    wakeup.wait(block=False)
    assert wakeup.readable == set()
    os.eventfd_write(fd, 1)
    wakeup.wait(block=True)
    assert wakeup.readable == {fd}
    wakeup.remove(fd)
    wakeup.wait(block=False)
    assert wakeup.readable == set()
    wakeup.close()
    os.close(fd)
