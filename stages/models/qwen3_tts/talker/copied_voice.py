"""A voice to be copied: a recording, and what was said in it, as the talker is given them.

The files are the server's (`recordings.py`): mono sound, and a transcript beside it where there is
one. With a transcript the speech goes on from the recording, which keeps more of
it than the embedding of the voice alone. To copy 30 s takes seconds on a CPU, so it is done in
parts, between which a stage lets others speak.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from stages.kernels.device import bring
from stages.models.qwen3_tts.talker.codec_encoder import CodecEncoder
from stages.models.qwen3_tts.talker.recordings import RATE_HZ, read_recording
from stages.models.qwen3_tts.talker.speaker_encoder import SpeakerEncoder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from torch import Tensor

    from stages.models.qwen3_tts.talker.model import TalkerModel
    from stages.weights.safetensors import Weights

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


class VoiceCopier:
    """Makes voices of recordings, with the networks of a base checkpoint."""

    def __init__(self, folder: Path, talker: TalkerModel, weights: Weights) -> None:
        """Raises CheckpointError."""
        self._talker = talker
        self._speaker = SpeakerEncoder(talker.config.speaker_encoder, weights, talker.device)
        self._codec = CodecEncoder(folder / "speech_tokenizer", talker.device)

    def __call__(self, path: Path) -> CopiedVoice:
        """The voice of a recording, to be copied. Raises OSError or ValueError for another file."""
        recording = read_recording(path)
        samples = torch.from_numpy(recording.samples)
        num_frames = self._codec.num_frames(len(samples)) if recording.transcript else 0
        return CopiedVoice(
            recording.transcript, num_frames, partial(self._copy, samples, num_frames)
        )

    @torch.inference_mode()
    def warm(self) -> None:
        """Copy silence. Raises CheckpointError for a tensor that is missing."""
        for _ in self._copy(torch.zeros(RATE_HZ), 1):
            pass

    def _copy(self, samples: Tensor, num_frames: int) -> Parts:
        device = self._talker.device
        samples = bring(samples, device)
        speaker = (yield from self._speaker(samples)).to(self._talker.dtype)
        frames = torch.zeros(0, self._talker.config.num_groups, dtype=torch.int64, device=device)
        if num_frames:
            frames = yield from self._codec(samples)
        if device.type == "cuda":  # code2wav reads the frames on a stream of its own
            torch.cuda.current_stream(device).synchronize()
        return speaker, frames
