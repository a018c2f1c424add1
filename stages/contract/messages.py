"""Everything that crosses a stage boundary, as frozen dataclasses. This module is torch-free.

- `Request` describes one generation. A worker gets a `StageInput` for each stage of it.
- Chunks (`TextChunk`, `LatentChunk`, `CodecChunk`) travel from one stage to the next.
- `StageOutput`s travel from a stage to the orchestrator. Their data is a chunk or, in the last
  output of a stage, a `TextEnd`, `SpeechEnd` or `AudioEnd`.

All ranges exclude their end. Offsets into text count code points.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class To(Flag):
    """Who a chunk is for: the client, the next stage, or both."""

    CLIENT = auto()
    NEXT = auto()
    BOTH = CLIENT | NEXT


@dataclass(frozen=True, slots=True)
class StageOutput:
    """One report of a stage to the orchestrator (the control path).

    `finished` is true in the last report of the stage. `error` is set if the stage failed for this
    request; then `data` is None and `finished` is true. `to` says who `data` is for.
    """

    request_id: str
    data: Any
    finished: bool
    error: Exception | None = None
    to: To = To.BOTH

    def __reduce__(self) -> tuple[object, ...]:
        """How it is pickled. A process sends one for each chunk, and this is faster."""
        fields = (self.request_id, self.data, self.finished, self.error)
        return StageOutput, fields if self.to is To.BOTH else (*fields, self.to)


OUTPUT_RATE_HZ = 24_000  # All audio that leaves a pipeline has this rate, as OpenAI's pcm has.

# Parameters: what a stage is opened with.


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. Temperature 0 is greedy; `top_k` 0 and `top_p` 1 are off.

    `bias` has pairs of a token and the number that is added to its logit. The penalties lower the
    logits of tokens that the reply has already: `frequency_penalty` once for each occurrence,
    `presence_penalty` once in all. Bias and penalties apply before temperature, top-k and top-p.
    """

    seed: int
    temperature: float = 0.6
    top_p: float = 1.0
    top_k: int = 0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    bias: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat. `role` is `system`, `user` or `assistant`."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A chat to answer. The model's own template makes it a text.

    Each of the `tools` is a JSON object as text, as OpenAI's chats have them. `template_options` is
    a JSON object as text, with further variables of the template; "" if there are none.
    """

    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()
    template_options: str = ""


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """A text to continue without a chat template, or the ids of its tokens."""

    content: str | tuple[int, ...]


Prompt = ChatPrompt | RawPrompt


@dataclass(frozen=True, slots=True)
class ThinkerParams:
    """What to write. `max_tokens` limits the number of new tokens.

    The reply ends before the first of the `stop` strings. `num_top` asks for a `TokenScore` of each
    new token, with that many of the likeliest tokens at its place; None asks for no scores.
    `schema` is a JSON schema as text; if it is set, the reply is JSON that follows the schema.
    """

    prompt: Prompt
    sampling: Sampling
    max_tokens: int
    stop: tuple[str, ...] = ()
    num_top: int | None = None
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class VoiceFile:
    """A voice's file, with its modification time in ns. A changed file counts as another voice."""

    path: str
    changed_ns: int


@dataclass(frozen=True, slots=True)
class TalkerParams:
    """How to speak.

    - `speaker` is a speaker's number, for voices with several.
    - `clean` removes markup; `code_announcement` is spoken for each block of code (empty: nothing).
    - `captions` asks for a `Caption` of each piece.
    - `file` is the voice's file; None if the stage was started with the voice.
    - `settings` are the family's own (see `request_settings.py`); None is its defaults.
    """

    voice: str
    seed: int
    settings: Any = None
    speaker: int = 0
    clean: bool = True
    code_announcement: str = ""
    captions: bool = False
    file: VoiceFile | None = None


@dataclass(frozen=True, slots=True)
class Code2WavParams:
    """Which voice's decoder makes the sound. The fields mean what they mean in `TalkerParams`."""

    voice: str
    speaker: int = 0
    file: VoiceFile | None = None


