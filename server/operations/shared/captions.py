"""Captions: which part of the text is spoken when, as JSON and as a WebVTT file.

Stages give times in samples of the output. Clients get seconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from openapi.speaking_style import SpokenPiece, SpokenWord
from stages.contract.messages import OUTPUT_RATE_HZ, Caption

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stages.contract.messages import TextSpan
    from stages.text.traced import Traced

_PIECES = TypeAdapter(list[SpokenPiece])
# An empty line ends a cue, so line breaks become spaces.
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": " ", "\r": " "}


def spoken_pieces(captions: Iterable[Caption]) -> list[SpokenPiece]:
    """Captions as clients get them, with times in seconds."""
    return [
        SpokenPiece(
            start=caption.piece.start,
            end=caption.piece.end,
            start_s=_seconds(caption.piece.heard_from),
            end_s=_seconds(caption.piece.heard_to),
            words=[_spoken_word(word) for word in caption.words],
        )
        for caption in captions
    ]


def captions_json(captions: Iterable[Caption]) -> bytes:
    """`spoken_pieces` as JSON."""
    return _PIECES.dump_json(spoken_pieces(captions))


def merged_pieces(captions: Iterable[Caption]) -> list[SpokenPiece]:
    """`spoken_pieces` with each piece once, with all its words."""
    return spoken_pieces(_merged(captions))


def webvtt(text: Traced, captions: Iterable[Caption]) -> str:
    """A WebVTT file (W3C, https://www.w3.org/TR/webvtt1/).

    Each piece is a cue, and each word in it has a time. `text` is the text after cleaning.
    """
    cues = [_cue(text, caption.piece, caption.words) for caption in _merged(captions)]
    return "\n\n".join(["WEBVTT", *cues]) + "\n"


def _spoken_word(word: TextSpan) -> SpokenWord:
    return SpokenWord(
        start=word.start,
        end=word.end,
        start_s=_seconds(word.heard_from),
        end_s=_seconds(word.heard_to),
    )


def _seconds(num_samples: int) -> float:
    return round(num_samples / OUTPUT_RATE_HZ, 4)


def _merged(captions: Iterable[Caption]) -> list[Caption]:
    """The captions with those of the same piece merged into one."""
    words: dict[TextSpan, list[TextSpan]] = {}
    for caption in captions:
        words.setdefault(caption.piece, []).extend(caption.words)
    return [Caption(piece, tuple(of_piece)) for piece, of_piece in words.items()]


def _cue(source: Traced, piece: TextSpan, words: Sequence[TextSpan]) -> str:
    text, remaining = "", deque(words)
    first, last = (bisect_left(source.starts, at) for at in (piece.start, piece.end))
    for character, start in zip(source.text[first:last], source.starts[first:last], strict=True):
        if remaining and start >= remaining[0].start:
            word = remaining.popleft()
            text += f"<{_timestamp(word.heard_from)}>" if word.heard_from > piece.heard_from else ""
        text += _ESCAPED.get(character, character)
    return f"{_timestamp(piece.heard_from)} --> {_timestamp(piece.heard_to)}\n{text.strip()}"


def _timestamp(num_samples: int) -> str:
    ms = num_samples * 1000 // OUTPUT_RATE_HZ
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"
