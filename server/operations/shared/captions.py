"""What is heard when: on the wire, and as a WebVTT file."""

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
# A cue is lines until an empty one.
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": " ", "\r": " "}


def on_the_wire(captions: Iterable[Caption]) -> list[SpokenPiece]:
    """Captions in samples as they are sent, in seconds."""
    return [
        SpokenPiece(
            start=caption.piece.start,
            end=caption.piece.end,
            start_s=_seconds(caption.piece.heard_from),
            end_s=_seconds(caption.piece.heard_to),
            words=[_word(word) for word in caption.words],
        )
        for caption in captions
    ]


def captions_json(captions: Iterable[Caption]) -> bytes:
    """`on_the_wire` as JSON."""
    return _PIECES.dump_json(on_the_wire(captions))


def _word(mark: TextSpan) -> SpokenWord:
    return SpokenWord(
        start=mark.start,
        end=mark.end,
        start_s=_seconds(mark.heard_from),
        end_s=_seconds(mark.heard_to),
    )


def _seconds(samples: int) -> float:
    return round(samples / OUTPUT_RATE_HZ, 4)


def webvtt(said: Traced, captions: Iterable[Caption]) -> str:
    """A WebVTT file (W3C, https://www.w3.org/TR/webvtt1/): a cue for each piece, in it a time for
    each word. `said` is the text as it is cleaned; of a piece that comes several times the words
    are joined."""
    cues = [_cue(said, one.piece, one.words) for one in _joined(captions)]
    return "\n\n".join(["WEBVTT", *cues]) + "\n"


def whole_captions(captions: Iterable[Caption]) -> list[SpokenPiece]:
    """Each piece once, with all its words."""
    return on_the_wire(_joined(captions))


def _joined(captions: Iterable[Caption]) -> list[Caption]:
    pieces: dict[TextSpan, list[TextSpan]] = {}
    for caption in captions:
        pieces.setdefault(caption.piece, []).extend(caption.words)
    return [Caption(piece, tuple(words)) for piece, words in pieces.items()]


def _cue(said: Traced, piece: TextSpan, words: Sequence[TextSpan]) -> str:
    text, coming = "", deque(words)
    begin, end = (bisect_left(said.starts, at) for at in (piece.start, piece.end))
    for character, start in zip(said.text[begin:end], said.starts[begin:end], strict=True):
        if coming and start >= coming[0].start:
            word = coming.popleft()
            text += f"<{_stamp(word.heard_from)}>" if word.heard_from > piece.heard_from else ""
        text += _ESCAPED.get(character, character)
    return f"{_stamp(piece.heard_from)} --> {_stamp(piece.heard_to)}\n{text.strip()}"


def _stamp(samples: int) -> str:
    ms = samples * 1000 // OUTPUT_RATE_HZ
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"
