"""The messages of a chat request. Content parts other than text are refused by their `type`."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from openapi.base import LIST_LIMITS, RequestModel

Role = Literal["developer", "system", "user", "assistant", "tool", "function"]


class TextPart(RequestModel):
    """A content part with text."""

    type: Literal["text"]
    text: str


class AudioReference(RequestModel):
    """An earlier spoken reply, by its audio id."""

    id: str


def _as_parts(content: object) -> object:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


Parts = Annotated[list[TextPart], *LIST_LIMITS, Field(min_length=1)]
Content = Annotated[
    Parts | None, BeforeValidator(_as_parts, json_schema_input_type=str | Parts | None)
]


class ChatMessage(RequestModel):
    """One message. `content` may be null only if the role is `assistant`."""

    role: Role
    content: Content = None
    audio: AudioReference | None = None

    @property
    def text(self) -> str:
        """The text of all parts, joined."""
        return "".join(part.text for part in self.content or ())
