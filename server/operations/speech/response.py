"""The HTTP response that runs a planned speech: events, or the audio file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from server.operations.shared.response import event_reply, planned_response
from server.operations.speech.events import speech_events
from server.operations.speech.file import send_file

if TYPE_CHECKING:
    from server.config.settings import Settings
    from server.http.live_response import LiveResponse
    from server.operations.shared.response import Reply
    from server.operations.speech.plan import SpeechPlan


def speech_response(plan: SpeechPlan, settings: Settings, key: str = "") -> LiveResponse:
    """The response to a plan. `key` is the caller's API key."""
    reply: Reply
    if plan.stream:
        reply = event_reply(partial(speech_events, plan), settings.ping_s)
    else:
        reply = partial(send_file, plan)
    return planned_response(plan, reply, settings, key)
