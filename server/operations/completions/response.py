"""The response that runs planned completions: events or one JSON body."""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import Response

from openapi.completions.response import Completion, CompletionChoice
from server.http.live_response import ClientSend, LiveResponse, receive_nothing
from server.http.sse import event, send_events
from server.operations.chat.ids import FINGERPRINT
from server.operations.completions.logprobs import LogprobLists
from server.operations.shared.choices import choice_frames
from server.operations.shared.usage import Tally
from stages.contract.messages import TextChunk, TokenScore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Scope

    from openapi.chat.usage import ChatUsage
    from server.config.settings import Settings
    from server.operations.completions.plan import CompletionPlan
    from server.serving.outputs import Outputs


def completion_response(plan: CompletionPlan, settings: Settings, key: str = "") -> LiveResponse:
    """The response of a plan, on the account of `key`."""
    bare = Completion(
        id=f"cmpl-{secrets.token_hex(12)}",
        object="text_completion",
        created=int(time.time()),
        model=plan.served.pipeline.model_id,
        choices=[],
        system_fingerprint=FINGERPRINT,
    )
    whole = partial(_send_whole, plan, bare)
    reply = partial(_send_events, plan, bare, settings.ping_s) if plan.stream else whole
    return LiveResponse(
        plan.served.open(plan.requests, plan.deadline_s, key),
        reply,
        settings.stall_s,
    )


async def _send_whole(
    plan: CompletionPlan, bare: Completion, outputs: Outputs, scope: Scope, send: ClientSend
) -> None:
    tally = Tally(len(plan.requests), plan.per_prompt)
    texts = [[echo] for echo in plan.echoes]
    scores: list[list[TokenScore]] = [[] for _ in plan.echoes]
    async for output in outputs.of_group():
        tally.note(output)
        if isinstance(output.data, TextChunk):
            texts[output.index].append(output.data.text)
            scores[output.index] += output.data.scores
    choices = [
        CompletionChoice(
            text="".join(texts[i]),
            index=i,
            logprobs=LogprobLists().take(scores[i]),
            finish_reason=cast("Any", tally.finish_reason(i)),
        )
        for i in range(len(texts))
    ]
    body = bare.model_copy(update={"choices": choices, "usage": tally.usage})
    response = Response(body.wire(), media_type="application/json")
    await response(scope, receive_nothing, send)


async def _send_events(
    plan: CompletionPlan,
    bare: Completion,
    ping_s: float,
    outputs: Outputs,
    scope: Scope,
    send: ClientSend,
) -> None:
    tally = Tally(len(plan.requests), plan.per_prompt)
    scripts = [CompletionScript(plan, bare, index) for index in range(len(plan.requests))]
    usage_frame = partial(_usage_frame, bare, tally) if plan.include_usage else None
    await send_events(choice_frames(outputs, scripts, tally, usage_frame), scope, send, ping_s)


def _usage_frame(bare: Completion, tally: Tally) -> bytes:
    return event(bare.model_copy(update={"usage": tally.usage}).wire())


class CompletionScript:
    """One choice in a stream: its echo, its text as it is, and the reason of its end."""

    def __init__(self, plan: CompletionPlan, bare: Completion, index: int) -> None:
        self._echo = plan.echoes[index]
        self._bare = bare
        self._index = index
        self._usage: dict[str, ChatUsage | None] = {"usage": None} if plan.include_usage else {}
        self._logprobs = LogprobLists()

    def first(self) -> Iterator[bytes]:
        """The prompt, where it is to be repeated."""
        if self._echo:
            yield self._frame(TextChunk(self._echo))

    def take(self, data: Any) -> Iterator[bytes]:
        """Text with the scores of its tokens."""
        if isinstance(data, TextChunk) and (data.text or data.scores):
            yield self._frame(data)

    def last(self, finish_reason: str) -> Iterator[bytes]:
        """The end."""
        yield self._frame(TextChunk(""), finish_reason)

    def _frame(self, chunk: TextChunk, finish_reason: str | None = None) -> bytes:
        choice = CompletionChoice(
            text=chunk.text,
            index=self._index,
            logprobs=self._logprobs.take(chunk.scores),
            finish_reason=cast("Any", finish_reason),
        )
        return event(self._bare.model_copy(update={"choices": [choice], **self._usage}).wire())
