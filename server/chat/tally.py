"""How a chat ended and what it counts as, from the last reports of its stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from openapi.chat_usage import ChatUsage, chat_usage
from stages.messages import AudioEnd, TextEnd

if TYPE_CHECKING:
    from openapi.chat_response import FinishReason


class Tally:
    """Takes the data of a request's outputs; complete after the terminal."""

    def __init__(self) -> None:
        self._text = TextEnd("stop", 0, 0)
        self._audio = AudioEnd(0, 0)

    def note(self, data: Any) -> None:
        """Keep it if it is a stage's end."""
        if isinstance(data, TextEnd):
            self._text = data
        elif isinstance(data, AudioEnd):
            self._audio = data

    @property
    def finish_reason(self) -> FinishReason:
        """Why the text ended."""
        return cast("FinishReason", self._text.finish_reason)

    @property
    def usage(self) -> ChatUsage:
        """The usage of the whole request."""
        text = self._text
        return chat_usage(text.prompt_tokens, text.completion_tokens, self._audio.audio_tokens)
