"""A speech as server-sent events, which carry the bytes of the audio file."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from pybase64 import b64encode

from openapi.speech import SpeechDone, SpeechUsage
from server.encoding.threaded import ThreadedEncoder
from server.http.sse import DONE, event
from server.operations.shared.captions import captions_json
from server.operations.speech.file import SpeechFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from server.operations.speech.plan import SpeechPlan
    from server.serving.outputs import Outputs

# In base64 this is a line of 32 KiB: some clients read lines into a buffer of 64 KiB. It is a
# multiple of 2 and of 3, so each cut is between two samples and needs no padding.
MAX_DELTA_BYTES = 24 * 1024


async def speech_events(plan: SpeechPlan, outputs: Outputs) -> AsyncGenerator[bytes]:
    """The file in deltas, then the usage, then `[DONE]`. Raises the error of a failed request."""
    wants_captions = plan.captions
    with closing(ThreadedEncoder(plan.format)) as open_file:
        file = SpeechFile(outputs, open_file)
        async for part in file.parts():
            for start in range(0, len(part), MAX_DELTA_BYTES):
                audio = b64encode(part[start : start + MAX_DELTA_BYTES])
                tail = _captions_tail(file) if wants_captions else b'"}'
                yield event(b'{"type":"speech.audio.delta","audio":"', audio, tail)
        output_tokens = file.end.audio_tokens
        usage = SpeechUsage(
            input_tokens=plan.input_tokens,
            output_tokens=output_tokens,
            total_tokens=plan.input_tokens + output_tokens,
        )
        yield event(SpeechDone(type="speech.audio.done", usage=usage).wire())
        yield DONE


def _captions_tail(file: SpeechFile) -> bytes:
    return b'","captions":' + captions_json(file.take_captions()) + b"}"
