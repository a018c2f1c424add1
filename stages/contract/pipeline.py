"""What the server knows of a model: its names, its voices, its stages, and how to ask it.

Torch-free. `build.py` beside this file makes the pipelines; here is only what they are.
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


# The names of OpenAI's models under which clients look for one that speaks, or one that chats.
SPEECH_ALIASES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
CHAT_ALIASES = ("gpt-audio", "gpt-4o-audio-preview", "gpt-4o-mini-audio-preview")


@dataclass(frozen=True, slots=True)
class VoiceSpec:
    """A voice by its name; `language` is a BCP 47 tag, `mul` where it has none of its own.

    `languages` are those that it speaks; none: its own only. `speakers` are named in the order of
    their numbers; none where there is only one. `file` is where the stages find it, None where they
    have it from the start.
    """

    name: str
    language: str
    quality: str = ""
    rate_hz: int = 0
    speakers: tuple[str, ...] = ()
    licence: str = ""
    file: VoiceFile | None = None
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat as the model's template sees it. `role`: system, user or assistant."""

    role: str
    content: str


class ChatPrompts(Protocol):
    """What the server knows of a model that writes: its tokens, and what it can be asked for.

    Torch-free. Tokens are numbered from 0 to `num_tokens` - 1.
    """

    context_tokens: int
    num_tokens: int

    def tokenize(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """A chat up to and including the opening of the assistant's turn."""

    def encode(self, text: str) -> tuple[int, ...]:
        """A text as it is, without a chat around it."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens."""

    def check_schema(self, schema: str) -> None:
        """ValueError for a JSON schema (as text) that replies cannot be kept to."""


def speech_request(text: str, talker: TalkerParams) -> Request:
    """A request of a speech pipeline: talker, code2wav."""
    return Request(_speaking(talker), (TextChunk(text),))


def chat_request(thinker: ThinkerParams, talker: TalkerParams | None = None) -> Request:
    """A request of a chat pipeline: the thinker alone, or with a `talker` all three stages."""
    return Request((thinker, *(_speaking(talker) if talker else ())))


def _speaking(talker: TalkerParams) -> tuple[TalkerParams, Code2WavParams]:
    """The parameters of both speaking stages."""
    return talker, Code2WavParams(talker.voice, talker.speaker, talker.file)


def prewarm_fn(stage_id: int, request: Request) -> StageInput:
    """The placeholder that a later stage is opened with before its first chunk comes."""
    return request.stage_input(stage_id)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One model id: its ordered stages and what may be asked of it.

    `prompts` is None where the model only speaks text that it is given. `speakable` says whether
    anything is there to speak in a cleaned text. `find_voices` looks again which voices there are
    now; None where they are always the same. Uploaded voices go into `recordings`, where the model
    copies voices. `language_names` are the model's own by BCP 47 tag. `fixed_prosody` means that a
    request cannot set speed or scales. `count_tokens` counts a text as the model reads it; None: in characters.
    `sample` is spoken at the start to see how much sound comes in a second; None: nobody looks.
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
