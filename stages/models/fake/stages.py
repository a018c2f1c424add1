"""A thinker that repeats what it is told, a talker with a tone for each word, and their sounder.

Everything follows from the text, so a test can compute what it must hear: each word is a tone of
`tone_hz(word)` for 20 ms per letter. Each step gives every request in it one chunk.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from stages.contract.errors import RequestError
from stages.contract.messages import (
    OUTPUT_RATE_HZ,
    AudioChunk,
    AudioEnd,
    Candidate,
    Chunk,
    Code2WavParams,
    LatentChunk,
    SpeechEnd,
    StageParams,
    TalkerParams,
    TextChunk,
    TextEnd,
    ThinkerParams,
    TokenScore,
)
from stages.contract.stage import Emit
from stages.models.fake.prompts import FakePrompts
from stages.models.llama.stop import StopFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

S = TypeVar("S")

FRAME_SAMPLES = 240  # 10 ms
FRAMES_PER_LETTER = 2
VOICES = {"fake-low": 110.0, "fake-high": 220.0}  # Hz of the lowest tone


def tone_hz(word: str, voice: str) -> float:
    """The pitch of a word: one of twelve half-tones over the voice's lowest."""
    return VOICES[voice] * math.exp2(sum(map(ord, word)) % 12 / 12)


class _Fake(Generic[S]):
    """What the fakes share: a map of their requests, nothing to load, input taken as it comes."""

    def __init__(self) -> None:
        self._requests: dict[str, S] = {}

    def load(self) -> None:
        """Nothing to load."""

    def warm(self) -> None:
        """Nothing to warm."""

    def close(self, request_id: str) -> None:
        """See Stage."""
        del self._requests[request_id]


@dataclass(slots=True)
class _Reply:
    params: ThinkerParams
    words: deque[str]
    stop: StopFilter
    num_tokens: int = 0

    @property
    def finish_reason(self) -> str | None:
        if self.stop.stopped or not self.words:
            return "stop"
        return "length" if self.num_tokens == self.params.max_tokens else None

    def next_chunk(self) -> TextChunk:
        word = (" " if self.num_tokens else "") + self.words.popleft()
        self.num_tokens += 1
        text = self.stop.push(word)
        if self.finish_reason:
            text += self.stop.flush()
        num_top = self.params.num_top
        return TextChunk(text, 1, () if num_top is None else (_score(word, num_top),))


def _score(word: str, num_top: int) -> TokenScore:
    """A word's log probability is its length in tenths, negated; the likeliest are made up."""
    names = [word, *(f"{word}~{n}" for n in range(1, num_top))][:num_top]
    logprobs = [-len(word) / 10 - n for n in range(num_top)]
    return TokenScore(
        Candidate(word, word.encode(), -len(word) / 10),
        tuple(Candidate(n, n.encode(), p) for n, p in zip(names, logprobs, strict=True)),
    )


class FakeThinker(_Fake[_Reply]):
    """Says "You said: " and the last message, a word a step. A word is a token.

    With a schema it says the message alone: whoever wants JSON back sends it. Heeds `max_tokens`,
    `stop` and `num_top`; to chance, bias and penalties it is indifferent.
    """

    def open(self, request_id: str, params: StageParams) -> None:
        """See Stage."""
        if not isinstance(params, ThinkerParams):
            raise RequestError(request_id, "the thinker needs ThinkerParams")
        told = FakePrompts().decode(params.prompt).lstrip("\0")
        words = deque((told if params.schema else f"You said: {told}").split())
        self._requests[request_id] = _Reply(params, words, StopFilter(params.stop))

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """The thinker takes no chunks."""

    def end_input(self, request_id: str) -> None:
        """See Stage."""

    def wants_chunk(self, request_id: str) -> bool:
        """See Stage."""
        return False

    def ready(self, request_id: str) -> bool:
        """See Stage."""
        return True

    def step(self, credit: Mapping[str, int]) -> Iterator[Emit]:
        """See Stage."""
        for request_id in credit:
            reply = self._requests[request_id]
            if reason := reply.finish_reason:
                num_prompt = len(reply.params.prompt)
                yield Emit(request_id, end=TextEnd(reason, num_prompt, reply.num_tokens))
            else:
                yield Emit(request_id, reply.next_chunk())


