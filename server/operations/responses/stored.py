"""Stored responses: clients can retrieve them, and continue from them, by their id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from server.operations.shared.ids import STORED_S

if TYPE_CHECKING:
    from openapi.responses.response import ResponseObject
    from server.operations.shared.expiring_store import ExpiringStore
    from stages.contract.messages import Message


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response, and the turns of its conversation. The last turn is the response's text."""

    response: ResponseObject
    turns: tuple[Message, ...]


def store_response(
    stored: ExpiringStore[StoredResponse], response: ResponseObject, turns: tuple[Message, ...]
) -> None:
    """Store a finished response under its id."""
    num_chars = sum(len(turn.content) for turn in turns)
    expires_at = response.created_at + STORED_S
    stored.put(response.id, StoredResponse(response, turns), num_chars, expires_at)
