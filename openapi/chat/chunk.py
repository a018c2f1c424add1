"""One event of a streamed chat completion.

Clients join strings and overwrite the rest, so: `role` is in the first chunk only, `audio.id` and
`audio.expires_at` are in exactly one chunk each, and the usage chunk is the last.
"""

from typing import Literal

from openapi.base import ResponseModel
from openapi.chat.logprobs import ChoiceLogprobs
from openapi.chat.response import FinishReason
from openapi.chat.usage import ChatUsage
from openapi.speaking_style import SpokenPiece, Unspoken


class AudioDelta(ResponseModel):
    """A piece of the spoken reply. Pieces of `data` can be joined in base64 as they are.

    `captions`, where they are wanted: what is heard in the sound since the chunk before. `unspoken`
    comes once, before the end, if the voice could not speak some of the transcript.
    """

    id: str | None = None
    data: str | None = None
    transcript: str | None = None
    expires_at: int | None = None
    captions: list[SpokenPiece] | None = None
    unspoken: Unspoken | None = None


class Delta(ResponseModel):
    """What is new in this chunk."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    refusal: str | None = None
    audio: AudioDelta | None = None


class ChunkChoice(ResponseModel):
    """The one choice of a chunk. `logprobs` are those of the tokens of its text."""

    index: int
    delta: Delta
    logprobs: ChoiceLogprobs | None
    finish_reason: FinishReason | None


class ChatChunk(ResponseModel):
    """A chunk. `usage` is null in all but the last where it was asked for, else left out."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    service_tier: Literal["default"]
    system_fingerprint: str
    choices: list[ChunkChoice]
    usage: ChatUsage | None = None
