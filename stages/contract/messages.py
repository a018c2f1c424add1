"""What crosses a stage boundary: frozen, named, and free of torch.

A request is described by one `Request`; each stage is opened with its `StageInput`. Between
stages travel chunks (`TextChunk`, `LatentChunk`, `CodecChunk`); to the orchestrator travel
`StageOutput`s, whose data is a `TextChunk`, an `AudioChunk`, or, on a stage's last report, its
`TextEnd` or `AudioEnd`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class StageOutput:
    """One report of a stage to the orchestrator (the control path)."""

    request_id: str
    data: Any
    finished: bool
    error: Exception | None = None


OUTPUT_RATE_HZ = 24_000  # of all audio that leaves a pipeline; OpenAI promises it for pcm

# What a stage is opened with.


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. Temperature 0 is greedy; `top_k` 0 and `top_p` 1 are off.

    Before anything else the logits get `bias`, pairs of a token and what is added to it, and lose
    the penalties for the tokens of the reply so far: `frequency_penalty` for each time that one was
    written, `presence_penalty` once.
    """

    seed: int
    temperature: float = 0.6
    top_p: float = 1.0
    top_k: int = 0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    bias: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class ThinkerParams:
    """`prompt` is token ids; `max_tokens` bounds the new ones; a `stop` string ends the text.

    `num_top` asks for the score of each token, and of so many that were likeliest at its place;
    None is off. With `schema`, a JSON schema as text, the reply is JSON of it.
    """

    prompt: tuple[int, ...]
    sampling: Sampling
    max_tokens: int
    stop: tuple[str, ...] = ()
    num_top: int | None = None
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class VoiceFile:
    """A voice's file as it was when it was found: changed, it is another voice."""

    path: str
    changed_ns: int


@dataclass(frozen=True, slots=True)
class TalkerParams:
    """How to speak. `speed` divides durations; a scale of None is the voice's own.

    `file` is the voice's; None where the stage was started with it. `clean` takes markup out, and
    says `code_announcement` for each block of code. `captions` marks what each sound stands for.
    `language` (a name that the model knows; empty: as the text is) and `instructions` (how to
    speak) are for models that can be told.
    """

    voice: str
    seed: int
    speed: float = 1.0
    noise_scale: float | None = None
    noise_w: float | None = None
    length_scale: float | None = None
    sentence_silence_s: float | None = None
    speaker: int = 0
    clean: bool = True
    code_announcement: str = ""
    captions: bool = False
    file: VoiceFile | None = None
    language: str = ""
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Code2WavParams:
    """Whose decoder turns the latents into sound; see `TalkerParams`."""

    voice: str
    speaker: int = 0
    file: VoiceFile | None = None


StageParams = ThinkerParams | TalkerParams | Code2WavParams


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token as the model saw it: its name, the bytes that it adds to the text (None for a control
    token), and its log probability before bias, penalties and temperature."""

    name: str
    text_bytes: bytes | None
    logprob: float


@dataclass(frozen=True, slots=True)
class TokenScore:
    """The token that was written, and the likeliest at its place, the first of them first."""

    chosen: Candidate
    top: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Text as it is written: `num_tokens` tokens of the model (0 where there is no tokenizer).

    `scores` are those of these tokens where they were asked for; then a text may be empty.
    """

    text: str
    num_tokens: int = 0
    scores: tuple[TokenScore, ...] = ()


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Part of the source text, and when it is heard. Both ranges exclude their end.

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
    """What a piece stands for, and its words; each in the order in which they are heard."""

    piece: TextSpan
    words: tuple[TextSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class LatentChunk:
    """Frames of one spoken piece, in order: `frames` is a float tensor [frames, channels].

    `first` and `last` mark the ends of the piece; what lies beyond them is silence to the decoder.
    `pause_s` of silence follows the last chunk of a piece. The first may have a caption, in frames.
    """

    frames: Any
    first: bool
    last: bool
    pause_s: float = 0.0
    caption: Caption | None = None


@dataclass(frozen=True, slots=True)
class CodecChunk:
    """Frames of a neural codec, in order: `codes` is an int64 tensor [frames, groups] where the
    talker computes, complete when it is sent and never written to again.

    The decoder keeps state from frame to frame. Frames that are not `audible` (those of a reference
    recording that the speech continues) only change that state. The caption of the whole speech, in
    audible frames, comes with the last chunk.
    """

    codes: Any
    audible: bool = True
    caption: Caption | None = None


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """`samples` is int16 [n], mono, at `rate_hz`.

    `captions` are those of the pieces that are heard in it, in samples of the whole sound, each
    with the words that begin in it.
    """

    samples: np.ndarray[Any, np.dtype[np.int16]]
    rate_hz: int
    captions: tuple[Caption, ...] = ()


Chunk = TextChunk | LatentChunk | CodecChunk | AudioChunk


@dataclass(frozen=True, slots=True)
class TextEnd:
    """The thinker's last report. `finish_reason` is `stop` or `length`.

    `cached_tokens` of the prompt were known from earlier requests, and not read again.
    """

    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class AudioEnd:
    """code2wav's last report: all samples sent, and what they count as."""

    num_samples: int
    audio_tokens: int


@dataclass(frozen=True, slots=True)
class SpeechEnd:
    """The talker's last report; nobody outside sees it."""

    num_frames: int


StageEnd = TextEnd | AudioEnd | SpeechEnd


@dataclass(frozen=True, slots=True)
class StageInput:
    """What a worker gets when a request is submitted to one of its stages.

    `source` is the whole input where it is known at the start (the text of a speech request, or
    what the stage before gave when stages run one after the other); None means that it comes over
    the connector. `has_next` says whether a later stage was submitted too and takes the chunks.
    """

    params: StageParams
    source: tuple[Chunk, ...] | None
    has_next: bool


@dataclass(frozen=True, slots=True)
class Request:
    """One generation: the parameters of each stage that it runs, and what stage 0 reads."""

    params: tuple[StageParams, ...]
    source: tuple[Chunk, ...] = ()

    @property
    def last_stage(self) -> int:
        """The number of the last stage that this request runs."""
        return len(self.params) - 1

    def stage_input(self, stage_id: int) -> StageInput:
        """What stage `stage_id` is opened with when all stages start together."""
        source = self.source if stage_id == 0 else None
        return StageInput(self.params[stage_id], source, has_next=stage_id < self.last_stage)
