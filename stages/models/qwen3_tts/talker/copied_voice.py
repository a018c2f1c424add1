"""A voice that is copied from a recording, in the form that the talker reads.

With a transcript the speech continues the recording, which keeps more of the voice than a speaker
embedding alone. Copying 30 s of audio takes seconds on a CPU. So it is done in short parts, and the
stage makes frames for other requests between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from torch import Tensor

    # Yields between parts of the work; returns the speaker embedding and the frames.
    CopyParts = Generator[None, None, tuple[Tensor, Tensor]]


class CopiedVoice:
    """`speaker` is [hidden] and `frames` [num_frames, groups]. Both are set once `is_copied`.

    Without a transcript `num_frames` is 0, and the frames are empty.
    """

    speaker: Tensor
    frames: Tensor

    def __init__(self, transcript: str, num_frames: int, copy: Callable[[], CopyParts]) -> None:
        self.transcript = transcript
        self.num_frames = num_frames
        self._copy: Callable[[], CopyParts] | None = copy
        self._parts: CopyParts | None = None

    @property
    def is_copied(self) -> bool:
        """Whether all parts are done."""
        return self._copy is None

    def copy_next_part(self) -> None:
        """Do the next part, if one is left. After a failure the copy starts again."""
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
