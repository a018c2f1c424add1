"""The timeline of one request to an endpoint that generates: times, counts and how it ended.

`RequestLog` starts and finishes it, and the live response notes the outputs. The orchestrator's
records are part of it and may end after the response. Times are seconds of the event loop's clock.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from server.observe.player import BUFFER_S
from stages.contract.jitter_buffer import JitterBuffer
from stages.contract.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import BaseModel
    from starlette.requests import Request

    from orchestrator import OrchOutput, RequestRecord
    from server.serving.service import Service

TIMELINE = "nano_omni.timeline"  # key in the ASGI scope
ENDPOINTS = ("/v1/audio/speech", "/v1/chat/completions", "/v1/completions", "/v1/responses")
UNKNOWN = "unknown"  # the model, until the body was read and if it is not served here

Outcome = Literal[
    "ok", "invalid", "overloaded", "unavailable", "deadline", "left", "stalled", "failed"
]


def _clock() -> Callable[[], float]:
    """The event loop's clock. Kept, because finding the loop for each chunk is a system call."""
    return asyncio.get_running_loop().time


@dataclass(slots=True, eq=False)
class Timeline:
    """See above. `on_complete` is called once, when the response and all records have ended."""

    request_id: str
    endpoint: str
    on_complete: Callable[[Timeline], None]
    parent: Mapping[str, str] = field(default_factory=dict)  # W3C trace context, as sent
    received_at: float = field(init=False)
    received_unix_s: float = field(default_factory=time.time)
    model: str = UNKNOWN
    body: dict[str, Any] | None = None  # only with the setting `log_texts`
    queued_at: float | None = None  # when it asked for its places
    admitted_at: float | None = None
    first_byte_at: float | None = None
    first_token_at: float | None = None
    first_audio_at: float | None = None
    last_audio_at: float | None = None
    ended_at: float | None = None
    status: int | None = None
    outcome: Outcome | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    audio_s: float = 0.0
    records: Sequence[RequestRecord] = ()
    jitter_buffers: dict[int, JitterBuffer] = field(default_factory=dict)  # by streamed choice
    _tokens: dict[int, int] = field(default_factory=dict)
    _now_s: Callable[[], float] = field(default_factory=_clock)
    _is_reported: bool = False

    def __post_init__(self) -> None:
        """The request is received now."""
        self.received_at = self._now_s()

    @property
    def completion_tokens(self) -> int:
        """The number of tokens generated, over all choices."""
        return sum(self._tokens.values())

    @property
    def num_underruns(self) -> int:
        """How often the listeners' jitter buffers ran dry, over all choices."""
        return sum(buffer.num_underruns for buffer in self.jitter_buffers.values())

    @property
    def silent_s(self) -> float:
        """How long the listeners heard silence, over all choices."""
        return sum(buffer.silent_s for buffer in self.jitter_buffers.values())

    @property
    def is_complete(self) -> bool:
        """Whether the response and all records have ended, so that nothing changes any more."""
        return self.ended_at is not None and all(r.ended_at is not None for r in self.records)

    def note_admitted(self, records: Sequence[RequestRecord]) -> None:
        """The request got its places and runs; `records` has one entry for each choice."""
        self.admitted_at = self._now_s()
        self.records = records
        for record in records:
            record.on_end = self._report_if_complete

    def note_output(self, output: OrchOutput) -> None:
        """The stages emitted an output for the client."""
        data, role = output.data, output.role
        if data is None:  # the request failed
            return
        if output.is_end:
            if role == Role.THINKER:
                self._tokens[output.index] = data.completion_tokens
                self.prompt_tokens += data.prompt_tokens
                self.cached_tokens += data.cached_tokens
        elif role == Role.CODE2WAV:
            self.last_audio_at = self._now_s()
            if self.first_audio_at is None:
                self.first_audio_at = self.last_audio_at
            self.audio_s += len(data.samples) / data.rate_hz
        elif role == Role.THINKER:
            if self.first_token_at is None:
                self.first_token_at = self._now_s()
            self._tokens[output.index] = self._tokens.get(output.index, 0) + data.num_tokens

    def note_written(self, output: OrchOutput) -> None:
        """An output of a streamed response was written to the socket."""
        if output.role == Role.CODE2WAV and not output.is_end:
            if (buffer := self.jitter_buffers.get(output.index)) is None:
                buffer = self.jitter_buffers[output.index] = JitterBuffer(BUFFER_S)
            buffer.push(len(output.data.samples) / output.data.rate_hz, self._now_s())

    def finish(self, status: int, outcome: Outcome) -> None:
        """The response has ended."""
        self.status, self.outcome, self.ended_at = status, outcome, self._now_s()
        self._report_if_complete()

    def since_received_ms(self, at: float | None) -> float | None:
        """`at` as milliseconds since the request was received; None stays None."""
        return None if at is None else round(1000 * (at - self.received_at), 2)

    def _report_if_complete(self) -> None:
        """Report once: a record that ended before the response may still call this after it."""
        if self.is_complete and not self._is_reported:
            self._is_reported = True
            self.on_complete(self)


def note_body(request: Request, service: Service, body: BaseModel, model: str) -> None:
    """Note which model a request is for, and its body if `log_texts` is set.

    A model that is not served stays `UNKNOWN`: names sent by clients never become metric labels.
    """
    timeline: Timeline = request.scope[TIMELINE]
    if (served := service.find(model)) is not None:
        timeline.model = served.model_id
    if service.settings.log_texts:
        timeline.body = body.model_dump(mode="json", exclude_unset=True)
