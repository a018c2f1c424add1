"""The speeches that both our talker and the public package make from the small checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

NUM_FRAMES = 60
REFERENCE_TEXT = "In the other house."
TEXTS = (
    "The other thing is the user's assistant,  in 2024!",
    "don't we'll I'M  it's\n\nA new line.\n",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002 1234 caf\u00e9 cafe\u0301",
    "Stra\u00dfe \u00fcber\u2014alles; \U0001f600 ok",
    "   leading and trailing   ",
)


@dataclass(frozen=True)
class Case:
    """One speech. `speaker`, `instructions` and `in_context` are set for kinds that use them."""

    name: str
    kind: str
    text: str
    language: str
    speaker: str = ""
    instructions: str = ""
    in_context: bool = False

    @property
    def language_name(self) -> str:
        """The language as our talker takes it. Empty for "Auto"."""
        return "" if self.language == "Auto" else self.language.lower()


CASES = (
    Case("custom", "custom_voice", "The other thing is in the house.", "English", "ryan"),
    Case("dialect", "custom_voice", "\u4f60\u597d\uff0c the house.", "Auto", "eric"),
    Case("told", "custom_voice", "Nothing there.", "German", "vivian", "Say it in anger."),
    Case("design", "voice_design", "Here is the thing, and more.", "Auto", "", "A low voice."),
    Case("x_vector", "base", "The thing in the other house.", "English"),
    Case("in_context", "base", "The thing in the other house is here.", "English", in_context=True),
    Case("in_context_short", "base", "So.", "Auto", in_context=True),
)


def reference_audio() -> Any:
    """1.3 s of tones and noise at 24 kHz: float32 [31200]."""
    t = np.arange(31200) / 24000
    noise = np.random.Generator(np.random.PCG64(7)).standard_normal(len(t))
    tones = np.sin(2 * np.pi * 220 * t**2) + 0.5 * np.sin(2 * np.pi * 660 * t + 3 * np.sin(7 * t))
    return (0.2 * tones * (1 + np.sin(9 * t)) + 0.1 * noise * np.sin(5 * t)).astype(np.float32)
