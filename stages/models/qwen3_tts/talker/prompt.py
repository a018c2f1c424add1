"""Builds the talker's prompt: control codes, the voice, and the first text tokens.

Every position has a text token, and most have codec codes too. The talker reads the sum of their
embeddings. The text is a stream beside the frames. Its first tokens are read with the prompt: one
token, or one more for each frame of a reference. Then one token is read with each frame, the end
token after the last one, and padding after that. So a sequence can begin before its text is
complete, and reads the same whether the text came whole or in pieces. Torch-free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.models.qwen3_tts.talker.model_config import QwenTtsConfig
    from stages.models.qwen3_tts.talker.text_tokenizer import TextTokenizer

SPEAKER = -1  # stands for a code: here goes the speaker embedding of a reference


@dataclass(frozen=True, slots=True)
class Prompt:
    """`text` tokens, the last of which have `codes` beside them; then the text stream begins.

    Its first `num_stream_tokens` tokens have the codec's BOS code and the frames of a reference
    beside them. `transcript_tokens`, those of a reference, come before the tokens of the text.
    """

    text: tuple[int, ...]
    codes: tuple[int, ...]
    transcript_tokens: tuple[int, ...] = ()
    num_reference_frames: int = 0

    @property
    def num_stream_tokens(self) -> int:
        """How many tokens of the text stream are read with the prompt."""
        return 1 + self.num_reference_frames

    @property
    def length(self) -> int:
        """The number of positions of the prompt."""
        return len(self.text) + self.num_stream_tokens


@dataclass(frozen=True, slots=True)
class Reference:
    """A voice that is copied from a recording.

    With a transcript the prompt also contains the frames of the recording (in context).
    """

    transcript: str = ""
    num_frames: int = 0


class PromptBuilder:
    """Builds prompts for one checkpoint."""

    def __init__(self, config: QwenTtsConfig, tokenizer: TextTokenizer) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._newline = tokenizer.encode("\n")
        self._assistant_role = tokenizer.encode("assistant")

    def build(
        self,
        speaker: str = "",
        language: str = "",
        instructions: str = "",
        reference: Reference | None = None,
    ) -> Prompt:
        """Build a prompt. Raises KeyError for an unknown speaker or language.

        Without a `language` the model infers it from the text.
        """
        text = self._config.text
        codes = self._language_codes(speaker, language)
        if speaker:
            codes.append(self._config.speakers[speaker])
        elif reference is not None:
            codes.append(SPEAKER)
        codes.append(self._config.control.pad)
        tokens = [
            *self._instruction_tokens(instructions),
            text.im_start,
            *self._assistant_role,
            *self._newline,
            *[text.pad] * (len(codes) - 1),
            text.bos,
        ]
        transcript_tokens: Sequence[int] = ()
        num_frames = 0
        if reference is not None and reference.transcript:
            transcript_tokens = self._tokenizer.encode(reference.transcript)
            num_frames = reference.num_frames
        return Prompt(tuple(tokens), tuple(codes), tuple(transcript_tokens), num_frames)

    def _language_codes(self, speaker: str, language: str) -> list[int]:
        """The codes that name the language, or leave it open. Speakers of a dialect use theirs."""
        control, languages = self._config.control, self._config.languages
        dialect = self._config.dialects.get(speaker)
        if dialect is not None and language in ("", "chinese"):
            language = dialect
        if not language:
            return [control.no_think, control.think_bos, control.think_eos]
        return [control.think, control.think_bos, languages[language], control.think_eos]

    def _instruction_tokens(self, instructions: str) -> list[int]:
        if not instructions:
            return []
        text = self._config.text
        tokens = self._tokenizer.encode(f"user\n{instructions}")
        return [text.im_start, *tokens, text.im_end, *self._newline]
