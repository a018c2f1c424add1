"""Speaks a text into a file, through the same stages as the server, without the server.

Captions go into a WebVTT file beside it, where one is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from openapi.speech import SpeechRequest
from server.audio import BYTES_PER_S, pcm
from server.captions import webvtt
from server.encoders import FORMATS, whole_file
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


async def say(
    service: Service, text: str, voice: str, path: Path, captions: Path | None = None
) -> float:
    """Write `text`, spoken, to `path`, in the format of its name; the seconds of sound.

    Raises ValueError for a name of no format, and what refuses or fails the request; nothing is
    written then.
    """
    form = path.suffix.removeprefix(".")
    if form not in FORMATS:
        raise ValueError(f"cannot write {path}: its name must end in .{', .'.join(FORMATS)}")
    async with service.running():
        await service.settled.wait()
        if service.failure is not None:
            raise service.failure
        body = SpeechRequest(
            model=_speech_model(service),
            input=text,
            voice=voice,
            response_format="wav",
            stream_format="sse",
            captions=captions is not None,
        )
        plan = plan_speech(service, body)
        sound, heard = await _hear(plan)
        await anyio.Path(path).write_bytes(whole_file(sound, form))
        if captions is not None:
            await anyio.Path(captions).write_text(webvtt(_said(plan), heard), encoding="utf-8")
        return len(sound) / BYTES_PER_S


def _speech_model(service: Service) -> str:
    return next(served.pipeline.model_id for served in service.models if not served.chats)


def _said(plan: SpeechPlan) -> Traced:
    """The text as it is spoken, without its markup."""
    (talker, _), (text,) = plan.request.params, plan.request.source
    assert isinstance(talker, TalkerParams)
    assert isinstance(text, TextChunk)
    return cleaned(text.text, talker.code_announcement) if talker.clean else Traced.of(text.text)


async def _hear(plan: SpeechPlan) -> tuple[bytes, list[Caption]]:
    """All samples, and what is heard when."""
    request, sound = plan.request, bytearray()
    heard: list[Caption] = []
    stream = plan.served.runner.stream(
        request, last_stage=request.last_stage, deadline_s=plan.deadline_s
    )
    async with stream as source:
        async for data in Outputs(source):
            if isinstance(data, AudioChunk):
                sound += pcm(data)
                heard += data.captions
    return bytes(sound), heard
