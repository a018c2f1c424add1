"""The response that runs a planned chat: events or one JSON body."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.responses import Response

from server.http.live_response import ClientSend, LiveResponse, receive_nothing
from server.http.sse import send_events
from server.operations.chat.chunks import Chunks, usage_chunk
from server.operations.chat.ids import ReplyNames, new_names
from server.operations.chat.stream import AudioScript, TextScript
from server.operations.chat.whole import whole_reply
from server.operations.shared.choices import Script, choice_frames
from server.operations.shared.usage import Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope

    from server.config.settings import Settings
    from server.operations.chat.plan import ChatPlan
    from server.operations.shared.expiring_store import ExpiringStore
    from server.serving.outputs import Outputs

    Keep = Callable[[int, str], None]


def chat_response(
    plan: ChatPlan, settings: Settings, transcripts: ExpiringStore[str], key: str = ""
) -> LiveResponse:
    """The response of a plan, on the account of `key`. `transcripts` keeps what was spoken, by the
    audio's id."""
    names = new_names(plan.served.pipeline.model_id, len(plan.requests))
    keep = partial(_keep, transcripts, names)
    whole = partial(_send_whole, plan, names, keep)
    reply = partial(_send_chunks, plan, names, keep, settings.ping_s) if plan.stream else whole
    return LiveResponse(
        plan.served.open(plan.requests, plan.deadline_s, key),
        reply,
        settings.stall_s,
    )


def _keep(transcripts: ExpiringStore[str], names: ReplyNames, index: int, text: str) -> None:
    transcripts.put(names.audio_ids[index], text, len(text), names.expires_at)


async def _send_whole(
    plan: ChatPlan, names: ReplyNames, keep: Keep, outputs: Outputs, scope: Scope, send: ClientSend
) -> None:
    completion = await whole_reply(outputs, names, plan, keep)
    response = Response(completion.wire(), media_type="application/json")
    await response(scope, receive_nothing, send)


async def _send_chunks(
    plan: ChatPlan,
    names: ReplyNames,
    keep: Keep,
    ping_s: float,
    outputs: Outputs,
    scope: Scope,
    send: ClientSend,
) -> None:
    scripts = [_script(plan, names, keep, index) for index in range(len(plan.requests))]
    tally = Tally(len(scripts), per_prompt=len(scripts))
    usage_frame = partial(_usage_frame, names, tally) if plan.include_usage else None
    await send_events(choice_frames(outputs, scripts, tally, usage_frame), scope, send, ping_s)


def _script(plan: ChatPlan, names: ReplyNames, keep: Keep, index: int) -> Script:
    chunks = Chunks(names, index, include_usage=plan.include_usage)
    if plan.audio_format is None:
        return TextScript(chunks)
    return AudioScript(
        chunks,
        names.audio_ids[index],
        names.expires_at,
        partial(keep, index),
        plan.language,
        captions=plan.captions,
    )


def _usage_frame(names: ReplyNames, tally: Tally) -> bytes:
    return usage_chunk(names, tally.usage)
