"""How much to measure: the full benchmark, and the quick one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# A good stream is complete, starts within this time, and never runs dry with 100 ms of buffer.
FIRST_AUDIO_LIMIT_S = 1.0
GOOD_SHARE = 0.99
WARM_UPS = 3


@dataclass(frozen=True, slots=True)
class Effort:
    """The size of each measurement. The servers take turns, `rounds` times.

    `bursts`: number of concurrent requests, and how many bursts of them. `closed`: number of
    clients, and requests of each. `open_shares`: Poisson rates as shares of the throughput of
    piper's server, for `open_s` seconds each. `probes`: steps of the search for listeners.
    """

    rounds: int
    bursts: Mapping[int, int]
    closed: Mapping[int, int] = field(default_factory=dict)
    open_shares: tuple[float, ...] = ()
    open_s: float = 0.0
    probes: int = 0
    texts_per_listener: int = 3
    beyond_s: float = 0.0
    chats: int = 5
    chat_tokens: int = 100
    control_rounds: int = 3
    control_streams: int = 16

    @property
    def max_running(self) -> int:
        """The highest number of concurrent requests."""
        return max(self.bursts)


FULL = Effort(
    rounds=2,
    bursts={1: 10, 2: 3, 4: 2, 8: 2, 16: 1, 32: 1, 64: 1},
    closed={8: 3},
    open_shares=(0.3, 0.6, 0.9),
    open_s=20.0,
    probes=3,
    beyond_s=25.0,
)
QUICK = Effort(rounds=1, bursts={1: 5, 8: 2}, chats=3, control_rounds=1)
