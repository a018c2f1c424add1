"""The HTTP response that runs a planned response: events or one JSON body."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from server.http.json_response import wire_response
from server.http.live_response import ClientSend, LiveResponse, receive_nothing
from server.http.sse import send_events
from server.operations.responses.events import ResponseScript
from server.operations.responses.plan import StoredResponse
from stages.contract.pipeline import Message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Scope

    from openapi.responses.response import ResponseObject
    from server.config.settings import Settings
    from server.operations.responses.plan import ResponsePlan
    from server.operations.shared.expiring_store import ExpiringStore
    from server.serving.outputs import Outputs

LIFE_S = 3600


def response_response(
    plan: ResponsePlan, settings: Settings, stored: ExpiringStore[StoredResponse], key: str = ""
) -> LiveResponse:
    """The response of a plan, on the account of `key`. `stored` keeps what may be referred to."""
    whole = partial(_send_whole, plan, stored)
    reply = partial(_send_events, plan, stored, settings.ping_s) if plan.stream else whole
    return LiveResponse(
        plan.served.open((plan.request,), plan.deadline_s, key),
        reply,
        settings.stall_s,
    )


async def _send_whole(
    plan: ResponsePlan,
    stored: ExpiringStore[StoredResponse],
    outputs: Outputs,
    scope: Scope,
    send: ClientSend,
) -> None:
    script = ResponseScript(plan.begun)
    async for data in outputs:
        for _ in script.take(data):
            pass
    await wire_response(_finish(plan, script, stored))(scope, receive_nothing, send)


async def _send_events(
    plan: ResponsePlan,
    stored: ExpiringStore[StoredResponse],
    ping_s: float,
    outputs: Outputs,
    scope: Scope,
    send: ClientSend,
) -> None:
    script = ResponseScript(plan.begun)
    frames = _frames(plan, script, stored, outputs)
    await send_events(frames, scope, send, ping_s, script.failure)


async def _frames(
    plan: ResponsePlan,
    script: ResponseScript,
    stored: ExpiringStore[StoredResponse],
    outputs: Outputs,
) -> AsyncGenerator[bytes]:
    begun = False
    async for data in outputs:
        if not begun:
            for frame in script.first():
                yield frame
            begun = True
        for frame in script.take(data):
            yield frame
    for frame in script.last(_finish(plan, script, stored)):
        yield frame


def _finish(
    plan: ResponsePlan, script: ResponseScript, stored: ExpiringStore[StoredResponse]
) -> ResponseObject:
    """The finished response, kept before the client can refer to it."""
    response = script.finished()
    if response.store:
        turns = (*plan.turns, Message("assistant", script.text))
        num_chars = sum(len(turn.content) for turn in turns)
        expires_at = response.created_at + LIFE_S
        stored.put(response.id, StoredResponse(response, turns), num_chars, expires_at)
    return response
