"""A chat request, checked, as what the stages run.

Everything that can be refused is refused here, before anything starts. What would change the
meaning of the answer and is not there is refused by name; what is harmless is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio

from openapi.problems import missing
from server.errors import RefusedError
from server.operations.chat.validation import check_options, check_reply_audio, turns_of
from server.operations.shared.seed import seed_of
from server.operations.shared.speech_options import speech_options
from server.operations.shared.text_options import (
    DEFAULT_TEMPERATURE,
    bias_of,
    check_places,
    check_stops,
    reply_limit,
    schema_of,
    seed_after,
    writer_of,
)
from stages.contract.messages import Request, Sampling, TalkerParams, ThinkerParams
from stages.contract.pipeline import chat_request

if TYPE_CHECKING:
    from openapi.chat.request import ChatRequest
    from server.config.settings import Settings
    from server.operations.shared.expiring_store import ExpiringStore
    from server.serving.served import ServedModel
    from server.serving.service import Service
    from stages.contract.pipeline import ChatPrompts, VoiceSpec


@dataclass(frozen=True, slots=True)
class ChatPlan:
    """Requests that nothing is wrong with, one for each choice. `audio_format` None: text only,
    else `language` is the voice's, and `captions` are wanted or not."""

    served: ServedModel
    requests: tuple[Request, ...]
    audio_format: str | None
    stream: bool
    include_usage: bool
    deadline_s: float
    language: str = ""
    captions: bool = False


async def plan_chat(
    service: Service, body: ChatRequest, transcripts: ExpiringStore[str]
) -> ChatPlan:
    """Check everything that can be checked. Raises RefusedError, UnavailableError."""
    served, prompts = writer_of(service, body.model, "v1/chat/completions")
    settings = service.settings
    check_options(body)
    num_choices = body.n or 1
    check_places(num_choices, "n", service.admission.max_running)
    seed = seed_of(body.seed)
    voice, speech = _speech(body, served, seed, settings)
    turns = turns_of(body.messages, transcripts)
    prompt = await anyio.to_thread.run_sync(prompts.tokenize, turns)
    asked = body.max_completion_tokens or body.max_tokens
    thinker = ThinkerParams(
        prompt,
        _sampling(body, seed, prompts),
        reply_limit(asked, len(prompt), prompts, "messages", settings.max_reply_tokens),
        check_stops(body.stop),
        (body.top_logprobs or 0) if body.logprobs else None,
        await _schema(body, prompts),
    )
    return ChatPlan(
        served,
        tuple(_choice(thinker, speech, i) for i in range(num_choices)),
        body.audio.format if body.audio is not None and speech is not None else None,
        bool(body.stream),
        body.wants_usage,
        min(body.timeout_s or settings.deadline_s, settings.deadline_s),
        voice.language if voice is not None else "",
        speech is not None and speech.captions,
    )


def _choice(thinker: ThinkerParams, speech: TalkerParams | None, index: int) -> Request:
    sampling = thinker.sampling
    sampling = replace(sampling, seed=seed_after(sampling.seed, index))
    if speech is not None:
        speech = replace(speech, seed=seed_after(speech.seed, index))
    return chat_request(replace(thinker, sampling=sampling), speech)


def _speech(
    body: ChatRequest, served: ServedModel, seed: int, settings: Settings
) -> tuple[VoiceSpec, TalkerParams] | tuple[None, None]:
    if not body.wants_audio:
        return None, None
    if body.audio is None:
        raise RefusedError(missing("audio"))
    check_reply_audio(body.audio, served, stream=bool(body.stream))
    voice = served.voices.resolve(body.audio.voice, "audio.voice")
    return voice, speech_options(voice, body.audio, settings, seed=seed, where="audio.")


def _sampling(body: ChatRequest, seed: int, prompts: ChatPrompts) -> Sampling:
    return Sampling(
        seed=seed,
        temperature=DEFAULT_TEMPERATURE if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        top_k=body.top_k or 0,
        frequency_penalty=body.frequency_penalty or 0.0,
        presence_penalty=body.presence_penalty or 0.0,
        bias=bias_of(body.logit_bias, prompts),
    )


async def _schema(body: ChatRequest, prompts: ChatPrompts) -> str | None:
    asked = body.response_format
    if asked is None:
        return None
    schema = None if asked.json_schema is None else asked.json_schema.schema_
    param = "response_format.json_schema"
    if asked.json_schema is not None:
        param += ".schema"
    return await schema_of(asked.type, schema, param, prompts)
