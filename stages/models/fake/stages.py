"""A thinker that repeats the message, a talker with a tone for each word, and their vocoder.

Everything follows from the text, so a test can compute the expected audio: each word is a tone of
`tone_hz(word)` for 20 ms per letter. Each step emits one chunk for every request in it.
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
from stages.models.fake.settings import FakeSettings
from stages.models.llama.stop import StopFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stages.contract.stage import Credit

R = TypeVar("R")

FRAME_SAMPLES = 240  # 10 ms
FRAMES_PER_LETTER = 2
VOICES = {"fake-low": 110.0, "fake-high": 220.0}  # the lowest tone in Hz


def tone_hz(word: str, voice: str) -> float:
    """The pitch of a word: one of twelve semitones above the lowest tone of the voice."""
    return VOICES[voice] * math.exp2(sum(map(ord, word)) % 12 / 12)


class _FakeStage(Generic[R]):
    """What the fake stages share: a map of requests, and nothing to load."""

    def __init__(self) -> None:
        self._requests: dict[str, R] = {}

    def load(self) -> None:
        """Do nothing: there are no weights."""

    def warm(self) -> None:
        """Do nothing: the first step is as fast as the others."""

    def close(self, request_id: str) -> None:
        """Drop the state of a request."""
        del self._requests[request_id]


@dataclass(slots=True)
class _ThinkerRequest:
    params: ThinkerParams
    words: deque[str]
    stop: StopFilter
    num_prompt: int
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
    """The log probability of a word is -0.1 per letter. The other candidates are made up."""
    names = [word, *(f"{word}~{n}" for n in range(1, num_top))][:num_top]
    logprobs = [-len(word) / 10 - n for n in range(num_top)]
    return TokenScore(
        Candidate(word, word.encode(), -len(word) / 10),
        tuple(Candidate(n, n.encode(), p) for n, p in zip(names, logprobs, strict=True)),
    )


class FakeThinker(_FakeStage[_ThinkerRequest]):
    """Answers "You said: " and the last message, one word per step. A word is a token.

    With a schema the answer is the message alone, so a client that wants JSON sends it. Respects
    `max_tokens`, `stop` and `num_top`. Ignores temperature, bias and penalties.
    """

    def open(self, request_id: str, params: StageParams) -> None:
        """Begin an answer to the last message of the prompt."""
        if not isinstance(params, ThinkerParams):
            raise RequestError(request_id, "the thinker needs ThinkerParams")
        prompts = FakePrompts()
        tokens = prompts.tokenize(params.prompt)
        message = prompts.decode(tokens).lstrip("\0")
        words = deque((message if params.schema else f"You said: {message}").split())
        stop = StopFilter(params.stop)
        self._requests[request_id] = _ThinkerRequest(params, words, stop, len(tokens))

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """The thinker takes no chunks."""

    def end_input(self, request_id: str) -> None:
        """Do nothing: a thinker has no input after its prompt."""

    def wants_chunk(self, request_id: str) -> bool:
        """Always False: a thinker takes no chunks."""
        return False

    def ready(self, request_id: str, credit: Credit) -> bool:
        """Whether there is credit."""
        return credit.both > 0

    def step(self, credit: Mapping[str, Credit]) -> Iterator[Emit]:
        """Emit the next word of each request, or its end."""
        for request_id in credit:
            request = self._requests[request_id]
            if reason := request.finish_reason:
                yield Emit(request_id, end=TextEnd(reason, request.num_prompt, request.num_tokens))
            else:
                yield Emit(request_id, request.next_chunk())


@dataclass(slots=True)
class _TalkerRequest:
    params: TalkerParams
    text: str = ""
    ended: bool = False
    num_frames: int = 0


class FakeTalker(_FakeStage[_TalkerRequest]):
    """Turns each complete word into frames that hold its pitch."""

    def open(self, request_id: str, params: StageParams) -> None:
        """Begin a request without text."""
        if not isinstance(params, TalkerParams):
            raise RequestError(request_id, "the talker needs TalkerParams")
        self._requests[request_id] = _TalkerRequest(params)

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """Add text."""
        if isinstance(chunk, TextChunk):
            self._requests[request_id].text += chunk.text

    def end_input(self, request_id: str) -> None:
        """Note that the text is complete."""
        self._requests[request_id].ended = True

    def wants_chunk(self, request_id: str) -> bool:
        """Always True."""
        return True

    def ready(self, request_id: str, credit: Credit) -> bool:
        """Whether there is credit, and a complete word or the end of the text."""
        request = self._requests[request_id]
        return credit.both > 0 and (request.ended or " " in request.text.lstrip())

    def step(self, credit: Mapping[str, Credit]) -> Iterator[Emit]:
        """Emit the frames of the next word of each request, or its end."""
        for request_id in credit:
            request = self._requests[request_id]
            word, _, request.text = request.text.lstrip().partition(" ")
            if not word:
                yield Emit(request_id, end=SpeechEnd(request.num_frames))
                continue
            num = max(
                1,
                round(
                    FRAMES_PER_LETTER
                    * len(word)
                    / (request.params.settings or FakeSettings()).speed
                ),
            )
            frames = np.full((num, 1), tone_hz(word, request.params.voice), np.float32)
            request.num_frames += num
            yield Emit(request_id, LatentChunk(frames, first=True, last=True))


@dataclass(slots=True)
class _Code2WavRequest:
    frames: deque[LatentChunk] = field(default_factory=deque)
    ended: bool = False
    num_samples: int = 0


class FakeCode2Wav(_FakeStage[_Code2WavRequest]):
    """Turns each frame into 10 ms of a sine at its pitch."""

    def open(self, request_id: str, params: StageParams) -> None:
        """Begin a request without frames."""
        if not isinstance(params, Code2WavParams):
            raise RequestError(request_id, "code2wav needs Code2WavParams")
        self._requests[request_id] = _Code2WavRequest()

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """Queue a chunk of frames."""
        if isinstance(chunk, LatentChunk):
            self._requests[request_id].frames.append(chunk)

    def end_input(self, request_id: str) -> None:
        """Note that no more frames will come."""
        self._requests[request_id].ended = True

    def wants_chunk(self, request_id: str) -> bool:
        """Whether fewer than two chunks wait."""
        return len(self._requests[request_id].frames) < 2

    def ready(self, request_id: str, credit: Credit) -> bool:
        """Whether there is credit, and a chunk waits or the input has ended."""
        request = self._requests[request_id]
        return credit.both > 0 and (request.ended or bool(request.frames))

    def step(self, credit: Mapping[str, Credit]) -> Iterator[Emit]:
        """Emit the samples of the next chunk of each request, or its end."""
        for request_id in credit:
            request = self._requests[request_id]
            if not request.frames:
                tokens = math.ceil(request.num_samples / OUTPUT_RATE_HZ / 0.05)
                yield Emit(request_id, end=AudioEnd(request.num_samples, tokens))
                continue
            samples = _tone(request.frames.popleft().frames[:, 0])
            request.num_samples += len(samples)
            yield Emit(request_id, AudioChunk(samples, OUTPUT_RATE_HZ))


def _tone(pitches_hz: np.ndarray) -> np.ndarray:
    """int16 [frames * 240]: a sine that is continuous over the frames of one word."""
    phase = np.cumsum(np.repeat(pitches_hz, FRAME_SAMPLES)) * (2 * math.pi / OUTPUT_RATE_HZ)
    return (8000 * np.sin(phase)).astype(np.int16)
