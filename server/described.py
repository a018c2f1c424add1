"""What the exported document says of a route: its body, its answers, its errors.

Bodies are read by hand (`body.py`), so they are described by hand too. Every error is the envelope.
"""

from typing import Any

from pydantic import BaseModel

from openapi.chat_chunk import ChatChunk
from openapi.chat_parameters import TREATMENTS, names_of
from openapi.chat_request import ChatRequest
from openapi.completion import Completion
from openapi.completion_request import CompletionRequest
from openapi.errors import ErrorEnvelope
from openapi.response_events import (
    ContentPartEvent,
    OutputItemEvent,
    OutputTextDelta,
    OutputTextDone,
    ResponseErrorEvent,
    ResponseStateEvent,
)
from openapi.response_request import ResponseRequest
from openapi.speech import SpeechDelta, SpeechDone, SpeechRequest

# The models of the document that no route returns through FastAPI.
BODY_MODELS: tuple[type[BaseModel], ...] = (
    SpeechRequest,
    ChatRequest,
    CompletionRequest,
    ResponseRequest,
)
RESPONSE_EVENTS: tuple[type[BaseModel], ...] = (
    ResponseStateEvent,
    OutputItemEvent,
    ContentPartEvent,
    OutputTextDelta,
    OutputTextDone,
    ResponseErrorEvent,
)
STREAM_MODELS: tuple[type[BaseModel], ...] = (
    SpeechDelta,
    SpeechDone,
    ChatChunk,
    *RESPONSE_EVENTS,
)


Answers = dict[int | str, dict[str, Any]]

ERRORS: Answers = {
    "4XX": {"model": ErrorEnvelope, "description": "The request is refused."},
    "5XX": {"model": ErrorEnvelope, "description": "The server failed, or is not ready."},
}


def ref(model: type[BaseModel]) -> dict[str, Any]:
    """A reference to a model of the document."""
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """The `requestBody` of a route that reads `model`."""
    content = {"application/json": {"schema": ref(model)}}
    return {"requestBody": {"required": True, "content": content}}


def events_of(*models: type[BaseModel]) -> dict[str, Any]:
    """A stream whose `data:` lines are one of `models`, then `[DONE]`."""
    schema = {
        "type": "string",
        "description": "Server-sent events. Each `data:` line is one of `x-events`, the last is "
        "`[DONE]`. A failure is a `data:` line with an ErrorEnvelope; the connection is then cut.",
        "x-events": [ref(model) for model in models],
    }
    return {"text/event-stream": {"schema": schema}}


SPEECH_ANSWERS: Answers = {
    200: {
        "description": "The sound as it is made: 24 kHz, mono, 16 bits.",
        "content": {
            **{
                media_type: {"schema": {"type": "string", "format": "binary"}}
                for media_type in ("audio/wav", "audio/pcm")
            },
            **events_of(SpeechDelta, SpeechDone),
        },
    },
    **ERRORS,
}

CHAT_STREAM = events_of(ChatChunk)
COMPLETION_STREAM = events_of(Completion)
RESPONSE_STREAM = {
    "text/event-stream": {
        "schema": {
            "type": "string",
            "description": "Server-sent events: `event:` is the type, `data:` one of `x-events`. "
            "The last is `response.completed` or `response.incomplete`; after a failure it is "
            "`error`, and the connection is then cut. There is no `[DONE]`.",
            "x-events": [ref(model) for model in RESPONSE_EVENTS],
        }
    }
}
CHAT_PARAMETERS_SHOWN = {
    "x-parameters": {treatment: names_of(treatment) for treatment in TREATMENTS}
}
