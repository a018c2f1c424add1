"""A chat completion in one JSON body, sent when everything is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from pybase64 import b64encode

from openapi.chat_response import ChatCompletion, Choice, ReplyMessage, SpokenReply
from server.audio import pcm
from server.chat.reply import FINGERPRINT
from server.chat.tally import Tally
from server.encoders import whole_file
from stages.messages import AudioChunk, TextChunk

if TYPE_CHECKING:
    from server.chat.reply import ReplyNames
    from server.outputs import Outputs


async def whole_reply(
    outputs: Outputs, names: ReplyNames, audio_format: str | None
) -> ChatCompletion:
    """Collect all outputs. Raises the request's error."""
    tally = Tally()
    text: list[str] = []
    sound = bytearray()
    async for data in outputs:
        tally.note(data)
        if isinstance(data, TextChunk):
            text.append(data.text)
        elif isinstance(data, AudioChunk):
            sound += pcm(data)
    if audio_format is None:
        message = _written("".join(text))
    else:
        file = await anyio.to_thread.run_sync(whole_file, bytes(sound), audio_format)
        message = _spoken("".join(text), file, names)
    return _completion(message, tally, names)


def _written(text: str) -> ReplyMessage:
    return ReplyMessage(role="assistant", content=text, refusal=None, annotations=[])


def _spoken(transcript: str, file: bytes, names: ReplyNames) -> ReplyMessage:
    audio = SpokenReply(
        id=names.audio_id,
        data=b64encode(file).decode(),
        expires_at=names.expires_at,
        transcript=transcript,
    )
    return ReplyMessage(role="assistant", content=None, refusal=None, audio=audio, annotations=[])


def _completion(message: ReplyMessage, tally: Tally, names: ReplyNames) -> ChatCompletion:
    choice = Choice(index=0, message=message, logprobs=None, finish_reason=tally.finish_reason)
    return ChatCompletion(
        id=names.completion_id,
        object="chat.completion",
        created=names.created,
        model=names.model,
        choices=[choice],
        usage=tally.usage,
        service_tier="default",
        system_fingerprint=FINGERPRINT,
    )
