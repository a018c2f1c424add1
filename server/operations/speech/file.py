"""The audio file of a speech: encoded and sent while the stages make the sound."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse

from server.encoding.pcm import pcm
from server.encoding.threaded import ThreadedEncoder
from server.errors import RefusedError
from server.serving.voices import NOTHING_TO_SPEAK
from stages.contract.messages import AudioEnd
from stages.contract.roles import Role

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Scope

    from server.http.live_response import ClientSend
    from server.operations.speech.plan import SpeechPlan
    from server.serving.outputs import Outputs
    from stages.contract.messages import Caption

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def send_file(plan: SpeechPlan, outputs: Outputs, scope: Scope, send: ClientSend) -> None:
    """Send the file as the body of the response."""
    with closing(ThreadedEncoder(plan.format)) as file:
        parts = SpeechFile(outputs, file).parts()
        response = StreamingResponse(
            parts, headers=STREAM_HEADERS, media_type=plan.format.media_type
        )
        # Not its __call__, which watches for a disconnect: LiveResponse does so already.
        await response.stream_response(send)


class SpeechFile:
    """Encodes the outputs of a request. `end` is the last report, once all parts were read."""

    def __init__(self, outputs: Outputs, file: ThreadedEncoder) -> None:
        self._outputs = outputs
        self._file = file
        self.end = AudioEnd(0, 0)
        self._captions: list[Caption] = []

    async def parts(self) -> AsyncGenerator[bytes]:
        """The bytes of the file as they are made; no part is empty.

        The header comes with the first samples. Raises RefusedError if the speech has no samples.
        """
        async for output in self._outputs:
            if output.role != Role.CODE2WAV:
                continue
            if output.is_end:
                self.end = output.data
                continue
            self._captions += output.data.captions
            if part := await self._file.feed(pcm(output.data)):
                yield part
        if self.end.num_samples == 0:  # the voice cannot speak any of the text
            raise RefusedError(NOTHING_TO_SPEAK)
        if part := await self._file.flush():
            yield part

    def take_captions(self) -> list[Caption]:
        """The captions of the sound since the last call."""
        captions, self._captions = self._captions, []
        return captions
