"""A voice to be copied: a recording, and what was said in it, as the talker is given them.

The files are the server's (`stages/talker/qwen/recordings.py`): mono sound, and a transcript beside
it where there is one. With a transcript the speech goes on from the recording, which keeps more of
it than the embedding of the voice alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from stages.talker.qwen.codec_encoder import CodecEncoder
from stages.talker.qwen.recordings import read_recording
from stages.talker.qwen.speaker_encoder import SpeakerEncoder

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from stages.checkpoint import Weights
    from stages.talker.qwen.model import TalkerModel


@dataclass(frozen=True, slots=True)
class CopiedVoice:
    """`speaker` is [hidden], `frames` [frames, groups]; without a transcript they are not read."""

    speaker: Tensor
    frames: Tensor
    transcript: str


class VoiceCopier:
    """Makes voices of recordings, with the networks of a base checkpoint."""

    def __init__(self, folder: Path, talker: TalkerModel, weights: Weights) -> None:
        """Raises CheckpointError."""
        self._talker = talker
        self._speaker = SpeakerEncoder(talker.config.speaker_encoder, weights, talker.device)
        self._codec = CodecEncoder(folder / "speech_tokenizer", talker.device)

    @torch.inference_mode()
    def __call__(self, path: Path) -> CopiedVoice:
        """The voice of a recording. Raises OSError or ValueError for a file that is none."""
        recording = read_recording(path)
        samples = torch.from_numpy(recording.samples)
        speaker = self._speaker(samples).to(self._talker.dtype)
        return CopiedVoice(speaker, self._codec(samples), recording.transcript)
