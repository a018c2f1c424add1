"""Turns prompts into the tokens that the thinker reads. Torch-free.

For a chat, the model's own template (Jinja, in a sandbox) is rendered with marks in place of the
messages' contents. Control tokens are searched for only in what the template wrote, so no content
can end its turn. The text between two control tokens is then encoded in one piece.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from stages.contract.messages import ChatPrompt
from stages.models.llama.grammar import check_schema
from stages.models.llama.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.messages import Message, Prompt
    from stages.models.llama.model_files import ModelFiles

_ROLES = frozenset({"system", "user", "assistant"})
_MARK = "\ue000{}\ue001"  # with the number of the message
_MARKS = re.compile("\ue000(\\d+)\ue001")


class SmolPrompts:
    """The `ChatPrompts` of a converted model. Immutable.

    The template has no tools and no options of its own.
    """

    def __init__(self, files: ModelFiles) -> None:
        settings = files.read_settings()
        self.context_tokens = int(settings.transformer["max_tokens"])
        self.vocabulary = Vocabulary(files.tokenizer)
        self.num_tokens = len(self.vocabulary)
        control = sorted(self.vocabulary.control, key=len, reverse=True)
        self._control = re.compile("(" + "|".join(map(re.escape, control)) + ")")
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        self._template = environment.from_string(settings.chat_template)

    def tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        """The token ids of a prompt. A chat ends with the start of the assistant's turn.

        No part of a raw text becomes a control token. Raises ValueError for an unknown role, tools
        or template options, and if the template refuses the chat.
        """
        if isinstance(prompt, ChatPrompt):
            return tuple(self._chat_tokens(prompt))
        if isinstance(prompt.content, str):
            return tuple(self.vocabulary.encode(prompt.content))
        return prompt.content

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens. Control tokens have no text."""
        return b"".join(map(self.vocabulary.token_bytes, tokens)).decode("utf-8", "replace")

    def check_schema(self, schema: str) -> None:
        """Raise ValueError for a JSON schema that replies cannot be constrained to."""
        check_schema(schema)

    def _chat_tokens(self, prompt: ChatPrompt) -> list[int]:
        if prompt.tools or prompt.template_options:
            raise ValueError("the model's chat template has no tools and no options")
        contents = [message.content for message in prompt.messages]
        tokens: list[int] = []
        for i, part in enumerate(self._control.split(self._render(prompt.messages))):
            if i % 2:
                tokens.append(self.vocabulary.control[part])
            else:
                text = _MARKS.sub(lambda mark: contents[int(mark[1])], part)
                tokens.extend(self.vocabulary.encode(text))
        return tokens

    def _render(self, messages: Sequence[Message]) -> str:
        if unknown := {message.role for message in messages} - _ROLES:
            raise ValueError(
                f"unknown role: {', '.join(sorted(unknown))}; use {', '.join(sorted(_ROLES))}"
            )
        turns: list[dict[str, Any]] = [
            {"role": message.role, "content": _MARK.format(i)} for i, message in enumerate(messages)
        ]
        try:
            return self._template.render(messages=turns, add_generation_prompt=True)
        except TemplateError as cause:
            raise ValueError(f"the model's chat template refuses this chat: {cause}") from cause


def _refuse(message: str) -> NoReturn:
    """Templates call this to reject a chat."""
    raise TemplateError(message)
