"""What the exported document says of a route: its body, its answers, its errors.

Bodies are read by hand (`body.py`), so they are described by hand too. Every error is the envelope.
"""

from typing import Any

from pydantic import BaseModel

from openapi.chat.chunk import ChatChunk
from openapi.chat.parameters import TREATMENTS, names_of
from openapi.chat.request import ChatRequest
from openapi.completions.request import CompletionRequest
from openapi.completions.response import Completion
from openapi.errors import ErrorEnvelope
from openapi.responses.events import (
    ContentPartEvent,
    OutputItemEvent,
    OutputTextDelta,
    OutputTextDone,
    ResponseErrorEvent,
    ResponseStateEvent,
)
from openapi.responses.request import ResponseRequest
from openapi.speech import SpeechDelta, SpeechDone, SpeechRequest
from openapi.voice import VoiceUpload
from server.encoding.formats import FORMATS
from server.routes.description.errors import ERRORS, Answers

# The models of the document that no route returns through FastAPI.
BODY_MODELS: tuple[type[BaseModel], ...] = (
    SpeechRequest,
    ChatRequest,
    CompletionRequest,
    ResponseRequest,
    VoiceUpload,
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


def ref(model: type[BaseModel]) -> dict[str, Any]:
    """A reference to a model of the document."""
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """The `requestBody` of a route that reads `model`."""
    content = {"application/json": {"schema": ref(model)}}
    return {"requestBody": {"required": True, "content": content}}


def form_of(model: type[BaseModel], file: str) -> dict[str, Any]:
    """The `requestBody` of a route that reads a form of `model` and a file."""
    content = {"type": "string", "contentMediaType": "application/octet-stream"}
    sent = {"type": "object", "required": [file], "properties": {file: content}}
    form = {"multipart/form-data": {"schema": {"allOf": [ref(model), sent]}}}
    return {"requestBody": {"required": True, "content": form}}


SPEECH_EVENTS = """data: {"type":"speech.audio.delta","audio":"//PExAAcIm4MAU8AAA=="}

data: {"type":"speech.audio.done","usage":{"input_tokens":6,"output_tokens":14,"total_tokens":20}}

data: [DONE]

"""


def events_of(*models: type[BaseModel], example: str | None = None) -> dict[str, Any]:
    """A stream whose `data:` lines are one of `models`, then `[DONE]`."""
    shown = {} if example is None else {"example": example}
    kinds: tuple[type[BaseModel], ...] = (*models, ErrorEnvelope)
    body = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"oneOf": [ref(kind) for kind in kinds]},
    }
    data = {
        "anyOf": [{"const": "[DONE]"}, body],
        "description": "`[DONE]` is the last event. After an ErrorEnvelope the connection is cut.",
    }
    item = {"type": "object", "required": ["data"], "properties": {"data": data}}
    return {"text/event-stream": {"itemSchema": item, **shown}}


SPEECH_ANSWERS: Answers = {
    200: {
        "description": "The sound as it is made, 24 kHz, mono, without a content-length. `wav` "
        "says 0xFFFFFFFF for its sizes; `pcm` is 16 bits, little endian, without a header.",
        "content": {
            **{
                form.media_type: {"schema": {"type": "string", "format": "binary"}}
                for form in FORMATS.values()
            },
            **events_of(SpeechDelta, SpeechDone, example=SPEECH_EVENTS),
        },
    },
    **ERRORS,
}

CHAT_STREAM = events_of(ChatChunk)
COMPLETION_STREAM = events_of(Completion)
RESPONSE_STREAM = {
    "text/event-stream": {
        "itemSchema": {
            "type": "object",
            "required": ["event", "data"],
            "properties": {
                "event": {"type": "string"},
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": {"oneOf": [ref(model) for model in RESPONSE_EVENTS]},
                },
            },
            "description": "`event` is the type that `data` has too. The last is "
            "`response.completed` or `response.incomplete`; after a failure it is `error`, and the "
            "connection is then cut. There is no `[DONE]`.",
        }
    }
}
CHAT_PARAMETERS_SHOWN = {
    "x-parameters": {treatment: names_of(treatment) for treatment in TREATMENTS}
}
