"""A speech request: checked, turned into what the stages run, and its sound sent as it comes.

The events of `stream_format: "sse"` carry the same bytes as the plain file.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pybase64 import b64encode
from starlette.responses import StreamingResponse

from openapi.problems import Problem, too_long, unsupported
from openapi.speech import SpeechDone, SpeechRequest, SpeechUsage
from server.audio import STREAM_FORMATS, StreamFormat, pcm
from server.errors import RefusedError
from server.live import HeldSend, LiveResponse, never
from server.sse import DONE, event, send_events
from server.voices import check_language
from stages.messages import AudioChunk, AudioEnd, Request
from stages.pipelines.pipeline import SpeechOptions, speech_request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Scope

    from server.outputs import Outputs
    from server.service import Served, Service
    from server.settings import Settings

SEED_MASK = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SpeechPlan:
    """A request that nothing is wrong with."""

    served: Served
    request: Request
    format: StreamFormat
    deadline_s: float


def plan_speech(service: Service, body: SpeechRequest) -> SpeechPlan:
    """Check everything that can be checked. Raises RefusedError, UnavailableError."""
    served = service.model(body.model)
    if served.chats:
        raise RefusedError(_no_speech_model(body.model))
    voice = served.voices.resolve(body.voice, "voice")
    check_language(voice, body.language)
    _check_input(body.input, service.settings.max_input_chars, served)
    options = SpeechOptions(
        voice=voice.name,
        seed=seed_of(body.seed),
        speed=1.0 if body.speed is None else body.speed,
        noise_scale=body.noise_scale,
        noise_w=body.noise_w,
    )
    deadline_s = min(body.timeout_s or service.settings.deadline_s, service.settings.deadline_s)
    return SpeechPlan(
        served, speech_request(body.input, options), _format_of(body.response_format), deadline_s
    )


def seed_of(asked: int | None) -> int:
    """The seed asked for, as the 63 bits that every generator takes, or a new one."""
    return secrets.randbits(63) if asked is None else asked & SEED_MASK


def speech_response(plan: SpeechPlan, body: SpeechRequest, settings: Settings) -> LiveResponse:
    """The response that runs the plan."""
    if body.stream_format == "sse":
        reply = partial(_send_speech_events, plan, len(body.input), settings.ping_s)
    else:
        reply = partial(_send_file, plan)
    request = plan.request
    return LiveResponse(
        partial(
            plan.served.runner.stream,
            request,
            last_stage=request.last_stage,
            deadline_s=plan.deadline_s,
        ),
        reply,
        settings.stall_s,
    )


class SpeechFile:
    """The bytes of the file as they come; `end` is there when they are all out."""

    def __init__(self, outputs: Outputs, head: bytes) -> None:
        self._outputs = outputs
        self._head = head
        self.end = AudioEnd(0, 0)

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The head goes with the first samples, or alone where there are none."""
        head = self._head
        async for data in self._outputs:
            if isinstance(data, AudioChunk):
                yield head + pcm(data)
                head = b""
            elif isinstance(data, AudioEnd):
                self.end = data
        if head:
            yield head


async def speech_frames(file: SpeechFile, num_chars: int) -> AsyncGenerator[bytes]:
    """The file as events, then what it counts as, then `[DONE]`."""
    async for piece in file.pieces():
        yield event(b'{"type":"speech.audio.delta","audio":"' + b64encode(piece) + b'"}')
    tokens = file.end.audio_tokens
    usage = SpeechUsage(
        input_tokens=num_chars, output_tokens=tokens, total_tokens=num_chars + tokens
    )
    yield event(SpeechDone(type="speech.audio.done", usage=usage).wire())
    yield DONE


async def _send_file(plan: SpeechPlan, outputs: Outputs, scope: Scope, send: HeldSend) -> None:
    file = SpeechFile(outputs, plan.format.head)
    response = StreamingResponse(file.pieces(), media_type=plan.format.media_type)
    await response(scope, never, send)


async def _send_speech_events(
    plan: SpeechPlan, num_chars: int, ping_s: float, outputs: Outputs, scope: Scope, send: HeldSend
) -> None:
    frames = speech_frames(SpeechFile(outputs, plan.format.head), num_chars)
    await send_events(frames, scope, send, ping_s)


def _check_input(text: str, max_chars: int, served: Served) -> None:
    if len(text) > max_chars:
        raise RefusedError(too_long("input", max_chars, len(text)))
    if not served.pipeline.speakable(text):
        raise RefusedError(
            Problem("Invalid 'input': there is nothing to speak in it.", "input", "invalid_value")
        )


def _format_of(asked: str | None) -> StreamFormat:
    name = asked or "mp3"
    if name not in STREAM_FORMATS:
        message = (
            f"Unsupported value: 'response_format' '{name}' is not available yet. "
            "Pass 'wav' or 'pcm'."
        )
        raise RefusedError(unsupported("response_format", message))
    return STREAM_FORMATS[name]


def _no_speech_model(name: str) -> Problem:
    message = f"The model '{name}' answers chats; it is not supported in v1/audio/speech."
    return Problem(message, "model", "model_not_supported")
