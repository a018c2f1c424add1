"""Speaks a text with the stages of the server, but without HTTP.

Samples are passed on as they are generated. Captions are complete at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openapi.speech import SpeechRequest
from server.encoding.pcm import BYTES_PER_S, pcm
from server.operations.shared.captions import webvtt
from server.operations.speech.plan import plan_speech
from server.serving.outputs import Outputs
from stages.contract.messages import TalkerParams, TextChunk
from stages.contract.roles import Role
from stages.text.markup import cleaned
from stages.text.traced import Traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from server.operations.speech.plan import SpeechPlan
    from server.serving.service import Service
    from stages.contract.messages import Caption


@dataclass(slots=True)
class LocalSpeech:
    """16-bit samples at 24 kHz, and captions that say when each word of `text` is spoken."""

    text: Traced
    pcm: bytearray = field(default_factory=bytearray)
    captions: list[Caption] = field(default_factory=list)

    @property
    def audio_s(self) -> float:
        """The length of the audio in seconds."""
        return len(self.pcm) / BYTES_PER_S

    def webvtt(self) -> str:
        """The captions as the text of a WebVTT file."""
        return webvtt(self.text, self.captions)


async def speak_locally(
    service: Service,
    text: str,
    voice: str,
    *,
    captions: bool = False,
    on_samples: Callable[[bytes], object] = lambda _: None,
) -> LocalSpeech:
    """Start the service, speak `text` and stop the service.

    `on_samples` is called with the samples of each chunk as it arrives. Raises the error that kept
    the models from starting, or the one that refused or failed the request.
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
        request, speech = plan.request, LocalSpeech(_spoken_text(plan))
        stream = plan.pipeline.runner.stream(request, deadline_s=plan.deadline_s)
        async with stream as source:
            async for output in Outputs(source):
                if output.role == Role.CODE2WAV and not output.is_end:
                    speech.pcm += (samples := pcm(output.data))
                    speech.captions += output.data.captions
                    on_samples(samples)
        return speech


def _speech_model(service: Service) -> str:
    return next(served.model_id for served in service.models if served.speech is not None)


def _spoken_text(plan: SpeechPlan) -> Traced:
    """The text that is spoken: the input without its markup."""
    (talker, _), (text,) = plan.request.params, plan.request.source
    assert isinstance(talker, TalkerParams)
    assert isinstance(text, TextChunk)
    return cleaned(text.text, talker.code_announcement) if talker.clean else Traced.of(text.text)
