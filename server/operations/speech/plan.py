"""A speech request, checked, as what the stages run.

Everything that can be refused is refused here, before anything starts. `instructions` are taken for
every model; those that cannot follow them drop them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from openapi.problems import Problem, too_long
from server.encoding.formats import FORMATS, FileFormat
from server.errors import RefusedError
from server.operations.shared.seed import seed_of
from server.operations.shared.speech_options import check_text, speech_options
from server.serving.voices import check_language, language_name
from stages.contract.pipeline import speech_request

if TYPE_CHECKING:
    from openapi.speech import SpeechRequest
    from server.config.settings import Settings
    from server.serving.served import Served
    from server.serving.service import Service
    from stages.contract.messages import Request

OPENAI_MAX_CHARS = 4096


@dataclass(frozen=True, slots=True)
class SpeechPlan:
    """A request that nothing is wrong with."""

    served: Served
    request: Request
    format: FileFormat
    deadline_s: float
    input_tokens: int
    captions: bool = False


def plan_speech(service: Service, body: SpeechRequest) -> SpeechPlan:
    """Check everything that can be checked. Raises RefusedError, UnavailableError."""
    served = service.model(body.model)
    if served.chats:
        raise RefusedError(_no_speech_model(body.model))
    voice = served.voices.resolve(body.voice, "voice")
    check_language(voice, body.language)
    _check_length(body.input, _max_chars(body.model, served, service.settings))
    speed = 1.0 if body.speed is None else body.speed
    if served.pipeline.fixed_prosody:
        _check_plain(body)
    options = replace(
        speech_options(voice, body, service.settings, seed=seed_of(body.seed), speed=speed),
        language=language_name(served.pipeline, voice, body.language),
        instructions=body.instructions or "",
    )
    check_text(body.input, voice, options, served.pipeline)
    if body.captions and body.stream_format != "sse":
        raise RefusedError(_no_captions())
    deadline_s = min(body.timeout_s or service.settings.deadline_s, service.settings.deadline_s)
    request = speech_request(body.input, options)
    file_format = FORMATS[body.response_format or "mp3"]
    count = served.pipeline.count_tokens or len
    return SpeechPlan(served, request, file_format, deadline_s, count(body.input), options.captions)


def _max_chars(name: str, served: Served, settings: Settings) -> int:
    """Under the names of OpenAI's models its limit holds too."""
    limit = settings.max_input_chars
    return limit if name == served.pipeline.model_id else min(limit, OPENAI_MAX_CHARS)


def _check_length(text: str, max_chars: int) -> None:
    if len(text) > max_chars:
        raise RefusedError(too_long("input", max_chars, len(text)))


def _check_plain(body: SpeechRequest) -> None:
    """Refuse what a model has no way to do. What changes nothing is no wish."""
    asked = {
        "speed": body.speed not in (None, 1.0),
        "length_scale": body.length_scale is not None,
        "noise_scale": body.noise_scale is not None,
        "noise_w": body.noise_w is not None,
        "sentence_silence": body.sentence_silence is not None,
    }
    for param in (name for name, is_asked in asked.items() if is_asked):
        message = f"Invalid '{param}': this model has no such setting; say it in 'instructions'."
        raise RefusedError(Problem(message, param, "unsupported_value"))


def _no_captions() -> Problem:
    message = "'captions' are events: they are only allowed with stream_format 'sse'."
    return Problem(message, "captions", "invalid_value")


def _no_speech_model(name: str) -> Problem:
    message = f"The model '{name}' answers chats; it is not supported in v1/audio/speech."
    return Problem(message, "model", "model_not_supported")
