"""Checks a chat request and turns it into what the stages run.

Everything that can be refused is refused here, before anything starts. A parameter that this
server cannot honour is refused if it would change the answer, and ignored if it would not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio

from openapi.problems import missing
from server.errors import RefusedError
from server.operations.chat.validation import check_options, check_reply_audio, turns_of
from server.operations.shared.plan import Plan, deadline_of
from server.operations.shared.seed import choice_seed
from server.operations.shared.speech_options import speech_options
from server.operations.shared.text_options import (
    chat_pipeline_of,
    check_num_choices,
    reply_limit,
    sampling_with_penalties,
    schema_of,
    stop_strings,
    text_model_of,
    wants_usage,
)
from stages.contract.messages import ChatPrompt, Request, TalkerParams, ThinkerParams
from stages.contract.pipeline import TEXT_AND_AUDIO, TEXT_ONLY, chat_request

if TYPE_CHECKING:
    from openapi.chat.request import ChatRequest
    from server.config.settings import Settings
    from server.operations.shared.expiring_store import ExpiringStore
    from server.serving.served import ServedModel
    from server.serving.service import Service
    from stages.contract.model import ChatPrompts, VoiceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPlan(Plan):
    """A checked chat, with one request for each choice.

    `audio_format` is None if the reply is text only. Otherwise `language` is that of the voice.
    """

    include_usage: bool
    audio_format: str | None
    language: str = ""
    captions: bool = False


async def plan_chat(
    service: Service, body: ChatRequest, transcripts: ExpiringStore[str]
) -> ChatPlan:
    """Check a request and plan it. Raises RefusedError, UnavailableError.

    `transcripts` has the text of earlier spoken replies by their audio id.
    """
    served, prompts = text_model_of(service, body.model, "v1/chat/completions")
    settings = service.settings
    check_options(body)
    include_usage = wants_usage(body)
    num_choices = body.n or 1
    check_num_choices(num_choices, "n", service.admission.max_running)
    sampling = sampling_with_penalties(body, prompts)
    voice, talker = _speech(body, served, sampling.seed, settings)
    outputs = TEXT_ONLY if talker is None else TEXT_AND_AUDIO
    prompt = ChatPrompt(turns_of(body.messages, transcripts))
    tokens = await anyio.to_thread.run_sync(prompts.tokenize, prompt)
    max_tokens = body.max_completion_tokens or body.max_tokens
    thinker = ThinkerParams(
        prompt,
        sampling,
        reply_limit(max_tokens, len(tokens), prompts, "messages", settings.max_reply_tokens),
        stop_strings(body.stop),
        (body.top_logprobs or 0) if body.logprobs else None,
        await _schema(body, prompts),
    )
    return ChatPlan(
        served=served,
        pipeline=chat_pipeline_of(served, outputs),
        requests=tuple(_choice(thinker, talker, i) for i in range(num_choices)),
        stream=bool(body.stream),
        deadline_s=deadline_of(body.timeout_s, settings),
        include_usage=include_usage,
        audio_format=body.audio.format if body.audio is not None and talker is not None else None,
        language=voice.language if voice is not None else "",
        captions=talker is not None and talker.captions,
    )


def _choice(thinker: ThinkerParams, talker: TalkerParams | None, index: int) -> Request:
    sampling = thinker.sampling
    sampling = replace(sampling, seed=choice_seed(sampling.seed, index))
    if talker is not None:
        talker = replace(talker, seed=choice_seed(talker.seed, index))
    return chat_request(replace(thinker, sampling=sampling), talker)


def _speech(
    body: ChatRequest, served: ServedModel, seed: int, settings: Settings
) -> tuple[VoiceSpec, TalkerParams] | tuple[None, None]:
    if not body.wants_audio:
        return None, None
    if body.audio is None:
        raise RefusedError(missing("audio"))
    check_reply_audio(body.audio, served, stream=bool(body.stream))
    voice = served.voices.resolve(body.audio.voice, "audio.voice")
    return voice, speech_options(
        voice, body.audio, settings, served.model, seed=seed, param_prefix="audio."
    )


async def _schema(body: ChatRequest, prompts: ChatPrompts) -> str | None:
    response_format = body.response_format
    if response_format is None:
        return None
    if response_format.json_schema is None:
        schema, param = None, "response_format.json_schema"
    else:
        schema, param = response_format.json_schema.schema_, "response_format.json_schema.schema"
    return await schema_of(response_format.type, schema, param, prompts)
