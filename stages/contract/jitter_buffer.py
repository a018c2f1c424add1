"""The one model of how a listener plays a stream while it arrives. Pure arithmetic on times.

The server's metrics, the benchmark, the capacity simulation and the order of work inside a stage
all use it, so that they agree on when a listener's buffer runs dry, how long the silence lasts and
when playback resumes. Times are in seconds, of any clock that does not go back.
"""

from __future__ import annotations

from dataclasses import dataclass

TOLERANCE_S = 1e-9  # for the rounding errors of summed floats; nobody can hear this


@dataclass(slots=True)
class JitterBuffer:
    """The jitter buffer of one listener of one stream.

    Playback starts `delay_s` after the first audio arrives. The buffer runs dry if audio arrives
    later than the end of all audio before it. The listener hears silence until that moment, and
    playback resumes at once, without a new delay.
    """

    delay_s: float = 0.0
    num_underruns: int = 0
    silent_s: float = 0.0
    empty_at_s: float | None = None
    """When everything received so far has been played; None before the first audio."""

    def push(self, audio_s: float, at_s: float) -> None:
        """Add `audio_s` seconds of audio that arrive at the time `at_s`."""
        if self.empty_at_s is None:
            self.empty_at_s = at_s + self.delay_s
        elif (late_s := at_s - self.empty_at_s) > TOLERANCE_S:
            self.num_underruns += 1
            self.silent_s += late_s
            self.empty_at_s = at_s
        self.empty_at_s += audio_s
