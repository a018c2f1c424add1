"""A voice to be copied: a recording, and what was said in it, as the talker is given them.

With a transcript the speech goes on from the recording, which keeps more of it than the embedding
of the voice alone. To copy 30 s takes seconds on a CPU, so it is done in parts, between which a
stage lets others speak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from torch import Tensor

    Parts = Generator[None, None, tuple[Tensor, Tensor]]


class CopiedVoice:
    """`speaker` is [hidden], `frames` [num_frames, groups]; both are there when it `is_copied`.

    Without a transcript no frames are read, and `num_frames` is 0.
    """

    speaker: Tensor
    frames: Tensor

    def __init__(self, transcript: str, num_frames: int, copy: Callable[[], Parts]) -> None:
        self.transcript = transcript
        self.num_frames = num_frames
        self._copy: Callable[[], Parts] | None = copy
        self._parts: Parts | None = None

    @property
    def is_copied(self) -> bool:
        """Whether nothing is left to do."""
        return self._copy is None

    def copy_on(self) -> None:
        """Do the next part, where one is left. After a failure, the first again."""
        if self._copy is None:
            return
        parts, self._parts = self._parts or self._copy(), None
        try:
            next(parts)
        except StopIteration as end:
            self.speaker, self.frames = end.value
            self._copy = None
        else:
            self._parts = parts
