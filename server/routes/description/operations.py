"""What openapi.json says about each route: its request body and its streams.

`server/http/body.py` reads the bodies, not FastAPI, so they are described here.
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

# Models that FastAPI does not see: it neither reads these bodies nor writes these events.
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


def schema_ref(model: type[BaseModel]) -> dict[str, Any]:
    """A reference to the schema of a model."""
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """The `requestBody` of a route that reads `model`."""
    content = {"application/json": {"schema": schema_ref(model)}}
    return {"requestBody": {"required": True, "content": content}}


def form_of(model: type[BaseModel], file: str) -> dict[str, Any]:
    """The `requestBody` of a route that reads a multipart form: `model` and a file."""
    content = {"type": "string", "contentMediaType": "application/octet-stream"}
    sent = {"type": "object", "required": [file], "properties": {file: content}}
    form = {"multipart/form-data": {"schema": {"allOf": [schema_ref(model), sent]}}}
    return {"requestBody": {"required": True, "content": form}}


SPEECH_EVENTS = """data: {"type":"speech.audio.delta","audio":"//PExAAcIm4MAU8AAA=="}

data: {"type":"speech.audio.done","usage":{"input_tokens":6,"output_tokens":14,"total_tokens":20}}

data: [DONE]

"""


def events_of(*models: type[BaseModel], example: str | None = None) -> dict[str, Any]:
    """A stream of events whose `data` is one of `models`. The last event is `[DONE]`."""
    examples = {} if example is None else {"example": example}
    kinds: tuple[type[BaseModel], ...] = (*models, ErrorEnvelope)
    body = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"oneOf": [schema_ref(kind) for kind in kinds]},
    }
    data = {
        "anyOf": [{"const": "[DONE]"}, body],
        "description": "`[DONE]` is the last event. After an ErrorEnvelope "
        "the server closes the connection.",
    }
    item = {"type": "object", "required": ["data"], "properties": {"data": data}}
    return {"text/event-stream": {"itemSchema": item, **examples}}


SPEECH_ANSWERS: Answers = {
    200: {
        "description": "The audio, sent while it is made: 24 kHz, mono, without a content-length. "
        "The sizes in a `wav` header are 0xFFFFFFFF. `pcm` is 16 bits, little endian, and has no "
        "header.",
        "content": {
            **{
                file_format.media_type: {"schema": {"type": "string", "format": "binary"}}
                for file_format in FORMATS.values()
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
                    "contentSchema": {"oneOf": [schema_ref(model) for model in RESPONSE_EVENTS]},
                },
            },
            "description": "`event` is the `type` in `data`. The last event is "
            "`response.completed` or `response.incomplete`. After a failure it is `error`, and the "
            "server then closes the connection. There is no `[DONE]`.",
        }
    }
}
CHAT_PARAMETERS_EXTENSION = {
    "x-parameters": {treatment: names_of(treatment) for treatment in TREATMENTS}
}
