"""What the plans of all operations have in common.

A plan is made from a checked request before anything starts. It is an immutable value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.config.settings import Settings
    from server.serving.served import ServedModel, ServedPipeline
    from stages.contract.messages import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the stages run for one HTTP request: `requests`, all admitted or none.

    `pipeline` is the one of the model's that fits the request. `stream` asks for events instead of
    a reply in one piece.
    """

    served: ServedModel
    pipeline: ServedPipeline
    requests: tuple[Request, ...]
    stream: bool
    deadline_s: float


def deadline_of(timeout_s: float | None, settings: Settings) -> float:
    """The deadline in seconds: the `timeout_s` of the request, limited by that of the server."""
    return min(timeout_s or settings.deadline_s, settings.deadline_s)
