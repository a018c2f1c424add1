"""A chat reply in one JSON body, sent when all choices are complete."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from pybase64 import b64encode

from openapi.chat.response import ChatCompletion, Choice, ReplyMessage, SpokenReply
from server.encoding.formats import whole_file
from server.encoding.pcm import pcm
from server.operations.shared.captions import merged_pieces
from server.operations.shared.ids import SYSTEM_FINGERPRINT
from server.operations.shared.logprobs import logprobs_of
from server.operations.shared.unspoken_letters import UnspokenLetters
from server.operations.shared.usage import UsageCounter
from stages.contract.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator import OrchOutput
    from server.operations.chat.plan import ChatPlan
    from server.operations.chat.reply_ids import ReplyIds
    from server.serving.outputs import Outputs
    from stages.contract.messages import Caption, TokenScore


@dataclass(slots=True)
class _CollectedChoice:
    """What the outputs of one choice add up to."""

    texts: list[str] = field(default_factory=list)
    scores: list[TokenScore] = field(default_factory=list)
    samples: bytearray = field(default_factory=bytearray)
    captions: list[Caption] = field(default_factory=list)

    def add(self, output: OrchOutput) -> None:
        if output.is_end:
            return
        if output.role == Role.THINKER:
            self.texts.append(output.data.text)
            self.scores += output.data.scores
        elif output.role == Role.CODE2WAV:
            self.samples += pcm(output.data)
            self.captions += output.data.captions


async def whole_chat(
    plan: ChatPlan, ids: ReplyIds, store: Callable[[int, str], None], outputs: Outputs
) -> ChatCompletion:
    """The body, once all outputs were read. Raises the error of a request that failed.

    `store` is called with the index and the transcript of each spoken choice.
    """
    collected = [_CollectedChoice() for _ in plan.requests]
    usage = UsageCounter(len(collected), num_per_prompt=len(collected))
    async for output in outputs:
        usage.add(output)
        collected[output.index].add(output)
    choices = []
    for index, choice in enumerate(collected):
        text = "".join(choice.texts)
        if plan.audio_format is None:
            message = _text_message(text)
        else:
            store(index, text)
            samples = bytes(choice.samples)
            file = await anyio.to_thread.run_sync(whole_file, samples, plan.audio_format)
            audio = SpokenReply(
                id=ids.audio_ids[index],
                data=b64encode(file).decode(),
                expires_at=ids.expires_at,
                transcript=text,
            )
            message = _audio_message(_with_extras(audio, choice, plan))
        choices.append(
            Choice(
                index=index,
                message=message,
                logprobs=logprobs_of(choice.scores) if choice.scores else None,
                finish_reason=usage.finish_reason(index),
            )
        )
    return _completion(choices, usage, ids)


def _text_message(text: str) -> ReplyMessage:
    return ReplyMessage(role="assistant", content=text, refusal=None, annotations=[])


def _audio_message(audio: SpokenReply) -> ReplyMessage:
    return ReplyMessage(role="assistant", content=None, refusal=None, audio=audio, annotations=[])


def _with_extras(audio: SpokenReply, choice: _CollectedChoice, plan: ChatPlan) -> SpokenReply:
    """`audio` with the fields that only some replies have: `captions` and `unspoken`."""
    if plan.captions:
        audio = audio.model_copy(update={"captions": merged_pieces(choice.captions)})
    unspoken = UnspokenLetters(plan.language)
    unspoken.add(audio.transcript)
    if unspoken.report is not None:
        audio = audio.model_copy(update={"unspoken": unspoken.report})
    return audio


def _completion(choices: list[Choice], usage: UsageCounter, ids: ReplyIds) -> ChatCompletion:
    return ChatCompletion(
        id=ids.completion_id,
        object="chat.completion",
        created=ids.created,
        model=ids.model,
        choices=choices,
        usage=usage.usage,
        service_tier="default",
        system_fingerprint=SYSTEM_FINGERPRINT,
    )
