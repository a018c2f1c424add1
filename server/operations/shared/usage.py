"""How the choices of a reply ended and what they count as, from their stages' last reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from openapi.chat.usage import ChatUsage, chat_usage
from stages.contract.messages import AudioEnd, TextEnd

if TYPE_CHECKING:
    from openapi.chat.response import FinishReason
    from orchestrator import OrchOutput


class Tally:
    """Takes the outputs of a group of requests; complete after the last terminal.

    Of `num_choices` choices, each `per_prompt` have one prompt, which counts once.
    """

    def __init__(self, num_choices: int, per_prompt: int) -> None:
        self._per_prompt = per_prompt
        self._texts = [TextEnd("stop", 0, 0)] * num_choices
        self._audios = [AudioEnd(0, 0)] * num_choices

    def note(self, output: OrchOutput) -> None:
        """Keep it if it is a stage's end."""
        if isinstance(output.data, TextEnd):
            self._texts[output.index] = output.data
        elif isinstance(output.data, AudioEnd):
            self._audios[output.index] = output.data

    def finish_reason(self, index: int) -> FinishReason:
        """Why the text of a choice ended."""
        return cast("FinishReason", self._texts[index].finish_reason)

    @property
    def usage(self) -> ChatUsage:
        """The usage of the whole call."""
        prompts = self._texts[:: self._per_prompt]
        return chat_usage(
            sum(text.prompt_tokens for text in prompts),
            sum(text.cached_tokens for text in prompts),
            sum(text.completion_tokens for text in self._texts),
            sum(audio.audio_tokens for audio in self._audios),
        )
