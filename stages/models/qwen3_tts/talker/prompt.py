"""How a speech is put to the talker: control codes, the voice, and where the text begins.

Every position has a text token, and most a codec code too; the talker reads the sum of both. The
text is a stream that runs beside the frames: some of it is read with the prompt (one token, or as
many as a reference has frames), and then one token with every frame, the end mark after the last,
padding after that. So a speech can begin while its text is still being written, and reads the same
whether it came whole or in pieces. Torch-free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.models.qwen3_tts.talker.model_config import QwenTtsConfig
    from stages.models.qwen3_tts.talker.vocabulary import TextVocabulary

SPEAKER = -1  # in the place of a code: the embedding of a reference's speaker


@dataclass(frozen=True, slots=True)
class Prompt:
    """`text` tokens, of which the last have `codes` beside them; then the text's stream goes on.

    With the stream's first `num_streamed` tokens come the mark of the beginning and the frames of a
    reference. `leading` are tokens of the stream before the text's own.
    """

    text: tuple[int, ...]
    codes: tuple[int, ...]
    leading: tuple[int, ...] = ()
    num_reference_frames: int = 0

    @property
    def num_streamed(self) -> int:
        """How many tokens of the stream are read with the prompt."""
        return 1 + self.num_reference_frames

    @property
    def length(self) -> int:
        """How many positions the prompt takes."""
        return len(self.text) + self.num_streamed


@dataclass(frozen=True, slots=True)
class Reference:
    """What is known of a voice to be copied: a transcript where its frames are read too."""

    transcript: str = ""
    num_frames: int = 0


class Prompts:
    """Makes the prompts of one checkpoint."""

    def __init__(self, config: QwenTtsConfig, vocabulary: TextVocabulary) -> None:
        self._config = config
        self._vocabulary = vocabulary
        self._turn = vocabulary.encode("\n")
        self._assistant = vocabulary.encode("assistant")

    def make(
        self,
        speaker: str = "",
        language: str = "",
        instructions: str = "",
        reference: Reference | None = None,
    ) -> Prompt:
        """The prompt of a speech. KeyError for a speaker or a language that the model has not.

        Without a `language` the model hears it from the text.
        """
        text = self._config.text
        codes = self._think(speaker, language)
        if speaker:
            codes.append(self._config.speakers[speaker])
        elif reference is not None:
            codes.append(SPEAKER)
        codes.append(self._config.control.pad)
        tokens = [
            *self._told(instructions),
            text.im_start,
            *self._assistant,
            *self._turn,
            *[text.pad] * (len(codes) - 1),
            text.bos,
        ]
        leading: Sequence[int] = ()
        num_frames = 0
        if reference is not None and reference.transcript:
            leading = self._vocabulary.encode(reference.transcript)
            num_frames = reference.num_frames
        return Prompt(tuple(tokens), tuple(codes), tuple(leading), num_frames)

    def _think(self, speaker: str, language: str) -> list[int]:
        """The codes that name the language, or leave it open."""
        control, languages = self._config.control, self._config.languages
        dialect = self._config.dialects.get(speaker)
        if dialect is not None and language in ("", "chinese"):
            language = dialect
        if not language:
            return [control.no_think, control.think_bos, control.think_eos]
        return [control.think, control.think_bos, languages[language], control.think_eos]

    def _told(self, instructions: str) -> list[int]:
        if not instructions:
            return []
        text = self._config.text
        told = self._vocabulary.encode(f"user\n{instructions}")
        return [text.im_start, *told, text.im_end, *self._turn]
