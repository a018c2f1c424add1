"""The HTTP response that runs a planned response: events, or one JSON body."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from server.operations.responses.events import ResponseEvents, response_events
from server.operations.responses.whole import whole_response
from server.operations.shared.response import event_reply, json_reply, planned_response

if TYPE_CHECKING:
    from server.config.settings import Settings
    from server.http.live_response import LiveResponse
    from server.operations.responses.plan import ResponsePlan
    from server.operations.responses.stored import StoredResponse
    from server.operations.shared.expiring_store import ExpiringStore


def response_response(
    plan: ResponsePlan, settings: Settings, stored: ExpiringStore[StoredResponse], key: str = ""
) -> LiveResponse:
    """The HTTP response to a plan. `stored` gets the finished response if the request allows it.

    `key` is the caller's API key.
    """
    if plan.stream:
        events = ResponseEvents(plan)
        make_events = partial(response_events, events, stored)
        reply = event_reply(make_events, settings.ping_s, events.failure)
    else:
        reply = json_reply(partial(whole_response, plan, stored))
    return planned_response(plan, reply, settings, key)
