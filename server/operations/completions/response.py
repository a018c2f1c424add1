"""The HTTP response that runs planned completions: events, or one JSON body."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from openapi.completions.response import Completion
from server.operations.completions.events import completion_events
from server.operations.completions.whole import whole_completion
from server.operations.shared.ids import SYSTEM_FINGERPRINT, new_id
from server.operations.shared.response import event_reply, json_reply, planned_response

if TYPE_CHECKING:
    from server.config.settings import Settings
    from server.http.live_response import LiveResponse
    from server.operations.completions.plan import CompletionPlan


def completion_response(plan: CompletionPlan, settings: Settings, key: str = "") -> LiveResponse:
    """The response to a plan. `key` is the caller's API key."""
    empty = Completion(
        id=new_id("cmpl-"),
        object="text_completion",
        created=int(time.time()),
        model=plan.served.model_id,
        choices=[],
        system_fingerprint=SYSTEM_FINGERPRINT,
    )
    if plan.stream:
        reply = event_reply(partial(completion_events, plan, empty), settings.ping_s)
    else:
        reply = json_reply(partial(whole_completion, plan, empty))
    return planned_response(plan, reply, settings, key)
