"""An event loop whose clock jumps: when nothing is ready, time moves to the next timer.

Two hundred milliseconds of waiting take none, and two timers never race.
"""

import asyncio
import selectors


class _JumpingSelector:
    """Polls the real selector; a wait becomes a jump of the loop's clock."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = 0.0

    def select(self, timeout=None):
        events = self._real.select(0)
        if not events and timeout is None:
            raise RuntimeError("deadlock: nothing is ready and no timer is set")
        if not events and timeout:
            self.now += timeout
        return events

    def __getattr__(self, name):
        return getattr(self._real, name)


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """`time()` is the selector's own counter, in seconds from 0."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now
