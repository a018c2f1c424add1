"""What a chat may not ask for: checks beyond the shape of the request, each naming its field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openapi.problems import Problem, missing, unsupported
from server.errors import RefusedError
from stages.pipelines.pipeline import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openapi.chat_message import ChatMessage
    from openapi.chat_request import ChatRequest, ReplyAudio
    from server.service import Served

# The template knows three roles. What a tool said is told to the model as the user's words.
TEMPLATE_ROLES = {"developer": "system", "tool": "user", "function": "user"}
STREAMED_FORMATS = ("pcm16",)


def check_options(body: ChatRequest) -> None:
    """Refuse options that would change the answer and are not there. Raises RefusedError."""
    for problem in _problems(body):
        raise RefusedError(problem)


def _problems(body: ChatRequest) -> Iterator[Problem]:
    if (body.n or 1) != 1:
        yield unsupported("n", "Unsupported value: 'n' must be 1.")
    if body.tool_choice not in (None, "none", "auto"):
        yield unsupported("tool_choice", "Unsupported value: 'tool_choice': there are no tools.")
    if body.response_format is not None and body.response_format.type != "text":
        message = "Unsupported value: 'response_format.type' supports only 'text'."
        yield unsupported("response_format", message)
    if body.logprobs:
        yield unsupported("logprobs", "Unsupported value: 'logprobs' is not available.")
    if body.top_logprobs is not None and not body.logprobs:
        yield Problem("'top_logprobs' is only allowed with 'logprobs'.", "top_logprobs")
    if body.stream_options is not None and not body.stream:
        yield Problem("'stream_options' is only allowed with 'stream'.", "stream_options")
    if "" in (body.stop or ()):
        yield Problem("Invalid 'stop': a stop sequence is empty.", "stop", "invalid_value")


def check_reply_audio(audio: ReplyAudio, served: Served, *, stream: bool) -> None:
    """Refuse sound that the model does not make, or not in a stream. Raises RefusedError."""
    if not served.speaks:
        raise RefusedError(unsupported("modalities", "This model replies in text only."))
    if not stream or audio.format in STREAMED_FORMATS:
        return
    names = ", ".join(f"'{name}'" for name in STREAMED_FORMATS)
    message = (
        f"Unsupported value: 'audio.format' does not support '{audio.format}' when stream=true. "
        f"Supported values are: {names}."
    )
    raise RefusedError(unsupported("audio.format", message))


def turns_of(messages: Sequence[ChatMessage]) -> tuple[Message, ...]:
    """The messages as the model's template takes them. Raises RefusedError."""
    return tuple(_turn(message, f"messages[{i}]") for i, message in enumerate(messages))


def _turn(message: ChatMessage, where: str) -> Message:
    if message.audio is not None:
        param = f"{where}.audio"
        raise RefusedError(
            unsupported(param, f"Unsupported value: '{param}': earlier replies are not kept.")
        )
    if message.content is None and message.role != "assistant":
        raise RefusedError(missing(f"{where}.content"))
    return Message(TEMPLATE_ROLES.get(message.role, message.role), message.text)
