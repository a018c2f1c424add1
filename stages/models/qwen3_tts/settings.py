"""What a request may set of a voice of Qwen3-TTS."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QwenSettings:
    """`language` is a name that the model knows; empty: it guesses from the text.

    `instructions` describe the delivery, or the voice itself; models that follow none drop them.
    """

    language: str = ""
    instructions: str = ""
