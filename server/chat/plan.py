"""A chat request, checked, as what the stages run.

Everything that can be refused is refused here, before anything starts. What would change the
meaning of the answer and is not there yet is refused by name; what is harmless is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from openapi.problems import Problem, missing
from server.chat.refusals import check_options, check_reply_audio, turns_of
from server.errors import RefusedError
from server.speech import seed_of
from stages.messages import Request, Sampling, ThinkerParams
from stages.pipelines.pipeline import SpeechOptions, chat_request

if TYPE_CHECKING:
    from openapi.chat_request import ChatRequest
    from server.service import Served, Service
    from stages.pipelines.pipeline import ChatPrompts

DEFAULT_TEMPERATURE = 0.2  # a small model; hotter, it rambles


@dataclass(frozen=True, slots=True)
class ChatPlan:
    """A request that nothing is wrong with. `audio_format` None: a reply in text only."""

    served: Served
    request: Request
    audio_format: str | None
    stream: bool
    include_usage: bool
    deadline_s: float


async def plan_chat(service: Service, body: ChatRequest) -> ChatPlan:
    """Check everything that can be checked. Raises RefusedError, UnavailableError."""
    served = service.model(body.model)
    prompts = served.pipeline.prompts
    if prompts is None:
        raise RefusedError(_no_chat_model(body.model))
    check_options(body)
    seed = seed_of(body.seed)
    speech = _speech(body, served, seed)
    turns = turns_of(body.messages)
    prompt = await anyio.to_thread.run_sync(prompts.tokenize, turns)
    room = _room(prompts, len(prompt))
    settings = service.settings
    thinker = ThinkerParams(
        prompt,
        _sampling(body, seed),
        min(_max_tokens(body) or settings.max_reply_tokens, room),
        tuple(body.stop or ()),
    )
    request = chat_request(thinker, speech)
    return ChatPlan(
        served,
        request,
        body.audio.format if body.audio is not None and speech is not None else None,
        bool(body.stream),
        body.wants_usage,
        min(body.timeout_s or settings.deadline_s, settings.deadline_s),
    )


def _speech(body: ChatRequest, served: Served, seed: int) -> SpeechOptions | None:
    if not body.wants_audio:
        return None
    if body.audio is None:
        raise RefusedError(missing("audio"))
    check_reply_audio(body.audio, served, stream=bool(body.stream))
    return SpeechOptions(served.voices.resolve(body.audio.voice, "audio.voice").name, seed)


def _sampling(body: ChatRequest, seed: int) -> Sampling:
    return Sampling(
        seed=seed,
        temperature=DEFAULT_TEMPERATURE if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        top_k=body.top_k or 0,
    )


def _max_tokens(body: ChatRequest) -> int | None:
    return body.max_completion_tokens or body.max_tokens


def _room(prompts: ChatPrompts, num_prompt_tokens: int) -> int:
    """How many tokens a reply may have at most. Raises where the prompt leaves none."""
    room = prompts.context_tokens - num_prompt_tokens
    if room > 0:
        return room
    message = (
        f"This model's maximum context length is {prompts.context_tokens} tokens. However, your "
        f"messages resulted in {num_prompt_tokens} tokens. Please shorten the messages."
    )
    raise RefusedError(Problem(message, "messages", "context_length_exceeded"))


def _no_chat_model(name: str) -> Problem:
    message = f"The model '{name}' only speaks; it is not supported in v1/chat/completions."
    return Problem(message, "model", "model_not_supported")
