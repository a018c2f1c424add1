"""The HTTP response that runs a planned chat: chunks, or one JSON body."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from server.operations.chat.events import chat_events
from server.operations.chat.reply_ids import new_reply_ids
from server.operations.chat.whole import whole_chat
from server.operations.shared.response import event_reply, json_reply, planned_response

if TYPE_CHECKING:
    from server.config.settings import Settings
    from server.http.live_response import LiveResponse
    from server.operations.chat.plan import ChatPlan
    from server.operations.shared.expiring_store import ExpiringStore


def chat_response(
    plan: ChatPlan, settings: Settings, transcripts: ExpiringStore[str], key: str = ""
) -> LiveResponse:
    """The response to a plan. `transcripts` stores the text of spoken choices by their audio id.

    `key` is the caller's API key.
    """
    ids = new_reply_ids(plan.served.model_id, len(plan.requests))

    def store(index: int, transcript: str) -> None:
        transcripts.put(ids.audio_ids[index], transcript, len(transcript), ids.expires_at)

    if plan.stream:
        reply = event_reply(partial(chat_events, plan, ids, store), settings.ping_s)
    else:
        reply = json_reply(partial(whole_chat, plan, ids, store))
    return planned_response(plan, reply, settings, key)
