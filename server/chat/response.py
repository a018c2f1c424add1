"""The response that runs a planned chat: events or one JSON body."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.responses import Response

from server.chat.chunks import Chunks
from server.chat.reply import ReplyNames, new_names
from server.chat.stream import AudioScript, TextScript, chat_frames
from server.chat.tally import Tally
from server.chat.whole import whole_reply
from server.live import HeldSend, LiveResponse, never
from server.sse import send_events

if TYPE_CHECKING:
    from starlette.types import Scope

    from server.chat.plan import ChatPlan
    from server.outputs import Outputs
    from server.settings import Settings


def chat_response(plan: ChatPlan, settings: Settings, key: str = "") -> LiveResponse:
    """The response of a plan, on the account of `key`."""
    names = new_names(plan.served.pipeline.model_id)
    whole = partial(_send_whole, plan, names)
    reply = partial(_send_chunks, plan, names, settings.ping_s) if plan.stream else whole
    request = plan.request
    return LiveResponse(
        partial(
            plan.served.runner.stream,
            request,
            last_stage=request.last_stage,
            deadline_s=plan.deadline_s,
            key=key,
        ),
        reply,
        settings.stall_s,
    )


async def _send_whole(
    plan: ChatPlan, names: ReplyNames, outputs: Outputs, scope: Scope, send: HeldSend
) -> None:
    completion = await whole_reply(outputs, names, plan.audio_format)
    response = Response(completion.wire(), media_type="application/json")
    await response(scope, never, send)


async def _send_chunks(
    plan: ChatPlan,
    names: ReplyNames,
    ping_s: float,
    outputs: Outputs,
    scope: Scope,
    send: HeldSend,
) -> None:
    chunks = Chunks(names, include_usage=plan.include_usage)
    script = TextScript(chunks) if plan.audio_format is None else AudioScript(chunks, names)
    frames = chat_frames(outputs, script, chunks, Tally(), include_usage=plan.include_usage)
    await send_events(frames, scope, send, ping_s)
