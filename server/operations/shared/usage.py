"""Counts the usage of a call, and says why each choice ended.

Both come from the last report of each stage: TextEnd and AudioEnd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from openapi.chat.usage import ChatUsage, chat_usage
from stages.contract.messages import AudioEnd, TextEnd
from stages.contract.roles import Role

if TYPE_CHECKING:
    from openapi.chat.response import FinishReason
    from orchestrator import OrchOutput


class UsageCounter:
    """Reads the outputs of all choices. Its results are complete after the last terminal.

    Each group of `num_per_prompt` choices shares a prompt. The tokens of a prompt count once.
    """

    def __init__(self, num_choices: int, num_per_prompt: int) -> None:
        self._num_per_prompt = num_per_prompt
        self._text_ends = [TextEnd("stop", 0, 0)] * num_choices
        self._audio_ends = [AudioEnd(0, 0)] * num_choices

    def add(self, output: OrchOutput) -> None:
        """Keep the output's data if it is the last report of a stage."""
        if not output.is_end:
            return
        if output.role == Role.THINKER:
            self._text_ends[output.index] = output.data
        elif output.role == Role.CODE2WAV:
            self._audio_ends[output.index] = output.data

    def finish_reason(self, index: int) -> FinishReason:
        """Why the text of choice `index` ended."""
        return cast("FinishReason", self._text_ends[index].finish_reason)

    @property
    def usage(self) -> ChatUsage:
        """The usage of the whole call."""
        prompts = self._text_ends[:: self._num_per_prompt]
        return chat_usage(
            sum(end.prompt_tokens for end in prompts),
            sum(end.cached_tokens for end in prompts),
            sum(end.completion_tokens for end in self._text_ends),
            sum(end.audio_tokens for end in self._audio_ends),
        )
