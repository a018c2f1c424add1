"""Copies voices from recordings, with the networks of a Base checkpoint.

A recording (`recordings.py`) is mono audio with an optional transcript.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from stages.contract.messages import OUTPUT_RATE_HZ
from stages.kernels.device import bring
from stages.models.qwen3_tts.talker.codec_encoder import CodecEncoder
from stages.models.qwen3_tts.talker.copied_voice import CopiedVoice
from stages.models.qwen3_tts.talker.recordings import read_recording
from stages.models.qwen3_tts.talker.speaker_encoder import SpeakerEncoder

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from stages.models.qwen3_tts.talker.copied_voice import CopyParts
    from stages.models.qwen3_tts.talker.model import TalkerModel
    from stages.weights.safetensors import Weights


class VoiceCopier:
    """Copies voices: the speaker embedding and, for recordings with a transcript, the frames."""

    def __init__(self, folder: Path, talker: TalkerModel, weights: Weights) -> None:
        """Load both encoders. Raises CheckpointError if the checkpoint has none."""
        self._talker = talker
        self._speaker = SpeakerEncoder(talker.config.speaker_encoder, weights, talker.device)
        self._codec = CodecEncoder(folder / "speech_tokenizer", talker.device)

    def __call__(self, path: Path) -> CopiedVoice:
        """The voice of a recording, not copied yet. Raises OSError or ValueError for a bad file."""
        recording = read_recording(path)
        samples = torch.from_numpy(recording.samples)
        num_frames = self._codec.num_frames(len(samples)) if recording.transcript else 0
        return CopiedVoice(
            recording.transcript, num_frames, partial(self._copy, samples, num_frames)
        )

    @torch.inference_mode()
    def warm(self) -> None:
        """Copy one second of silence. Raises CheckpointError if a tensor is missing."""
        for _ in self._copy(torch.zeros(OUTPUT_RATE_HZ), 1):
            pass

    def _copy(self, samples: Tensor, num_frames: int) -> CopyParts:
        device = self._talker.device
        samples = bring(samples, device)
        speaker = (yield from self._speaker(samples)).to(self._talker.dtype)
        frames = torch.zeros(0, self._talker.config.num_groups, dtype=torch.int64, device=device)
        if num_frames:
            frames = yield from self._codec(samples)
        if device.type == "cuda":  # code2wav reads the frames on its own CUDA stream
            torch.cuda.current_stream(device).synchronize()
        return speaker, frames
