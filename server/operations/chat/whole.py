"""A chat completion in one JSON body, sent when everything is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from pybase64 import b64encode

from openapi.chat.response import ChatCompletion, Choice, ReplyMessage, SpokenReply
from server.encoding.formats import whole_file
from server.encoding.pcm import pcm
from server.operations.chat.ids import FINGERPRINT
from server.operations.chat.logprobs import logprobs_of
from server.operations.shared.captions import whole_captions
from server.operations.shared.unspoken import UnspokenLetters
from server.operations.shared.usage import Tally
from stages.contract.messages import AudioChunk, TextChunk

if TYPE_CHECKING:
    from collections.abc import Callable

    from openapi.chat.logprobs import ChoiceLogprobs
    from openapi.chat.response import FinishReason
    from server.operations.chat.ids import ReplyNames
    from server.operations.chat.plan import ChatPlan
    from server.serving.outputs import Outputs
    from stages.contract.messages import Caption, TokenScore


@dataclass(slots=True)
class _Gathered:
    """One choice."""

    text: list[str] = field(default_factory=list)
    scores: list[TokenScore] = field(default_factory=list)
    sound: bytearray = field(default_factory=bytearray)
    captions: list[Caption] = field(default_factory=list)

    def take(self, data: Any) -> None:
        if isinstance(data, TextChunk):
            self.text.append(data.text)
            self.scores += data.scores
        elif isinstance(data, AudioChunk):
            self.sound += pcm(data)
            self.captions += data.captions


async def whole_reply(
    outputs: Outputs, names: ReplyNames, plan: ChatPlan, keep: Callable[[int, str], None]
) -> ChatCompletion:
    """Collect all outputs. Raises the request's error. `keep` gets the transcript of each choice
    that is spoken."""
    gathered = [_Gathered() for _ in names.audio_ids]
    tally = Tally(len(gathered), per_prompt=len(gathered))
    async for output in outputs.of_group():
        tally.note(output)
        gathered[output.index].take(output.data)
    choices = []
    for index, one in enumerate(gathered):
        text = "".join(one.text)
        if plan.audio_format is None:
            message = _written(text)
        else:
            keep(index, text)
            file = await anyio.to_thread.run_sync(whole_file, bytes(one.sound), plan.audio_format)
            message = _spoken(_reply(text, file, names, index, one, plan))
        logprobs = logprobs_of(one.scores) if one.scores else None
        choices.append(_choice(index, message, tally.finish_reason(index), logprobs))
    return _completion(choices, tally, names)


def _written(text: str) -> ReplyMessage:
    return ReplyMessage(role="assistant", content=text, refusal=None, annotations=[])


def _reply(
    transcript: str, file: bytes, names: ReplyNames, index: int, one: _Gathered, plan: ChatPlan
) -> SpokenReply:
    unspoken = UnspokenLetters(plan.language)
    unspoken.note(transcript)
    audio = SpokenReply(
        id=names.audio_ids[index],
        data=b64encode(file).decode(),
        expires_at=names.expires_at,
        transcript=transcript,
    )
    if plan.captions:
        audio = audio.model_copy(update={"captions": whole_captions(one.captions)})
    if unspoken.report is not None:
        audio = audio.model_copy(update={"unspoken": unspoken.report})
    return audio


def _spoken(audio: SpokenReply) -> ReplyMessage:
    return ReplyMessage(role="assistant", content=None, refusal=None, audio=audio, annotations=[])


def _choice(
    index: int, message: ReplyMessage, reason: FinishReason, logprobs: ChoiceLogprobs | None
) -> Choice:
    return Choice(index=index, message=message, logprobs=logprobs, finish_reason=reason)


def _completion(choices: list[Choice], tally: Tally, names: ReplyNames) -> ChatCompletion:
    return ChatCompletion(
        id=names.completion_id,
        object="chat.completion",
        created=names.created,
        model=names.model,
        choices=choices,
        usage=tally.usage,
        service_tier="default",
        system_fingerprint=FINGERPRINT,
    )