StageParams = ThinkerParams | TalkerParams | Code2WavParams


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token and its log probability before bias, penalties and temperature.

    `text_bytes` are the bytes that the token adds to the text; None for a control token.
    """

    name: str
    text_bytes: bytes | None
    logprob: float


@dataclass(frozen=True, slots=True)
class TokenScore:
    """The chosen token, and the likeliest tokens at its place in descending order."""

    chosen: Candidate
    top: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class TextChunk:
    """The next part of a text, made of `num_tokens` tokens (0 if no tokenizer made it).

    `scores` has one score for each token, if scores were asked for. The text may be empty then.
    """

    text: str
    num_tokens: int = 0
    scores: tuple[TokenScore, ...] = ()


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Part of the source text, and when it is heard.

    `start` and `end` are code points. `heard_from` and `heard_to` are frames, counted from the
    start of the piece, in a LatentChunk; frames of the whole speech in a CodecChunk; samples of the
    whole output in an AudioChunk.
    """

    start: int
    end: int
    heard_from: int
    heard_to: int


@dataclass(frozen=True, slots=True)
class Caption:
    """The span of a piece, and the spans of its words in the order in which they are heard."""

    piece: TextSpan
    words: tuple[TextSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class LatentChunk:
    """The next frames of one spoken piece. `frames` is a float tensor [frames, channels].

    `first` and `last` are true in the first and last chunk of a piece. The decoder sees silence
    beyond them. `pause_s` of silence follows the last chunk. The first chunk may have a caption.
    """

    frames: Any
    first: bool
    last: bool
    pause_s: float = 0.0
    caption: Caption | None = None


@dataclass(frozen=True, slots=True)
class CodecChunk:
    """The next frames of a neural codec. `codes` is an int64 tensor [frames, groups].

    The tensor is on the talker's device. It is complete when it is sent, and nobody writes to it
    afterwards.

    The decoder keeps state from frame to frame. Frames that are not `audible` (those of a reference
    recording that the speech continues) only change that state. The caption of the whole speech, in
    audible frames, comes with the last chunk.
    """

    codes: Any
    audible: bool = True
    caption: Caption | None = None


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """The next samples: int16 [samples], mono, at `rate_hz`.

    `captions` has a caption for each piece that is heard in this chunk, with the words that begin
    in this chunk. A piece that spans several chunks therefore comes several times.
    """

    samples: np.ndarray[Any, np.dtype[np.int16]]
    rate_hz: int
    captions: tuple[Caption, ...] = ()


Chunk = TextChunk | LatentChunk | CodecChunk | AudioChunk


@dataclass(frozen=True, slots=True)
class TextEnd:
    """The end of a thinker's output. `finish_reason` is `stop` or `length`.

    `cached_tokens` of the `prompt_tokens` were taken from the prefix cache.
    """

    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class AudioEnd:
    """The end of a code2wav's output: its number of samples, and the audio tokens to bill."""

    num_samples: int
    audio_tokens: int


@dataclass(frozen=True, slots=True)
class SpeechEnd:
    """The end of a talker's output. It never reaches the client."""

    num_frames: int


StageEnd = TextEnd | AudioEnd | SpeechEnd


@dataclass(frozen=True, slots=True)
class StageInput:
    """What a worker gets when a request is submitted to one of its stages.

    `source` is the whole input if it is known at the start: the text of a speech request, or the
    chunks of the stage before if stages run one after the other. None means that the input comes
    over the connector. `has_next` is true if a later stage was submitted too and takes the chunks.
    """

    params: StageParams
    source: tuple[Chunk, ...] | None
    has_next: bool


@dataclass(frozen=True, slots=True)
class Request:
    """One generation: the parameters of stages 0, 1, ..., and the input of stage 0.

    The request runs as many stages as it has parameters.
    """

    params: tuple[StageParams, ...]
    source: tuple[Chunk, ...] = ()

    @property
    def last_stage(self) -> int:
        """The number of the last stage that the request runs."""
        return len(self.params) - 1

    def stage_input(self, stage_id: int) -> StageInput:
        """The input of stage `stage_id` if all stages start together."""
        source = self.source if stage_id == 0 else None
        return StageInput(self.params[stage_id], source, has_next=stage_id < self.last_stage)
