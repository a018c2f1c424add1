"""What the server knows of a model: its names, voices and stages, and how to make a request.

Torch-free. The model families (`stages/models/`) build pipelines; the server only reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from stages.contract.messages import (
    Code2WavParams,
    Request,
    StageInput,
    TalkerParams,
    TextChunk,
    ThinkerParams,
    VoiceFile,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from stages.contract.handle import WorkerHandle
    from stages.contract.messages import Prompt


DEFAULT_MAX_RUNNING = 16  # requests that run at once, unless it is set or measured

# Names of OpenAI's models. Clients may use them for any model that speaks, or chats.
SPEECH_ALIASES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
CHAT_ALIASES = ("gpt-audio", "gpt-4o-audio-preview", "gpt-4o-mini-audio-preview")


@dataclass(frozen=True, slots=True)
class VoiceSpec:
    """A voice that clients can choose.

    - `language` is a BCP 47 tag; `mul` if the voice has no language of its own.
    - `languages` are all tags that the voice speaks; empty means `language` only.
    - `speakers` are the names of the speakers in the order of their numbers; empty if there is one.
    - `file` is the voice's file; None if the stages load the voice at the start.
    """

    name: str
    language: str
    quality: str = ""
    rate_hz: int = 0
    speakers: tuple[str, ...] = ()
    licence: str = ""
    file: VoiceFile | None = None
    languages: tuple[str, ...] = ()


class ChatPrompts(Protocol):
    """The tokenizer and chat template of a model that writes text. Torch-free.

    The server checks a prompt with them before it sends it to the thinker, which tokenizes it again
    with the same code.

    Tokens have the numbers 0 to `num_tokens` - 1. `context_tokens` is the most that prompt and
    reply may have together.
    """

    context_tokens: int
    num_tokens: int

    def tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        """The token ids of a prompt. A chat ends with the start of the assistant's turn.

        Ids in a `RawPrompt` are returned as they are, unchecked. Raises ValueError for a chat that
        the template cannot render.
        """

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of the tokens."""

    def check_schema(self, schema: str) -> None:
        """Raise ValueError if replies cannot be restricted to this JSON schema (as text)."""


def speech_request(text: str, talker: TalkerParams) -> Request:
    """A request for a speech pipeline: talker, then code2wav."""
    return Request(_speaking(talker), (TextChunk(text),))


def chat_request(thinker: ThinkerParams, talker: TalkerParams | None = None) -> Request:
    """A request for a chat pipeline: the thinker only, or all three stages if `talker` is set."""
    return Request((thinker, *(_speaking(talker) if talker else ())))


def _speaking(talker: TalkerParams) -> tuple[TalkerParams, Code2WavParams]:
    """The parameters of talker and code2wav."""
    return talker, Code2WavParams(talker.voice, talker.speaker, talker.file)


def prewarm_fn(stage_id: int, request: Request) -> StageInput:
    """The input that opens a later stage of `request` before its first chunk comes."""
    return request.stage_input(stage_id)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One served model: its stages in order, and what a request may ask of it.

    - `handles` has one handle for each of `stage_names`.
    - The client gets the outputs of the stages in `final_stage_ids`.
    - `speakable` returns whether a cleaned text has anything to speak.
    - `prompts` is None if the model only speaks text that it is given.
    - `find_voices` lists the voices as they are now, and may block. None if they never change.
    - `recordings` is the folder for uploaded voices. None if the model cannot copy voices.
    - `language_names` maps BCP 47 tags to the model's own names of languages.
    - `fixed_prosody` means that a request cannot set speed or scales.
    - `count_tokens` counts a text in the model's tokens. None means that characters are counted.
    - `sample` is a speech request that the server runs at start to measure its capacity. None means
      that nothing is measured.
    """

    model_id: str
    aliases: tuple[str, ...]
    stage_names: tuple[str, ...]
    handles: tuple[WorkerHandle, ...]
    final_stage_ids: frozenset[int]
    voices: tuple[VoiceSpec, ...]
    speakable: Callable[[str], bool]
    prompts: ChatPrompts | None = None
    find_voices: Callable[[], tuple[VoiceSpec, ...]] | None = None
    recordings: Path | None = None
    language_names: Mapping[str, str] = field(default_factory=dict)
    fixed_prosody: bool = False
    count_tokens: Callable[[str], int] | None = None
    sample: Request | None = None
