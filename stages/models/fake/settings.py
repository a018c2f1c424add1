"""What a request may set of the fake voices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FakeSettings:
    """`speed` divides durations. The scales of other voices are accepted, and change nothing."""

    speed: float = 1.0
    noise_scale: float | None = None
    noise_w: float | None = None
    length_scale: float | None = None
    sentence_silence: float | None = None
