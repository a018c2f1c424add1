"""The messages of a chat request. Text only: other content parts are refused by their `type`."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from openapi.base import FEW, RequestModel

Role = Literal["developer", "system", "user", "assistant", "tool", "function"]


class TextPart(RequestModel):
    """A content part that is text."""

    type: Literal["text"]
    text: str


class AudioReference(RequestModel):
    """An earlier spoken reply, by its id."""

    id: str


def _as_parts(content: object) -> object:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


Parts = Annotated[list[TextPart], *FEW, Field(min_length=1)]
Content = Annotated[
    Parts | None, BeforeValidator(_as_parts, json_schema_input_type=str | Parts | None)
]


class ChatMessage(RequestModel):
    """One turn. `content` may be null only where an assistant called a tool."""

    role: Role
    content: Content = None
    audio: AudioReference | None = None

    @property
    def text(self) -> str:
        """The text of all parts, joined."""
        return "".join(part.text for part in self.content or ())
