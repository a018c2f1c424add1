"""One event of a streamed chat completion.

Clients that accumulate chunks join strings and overwrite everything else. So `role` is only in the
first chunk, `audio.id` and `audio.expires_at` are in exactly one chunk, and the usage comes last.
"""

from typing import Literal

from openapi.base import ResponseModel
from openapi.chat.logprobs import ChoiceLogprobs
from openapi.chat.response import FinishReason
from openapi.chat.usage import ChatUsage
from openapi.speaking_style import SpokenPiece, Unspoken


class AudioDelta(ResponseModel):
    """A part of the spoken reply. The base64 in `data` can be joined without decoding it.

    `captions`, if requested, say what is spoken in the audio since the previous chunk. `unspoken`
    comes once, before the end, if the voice could not speak some letters of the transcript.
    """

    id: str | None = None
    data: str | None = None
    transcript: str | None = None
    expires_at: int | None = None
    captions: list[SpokenPiece] | None = None
    unspoken: Unspoken | None = None


class Delta(ResponseModel):
    """The new part of the reply in this chunk."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    refusal: str | None = None
    audio: AudioDelta | None = None


class ChunkChoice(ResponseModel):
    """The only choice of a chunk. `logprobs` are those of the tokens in this chunk."""

    index: int
    delta: Delta
    logprobs: ChoiceLogprobs | None
    finish_reason: FinishReason | None


class ChatChunk(ResponseModel):
    """A chunk. If usage was requested, `usage` is null in all chunks but the last one."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    service_tier: Literal["default"]
    system_fingerprint: str
    choices: list[ChunkChoice]
    usage: ChatUsage | None = None
