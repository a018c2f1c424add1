"""Checks a speech request and turns it into what the stages run.

Everything that can be refused is refused here, before anything starts. `instructions` are allowed
for every model; models that cannot follow them ignore them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openapi.problems import Problem, too_long
from server.encoding.formats import FORMATS, FileFormat
from server.errors import RefusedError
from server.operations.shared.plan import Plan, deadline_of
from server.operations.shared.seed import seed_of
from server.operations.shared.speech_options import check_speakable, speech_options
from server.serving.voices import check_language
from stages.contract.pipeline import speech_request

if TYPE_CHECKING:
    from openapi.speech import SpeechRequest
    from server.config.settings import Settings
    from server.serving.served import ServedModel
    from server.serving.service import Service
    from stages.contract.messages import Request

OPENAI_MAX_CHARS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechPlan(Plan):
    """A checked speech. It has one request, and its sound is sent in `format`."""

    format: FileFormat
    input_tokens: int
    captions: bool = False

    @property
    def request(self) -> Request:
        """The only request of the plan."""
        return self.requests[0]


def plan_speech(service: Service, body: SpeechRequest) -> SpeechPlan:
    """Check a request and plan it. Raises RefusedError, UnavailableError."""
    served, settings = service.model(body.model), service.settings
    if (pipeline := served.speech) is None:
        message = f"The model '{body.model}' answers chats; it is not supported in v1/audio/speech."
        raise RefusedError(Problem(message, "model", "model_not_supported"))
    voice = served.voices.resolve(body.voice, "voice")
    check_language(voice, body.language)
    _check_length(body, served, settings)
    options = speech_options(voice, body, settings, served.model, seed=seed_of(body.seed))
    check_speakable(body.input, voice, options, served.model)
    if body.captions and body.stream_format != "sse":
        message = "'captions' is only allowed with 'stream_format' set to 'sse'."
        raise RefusedError(Problem(message, "captions", "invalid_value"))
    count_tokens = served.model.count_tokens or len
    return SpeechPlan(
        served=served,
        pipeline=pipeline,
        requests=(speech_request(body.input, options),),
        stream=body.stream_format == "sse",
        deadline_s=deadline_of(body.timeout_s, settings),
        format=FORMATS[body.response_format or "mp3"],
        input_tokens=count_tokens(body.input),
        captions=options.captions,
    )


def _check_length(body: SpeechRequest, served: ServedModel, settings: Settings) -> None:
    """Refuse a text over the limit. The names of OpenAI's models also have OpenAI's limit."""
    limit = settings.max_input_chars
    if body.model != served.model_id:
        limit = min(limit, OPENAI_MAX_CHARS)
    if len(body.input) > limit:
        raise RefusedError(too_long("input", limit, len(body.input)))
