"""Runs a plan and sends its reply: one JSON body, or server-sent events.

Each operation's `response.py` makes a reply and hands it to `planned_response`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from server.http.json_response import wire_response
from server.http.live_response import ClientSend, LiveResponse, receive_nothing
from server.http.sse import send_events
from server.serving.outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Scope

    from openapi.base import ResponseModel
    from openapi.errors import ErrorEnvelope
    from server.config.settings import Settings
    from server.operations.shared.plan import Plan

Reply = Callable[[Outputs, "Scope", ClientSend], Awaitable[None]]


def planned_response(plan: Plan, reply: Reply, settings: Settings, key: str) -> LiveResponse:
    """The HTTP response that runs the plan and lets `reply` send the outputs.

    `key` is the caller's API key. Admission shares the waiting places between keys.
    """
    open_stream = plan.pipeline.open(plan.requests, plan.deadline_s, key)
    return LiveResponse(open_stream, reply, settings.stall_s)


def json_reply(make_body: Callable[[Outputs], Awaitable[ResponseModel]]) -> Reply:
    """A reply in one JSON body. `make_body` reads all outputs and returns it."""

    async def send_body(outputs: Outputs, scope: Scope, send: ClientSend) -> None:
        body = await make_body(outputs)
        await wire_response(body)(scope, receive_nothing, send)

    return send_body


def event_reply(
    make_events: Callable[[Outputs], AsyncGenerator[bytes]],
    ping_s: float,
    failure: Callable[[ErrorEnvelope], bytes] | None = None,
) -> Reply:
    """A reply in events. `make_events` reads the outputs and yields framed events.

    A comment is sent every `ping_s` seconds. `failure` frames the last event of a
    stream that fails; by default it is the error envelope.
    """

    async def send_all(outputs: Outputs, scope: Scope, send: ClientSend) -> None:
        events = make_events(outputs)
        if failure is None:
            await send_events(events, scope, send, ping_s)
        else:
            await send_events(events, scope, send, ping_s, failure)

    return send_all
