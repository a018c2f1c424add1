"""Decodes audio and text from a recorded body: raw PCM, a WAV file, or events.

Audio counts from its first complete 16-bit sample. Headers do not count.
"""

from __future__ import annotations

import json
import sys
from array import array
from base64 import b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Timed = tuple[float, bytes]

SAMPLE_BYTES = 2
OUR_RATE_HZ = 24_000
AUDIBLE = 328  # of 32768: -40 dB of full scale


@dataclass(slots=True)
class DecodedBody:
    """A decoded body: whole samples and pieces of text, each with its time of arrival.

    `ended`: the body ended as its format requires.
    """

    rate_hz: int
    samples: list[Timed] = field(default_factory=list)
    texts: list[tuple[float, str]] = field(default_factory=list)
    num_tokens: int = 0
    ended: bool = True


def decode_body(pieces: Sequence[Timed], kind: str, rate_hz: int = OUR_RATE_HZ) -> DecodedBody:
    """Decode a body. `kind` is `pcm`, `wav`, `chat` or `events`; `rate_hz` is that of raw PCM.

    Of `events` only the number and the times are kept, as empty texts.
    """
    if kind == "chat":
        return _chat(pieces)
    if kind == "events":
        events = [(at_s, event.decode()) for at_s, event in _events(pieces)]
        counted = [(at_s, "") for at_s, _ in events]
        return DecodedBody(rate_hz, texts=counted, ended=bool(events) and events[-1][1] == "[DONE]")
    if kind == "wav":
        rate_hz, pieces = _strip_header(pieces, rate_hz)
    return DecodedBody(rate_hz, _whole_samples(pieces))


def first_audible(decoded: DecodedBody) -> int | None:
    """The index of the first sample above -40 dB. None if all samples are below."""
    offset = 0
    for _, raw in decoded.samples:
        samples = array("h", raw)
        if sys.byteorder == "big":
            samples.byteswap()
        for k, sample in enumerate(samples):
            if abs(sample) > AUDIBLE:
                return offset + k
        offset += len(samples)
    return None


def _whole_samples(pieces: Sequence[Timed]) -> list[Timed]:
    found, odd = [], b""
    for at_s, raw in pieces:
        held = odd + raw
        whole = len(held) - len(held) % SAMPLE_BYTES
        odd = held[whole:]
        if whole:
            found.append((at_s, held[:whole]))
    return found


def _strip_header(pieces: Sequence[Timed], rate_hz: int) -> tuple[int, list[Timed]]:
    head = b""
    for k, (at_s, raw) in enumerate(pieces):
        head += raw
        start = head.find(b"data")
        if start >= 0 and len(head) >= start + 8:
            rate_hz = int.from_bytes(head[24:28], "little")
            return rate_hz, [(at_s, head[start + 8 :]), *pieces[k + 1 :]]
    return rate_hz, []


def _chat(pieces: Sequence[Timed]) -> DecodedBody:
    decoded = DecodedBody(OUR_RATE_HZ, ended=False)
    for at_s, event in _events(pieces):
        if event == b"[DONE]":
            decoded.ended = True
            continue
        body = json.loads(event)
        if usage := body.get("usage"):
            decoded.num_tokens = _text_tokens(usage)
        for choice in body.get("choices", ()):
            _take(decoded, at_s, choice["delta"])
    return decoded


def _take(decoded: DecodedBody, at_s: float, delta: dict[str, object]) -> None:
    audio = delta.get("audio")
    spoken = audio if isinstance(audio, dict) else {}
    if text := delta.get("content") or spoken.get("transcript"):
        decoded.texts.append((at_s, str(text)))
    if sound := spoken.get("data"):
        decoded.samples.append((at_s, b64decode(sound)))


def _text_tokens(usage: dict[str, object]) -> int:
    details = usage.get("completion_tokens_details")
    if isinstance(details, dict) and details.get("text_tokens"):
        return int(details["text_tokens"])
    return int(str(usage["completion_tokens"]))


def _events(pieces: Sequence[Timed]) -> Iterator[Timed]:
    held = b""
    for at_s, raw in pieces:
        *whole, held = (held + raw).split(b"\n\n")
        for block in whole:
            if block.startswith(b"data: "):
                yield at_s, block[6:]
