"""The sound of a speech, sent as it comes: as a file, or as events that carry the same bytes."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from pybase64 import b64encode
from starlette.responses import StreamingResponse

from openapi.speech import SpeechDone, SpeechUsage
from server.encoding.pcm import pcm
from server.encoding.threaded import ThreadedEncoder
from server.errors import RefusedError
from server.http.live_response import ClientSend, LiveResponse
from server.http.sse import DONE, event, send_events
from server.operations.shared.captions import captions_json
from server.serving.voices import NOTHING_TO_SPEAK
from stages.contract.messages import AudioChunk, AudioEnd

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Scope

    from openapi.speech import SpeechRequest
    from server.config.settings import Settings
    from server.operations.speech.plan import SpeechPlan
    from server.serving.outputs import Outputs
    from stages.contract.messages import Caption

# A line of 32 KiB: some clients read lines into a buffer of 64. Whole samples, and no padding
# within base64, at every cut.
MAX_DELTA_BYTES = 24 * 1024
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def speech_response(
    plan: SpeechPlan, body: SpeechRequest, settings: Settings, key: str = ""
) -> LiveResponse:
    """The response that runs the plan, on the account of `key`."""
    if body.stream_format == "sse":
        reply = partial(_send_events, plan, settings.ping_s)
    else:
        reply = partial(_send_file, plan)
    return LiveResponse(
        plan.served.open((plan.request,), plan.deadline_s, key),
        reply,
        settings.stall_s,
    )


class SpeechFile:
    """The bytes of the file as they come; `end` is there when they are all out."""

    def __init__(self, outputs: Outputs, file: ThreadedEncoder) -> None:
        self._outputs = outputs
        self._file = file
        self.end = AudioEnd(0, 0)
        self._captions: list[Caption] = []

    def take_captions(self) -> list[Caption]:
        """What is heard in the sound that was made since the last call."""
        captions, self._captions = self._captions, []
        return captions

    async def pieces(self) -> AsyncGenerator[bytes]:
        """None is empty. The head goes with the first samples, or alone where there are none."""
        async for data in self._outputs:
            if isinstance(data, AudioChunk):
                self._captions += data.captions
                if piece := await self._file.feed(pcm(data)):
                    yield piece
            elif isinstance(data, AudioEnd):
                self.end = data
        if self.end.num_samples == 0:  # the voice has no sound for any of it
            raise RefusedError(NOTHING_TO_SPEAK)
        if piece := await self._file.flush():
            yield piece


async def speech_frames(
    file: SpeechFile, input_tokens: int, *, captions: bool = False
) -> AsyncGenerator[bytes]:
    """The file as events, then what it counts as, then `[DONE]`."""
    async for piece in file.pieces():
        for at in range(0, len(piece), MAX_DELTA_BYTES):
            audio = b64encode(piece[at : at + MAX_DELTA_BYTES])
            tail = _captions_of(file) if captions else b'"}'
            yield event(b'{"type":"speech.audio.delta","audio":"', audio, tail)
    tokens = file.end.audio_tokens
    usage = SpeechUsage(
        input_tokens=input_tokens, output_tokens=tokens, total_tokens=input_tokens + tokens
    )
    yield event(SpeechDone(type="speech.audio.done", usage=usage).wire())
    yield DONE


def _captions_of(file: SpeechFile) -> bytes:
    return b'","captions":' + captions_json(file.take_captions()) + b"}"


async def _send_file(plan: SpeechPlan, outputs: Outputs, scope: Scope, send: ClientSend) -> None:
    with closing(ThreadedEncoder(plan.format)) as file:
        pieces = SpeechFile(outputs, file).pieces()
        response = StreamingResponse(
            pieces, headers=STREAM_HEADERS, media_type=plan.format.media_type
        )
        await response.stream_response(send)  # without its watch on the client, who is watched


async def _send_events(
    plan: SpeechPlan, ping_s: float, outputs: Outputs, scope: Scope, send: ClientSend
) -> None:
    with closing(ThreadedEncoder(plan.format)) as file:
        frames = speech_frames(SpeechFile(outputs, file), plan.input_tokens, captions=plan.captions)
        await send_events(frames, scope, send, ping_s)
