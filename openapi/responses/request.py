"""`POST /v1/responses`: the request. Text in, text out.

All other fields of OpenAI's API are ignored as unknown fields. `seed`, `top_k` and `timeout_s` are
extensions of this server.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from openapi.base import LIST_LIMITS, RequestModel, Seed
from openapi.reply_format import FormatType

# The item of `include` that requests log probabilities.
INCLUDE_LOGPROBS = "message.output_text.logprobs"


class TextContent(RequestModel):
    """A content part with text."""

    type: Literal["input_text", "output_text", "text"]
    text: str


def _as_parts(content: object) -> object:
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


Parts = Annotated[list[TextContent], *LIST_LIMITS, Field(min_length=1)]
Content = Annotated[Parts, BeforeValidator(_as_parts, json_schema_input_type=str | Parts)]


class InputMessage(RequestModel):
    """One message. Items that are not messages are refused by their `type`."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: Content

    @property
    def text(self) -> str:
        """The text of all parts, joined."""
        return "".join(part.text for part in self.content)


def _as_messages(value: object) -> object:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


Messages = Annotated[list[InputMessage], *LIST_LIMITS, Field(min_length=1)]
Input = Annotated[Messages, BeforeValidator(_as_messages, json_schema_input_type=str | Messages)]


class TextFormat(RequestModel):
    """`name` and `schema` belong to the type `json_schema`."""

    type: FormatType
    name: str | None = None
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None


class TextOptions(RequestModel):
    """The format of the text."""

    format: TextFormat | None = None


class ResponseRequest(RequestModel):
    """An input that needs a response.

    `tools`, `conversation`, `prompt` and `background` are refused.
    """

    model: str
    input: Input
    instructions: str | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    include: Annotated[list[str], *LIST_LIMITS] | None = None
    text: TextOptions | None = None
    stream: bool | None = False
    store: bool | None = True
    previous_response_id: str | None = None
    metadata: Annotated[dict[str, str], Field(max_length=16)] | None = None
    tools: Annotated[list[dict[str, Any]], *LIST_LIMITS] | None = None
    tool_choice: str | dict[str, Any] | None = None
    conversation: Any = None
    prompt: Any = None
    background: bool | None = False
    seed: Seed | None = None
    timeout_s: Annotated[float, Field(gt=0.0)] | None = None

    @property
    def num_top_logprobs(self) -> int | None:
        """How many likely tokens to report at each position. None for no log probabilities."""
        requested = self.top_logprobs is not None or INCLUDE_LOGPROBS in (self.include or ())
        return (self.top_logprobs or 0) if requested else None
