"""Checks of a chat request beyond the shape of its JSON. Each names the field at fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openapi.problems import Problem, missing, unsupported
from server.errors import RefusedError
from server.operations.shared.text_options import refuse_tools
from stages.contract.messages import Message
from stages.contract.pipeline import TEXT_AND_AUDIO, Medium

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openapi.chat.message import ChatMessage
    from openapi.chat.request import ChatRequest, ReplyAudio
    from server.operations.shared.expiring_store import ExpiringStore
    from server.serving.served import ServedModel

# The models' templates have three roles. The model reads a tool's result as the user's words.
TEMPLATE_ROLES = {"developer": "system", "tool": "user", "function": "user"}
STREAMED_FORMATS = ("pcm16",)


def check_options(body: ChatRequest) -> None:
    """Refuse tools, and options that need another one. Raises RefusedError."""
    refuse_tools(body.tools, body.tool_choice, "tools", "tool_choice")
    refuse_tools(body.functions, body.function_call, "functions", "function_call")
    if body.top_logprobs is not None and not body.logprobs:
        message = "'top_logprobs' is only allowed with 'logprobs'."
        raise RefusedError(Problem(message, "top_logprobs"))


def check_reply_audio(audio: ReplyAudio, served: ServedModel, *, stream: bool) -> None:
    """Refuse audio of a model that does not speak, and formats that cannot be streamed.

    Raises RefusedError.
    """
    if served.pipeline(Medium.TEXT, TEXT_AND_AUDIO) is None:
        message = "Unsupported value: 'modalities': this model replies in text only."
        raise RefusedError(unsupported("modalities", message))
    if not stream or audio.format in STREAMED_FORMATS:
        return
    names = ", ".join(f"'{name}'" for name in STREAMED_FORMATS)
    message = (
        f"Unsupported value: 'audio.format' does not support '{audio.format}' when stream=true. "
        f"Supported values are: {names}."
    )
    raise RefusedError(unsupported("audio.format", message))


def turns_of(
    messages: Sequence[ChatMessage], transcripts: ExpiringStore[str]
) -> tuple[Message, ...]:
    """The messages as the model's template takes them. Raises RefusedError."""
    return tuple(
        _turn(message, f"messages[{i}]", transcripts) for i, message in enumerate(messages)
    )


def _turn(message: ChatMessage, param: str, transcripts: ExpiringStore[str]) -> Message:
    if message.audio is not None:
        transcript = _transcript(message.audio.id, f"{param}.audio.id", transcripts)
        return Message("assistant", message.text or transcript)
    if message.content is None and message.role != "assistant":
        raise RefusedError(missing(f"{param}.content"))
    return Message(TEMPLATE_ROLES.get(message.role, message.role), message.text)


def _transcript(audio_id: str, param: str, transcripts: ExpiringStore[str]) -> str:
    transcript = transcripts.get(audio_id)
    if transcript is None:
        message = f"Invalid '{param}': there is no reply with this audio id, or it has expired."
        raise RefusedError(Problem(message, param, "audio_not_found"))
    return transcript
