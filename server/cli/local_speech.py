"""Speaks a text through the same stages as the server, without the server.

Sound goes out as it is made; what is heard when is known at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openapi.speech import SpeechRequest
from server.encoding.pcm import BYTES_PER_S, pcm
from server.operations.shared.captions import webvtt
from server.operations.speech.plan import plan_speech
from server.serving.outputs import Outputs
from stages.contract.messages import AudioChunk, TalkerParams, TextChunk
from stages.text.markup import cleaned
from stages.text.traced import Traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from server.operations.speech.plan import SpeechPlan
    from server.serving.service import Service
    from stages.contract.messages import Caption


@dataclass(slots=True)
class Said:
    """16-bit samples at 24 kHz, and when which words of `text` are heard in them."""

    text: Traced
    sound: bytearray = field(default_factory=bytearray)
    heard: list[Caption] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.sound) / BYTES_PER_S

    def webvtt(self) -> str:
        """Its captions as a file."""
        return webvtt(self.text, self.heard)


async def say(
    service: Service,
    text: str,
    voice: str,
    *,
    captions: bool = False,
    hear: Callable[[bytes], object] = lambda _: None,
) -> Said:
    """Speak `text`; `hear` gets the samples as they are made.

    Raises what keeps the models from starting, and what refuses or fails the request.
    """
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
            captions=captions,
        )
        plan = plan_speech(service, body)
        request, said = plan.request, Said(_spoken(plan))
        stream = plan.served.runner.stream(
            request, last_stage=request.last_stage, deadline_s=plan.deadline_s
        )
        async with stream as source:
            async for data in Outputs(source):
                if isinstance(data, AudioChunk):
                    said.sound += (samples := pcm(data))
                    said.heard += data.captions
                    hear(samples)
        return said


def _speech_model(service: Service) -> str:
    return next(served.pipeline.model_id for served in service.models if not served.chats)


def _spoken(plan: SpeechPlan) -> Traced:
    """The text as it is spoken, without its markup."""
    (talker, _), (text,) = plan.request.params, plan.request.source
    assert isinstance(talker, TalkerParams)
    assert isinstance(text, TextChunk)
    return cleaned(text.text, talker.code_announcement) if talker.clean else Traced.of(text.text)