@dataclass(slots=True)
class _Speech:
    params: TalkerParams
    text: str = ""
    ended: bool = False
    num_frames: int = 0


class FakeTalker(_Fake[_Speech]):
    """Turns each word, once it is complete, into frames that hold its pitch."""

    def open(self, request_id: str, params: StageParams) -> None:
        """See Stage."""
        if not isinstance(params, TalkerParams):
            raise RequestError(request_id, "the talker needs TalkerParams")
        self._requests[request_id] = _Speech(params)

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """See Stage."""
        if isinstance(chunk, TextChunk):
            self._requests[request_id].text += chunk.text

    def end_input(self, request_id: str) -> None:
        """See Stage."""
        self._requests[request_id].ended = True

    def wants_chunk(self, request_id: str) -> bool:
        """See Stage."""
        return True

    def ready(self, request_id: str) -> bool:
        """See Stage."""
        speech = self._requests[request_id]
        return speech.ended or " " in speech.text.lstrip()

    def step(self, credit: Mapping[str, int]) -> Iterator[Emit]:
        """See Stage."""
        for request_id in credit:
            speech = self._requests[request_id]
            word, _, speech.text = speech.text.lstrip().partition(" ")
            if not word:
                yield Emit(request_id, end=SpeechEnd(speech.num_frames))
                continue
            num = max(1, round(FRAMES_PER_LETTER * len(word) / speech.params.speed))
            frames = np.full((num, 1), tone_hz(word, speech.params.voice), np.float32)
            speech.num_frames += num
            yield Emit(request_id, LatentChunk(frames, first=True, last=True))


@dataclass(slots=True)
class _Sound:
    frames: deque[LatentChunk] = field(default_factory=deque)
    ended: bool = False
    num_samples: int = 0


class FakeCode2Wav(_Fake[_Sound]):
    """Sounds each frame as 10 ms of a sine at the pitch that it holds."""

    def open(self, request_id: str, params: StageParams) -> None:
        """See Stage."""
        if not isinstance(params, Code2WavParams):
            raise RequestError(request_id, "code2wav needs Code2WavParams")
        self._requests[request_id] = _Sound()

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """See Stage."""
        if isinstance(chunk, LatentChunk):
            self._requests[request_id].frames.append(chunk)

    def end_input(self, request_id: str) -> None:
        """See Stage."""
        self._requests[request_id].ended = True

    def wants_chunk(self, request_id: str) -> bool:
        """See Stage."""
        return len(self._requests[request_id].frames) < 2

    def ready(self, request_id: str) -> bool:
        """See Stage."""
        sound = self._requests[request_id]
        return sound.ended or bool(sound.frames)

    def step(self, credit: Mapping[str, int]) -> Iterator[Emit]:
        """See Stage."""
        for request_id in credit:
            sound = self._requests[request_id]
            if not sound.frames:
                tokens = math.ceil(sound.num_samples / OUTPUT_RATE_HZ / 0.05)
                yield Emit(request_id, end=AudioEnd(sound.num_samples, tokens))
                continue
            samples = _tone(sound.frames.popleft().frames[:, 0])
            sound.num_samples += len(samples)
            yield Emit(request_id, AudioChunk(samples, OUTPUT_RATE_HZ))


def _tone(pitches_hz: np.ndarray) -> np.ndarray:
    """int16 [frames * 240] of a sine that is continuous over the frames of one word."""
    phase = np.cumsum(np.repeat(pitches_hz, FRAME_SAMPLES)) * (2 * math.pi / OUTPUT_RATE_HZ)
    return (8000 * np.sin(phase)).astype(np.int16)
