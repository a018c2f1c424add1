"""Speaks a text into a WAV file, through the same stages as the server, without the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openapi.speech import SpeechRequest
from server.audio import BYTES_PER_S, pcm, wav_header
from server.outputs import Outputs
from server.speech import plan_speech
from stages.messages import AudioChunk

if TYPE_CHECKING:
    from pathlib import Path

    from server.service import Service
    from server.speech import SpeechPlan


async def say(service: Service, text: str, path: Path) -> float:
    """Write `text`, spoken, to `path`; the seconds of sound. Raises what refuses or fails it."""
    async with service.running():
        await service.settled.wait()
        if service.failure is not None:
            raise service.failure
        body = SpeechRequest(
            model=_speech_model(service),
            input=text,
            voice=service.settings.voice or "alloy",
            response_format="wav",
        )
        return await _write(plan_speech(service, body), path)


def _speech_model(service: Service) -> str:
    return next(served.pipeline.model_id for served in service.models if not served.chats)


async def _write(plan: SpeechPlan, path: Path) -> float:
    """The header says the true size, so it is written again at the end."""
    request, num_bytes = plan.request, 0
    stream = plan.served.runner.stream(
        request, last_stage=request.last_stage, deadline_s=plan.deadline_s
    )
    with path.open("wb") as file:
        file.write(wav_header(0))
        async with stream as source:
            async for data in Outputs(source):
                if isinstance(data, AudioChunk):
                    num_bytes += file.write(pcm(data))
        file.seek(0)
        file.write(wav_header(num_bytes))
    return num_bytes / BYTES_PER_S
