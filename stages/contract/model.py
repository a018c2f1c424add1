"""What the server knows of a model: its names and voices, its pipelines, and what it can be asked.

Torch-free. The model families (`stages/models/`) build models; the server only reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from stages.contract.pipeline import TEXT_ONLY, Medium

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from stages.contract.messages import Prompt, Request, VoiceFile
    from stages.contract.pipeline import Pipeline


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
    with the same code. Tokens have the numbers 0 to `num_tokens` - 1. `context_tokens` is the most
    that prompt and reply may have together.
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


class VoiceUploads(Protocol):
    """The voices that clients added to a model. Every method may block on files."""

    def names(self) -> Sequence[str]:
        """The names of the added voices."""

    def add(
        self,
        name: str,
        samples: np.ndarray[Any, np.dtype[np.float32]],
        transcript: str,
        language: str,
    ) -> None:
        """Keep a recording of a voice, float32 [n] at `OUTPUT_RATE_HZ`.

        Raises FileExistsError if the name is taken.
        """

    def remove(self, name: str) -> None:
        """Remove a voice. Raises FileNotFoundError if it is not there."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One served model: its pipelines, and what a request may ask of it.

    - `pipelines` are the ways through the model; no two have the same inputs and outputs.
    - `speakable` returns whether a cleaned text has anything to speak.
    - `speech_settings` makes the family's own settings from the fields that a request sets, known
      ones and others, and checks them (see `request_settings.py`). Raises SettingError.
    - `prompts` is None if the model only speaks text that it is given.
    - `find_voices` lists the voices as they are now, and may block. None if they never change.
    - `uploads` keeps voices that clients add. None if the model cannot copy voices.
    - `count_tokens` counts a text in the model's tokens. None means that characters are counted.
    - `max_running` is how many of its requests run at once unless that is set or measured.
    - `sample` is a speech request that the server runs at start to measure its capacity. None means
      that nothing is measured.
    """

    model_id: str
    aliases: tuple[str, ...]
    pipelines: tuple[Pipeline, ...]
    voices: tuple[VoiceSpec, ...]
    speakable: Callable[[str], bool]
    speech_settings: Callable[[Mapping[str, Any], Mapping[str, Any]], object]
    prompts: ChatPrompts | None = None
    find_voices: Callable[[], tuple[VoiceSpec, ...]] | None = None
    uploads: VoiceUploads | None = None
    count_tokens: Callable[[str], int] | None = None
    sample: Request | None = None
    max_running: int = DEFAULT_MAX_RUNNING

    def __post_init__(self) -> None:
        """Raise ValueError for pipelines that the server could not choose from."""
        ways = [(each.inputs, each.outputs) for each in self.pipelines]
        if len(set(ways)) < len(ways):
            raise ValueError(f"{self.model_id} has two pipelines of the same inputs and outputs")
        if self.prompts is not None and (Medium.TEXT, TEXT_ONLY) not in ways:
            raise ValueError(f"{self.model_id} has prompts, but no pipeline from text to text")
