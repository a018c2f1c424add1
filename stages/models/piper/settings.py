"""What a request may set of a Piper voice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PiperSettings:
    """`speed` divides durations. None is the voice's own scale.

    `sentence_silence` is the pause after each sentence, in seconds; None is the default pause.
    """

    speed: float = 1.0
    noise_scale: float | None = None
    noise_w: float | None = None
    length_scale: float | None = None
    sentence_silence: float | None = None
