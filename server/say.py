"""Speaks a text into a WAV file, through the same stages as the server, without the server.

Captions go into a WebVTT file beside it, where one is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from openapi.speech import SpeechRequest
from server.audio import BYTES_PER_S, pcm, wav_header
from server.captions import webvtt
from server.outputs import Outputs
from server.speech import plan_speech
from stages.messages import AudioChunk, TalkerParams, TextChunk
from stages.talker.text.markup import cleaned
from stages.talker.text.traced import Traced

if TYPE_CHECKING:
    from pathlib import Path

    from server.service import Service
    from server.speech import SpeechPlan
    from stages.messages import Caption


async def say(service: Service, text: str, path: Path, captions: Path | None = None) -> float:
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
            stream_format="sse",
            captions=captions is not None,
        )
        plan = plan_speech(service, body)
        seconds, heard = await _write(plan, path)
        if captions is not None:
            await anyio.Path(captions).write_text(webvtt(_said(plan), heard), encoding="utf-8")
        return seconds


def _speech_model(service: Service) -> str:
    return next(served.pipeline.model_id for served in service.models if not served.chats)


def _said(plan: SpeechPlan) -> Traced:
    """The text as it is spoken, without its markup."""
    (talker, _), (text,) = plan.request.params, plan.request.source
    assert isinstance(talker, TalkerParams)
    assert isinstance(text, TextChunk)
    return cleaned(text.text, talker.code_announcement) if talker.clean else Traced.of(text.text)


async def _write(plan: SpeechPlan, path: Path) -> tuple[float, list[Caption]]:
    """The header says the true size, so it is written again at the end."""
    request, num_bytes = plan.request, 0
    heard: list[Caption] = []
    stream = plan.served.runner.stream(
        request, last_stage=request.last_stage, deadline_s=plan.deadline_s
    )
    with path.open("wb") as file:
        file.write(wav_header(0))
        async with stream as source:
            async for data in Outputs(source):
                if isinstance(data, AudioChunk):
                    num_bytes += file.write(pcm(data))
                    heard += data.captions
        file.seek(0)
        file.write(wav_header(num_bytes))
    return num_bytes / BYTES_PER_S, heard
