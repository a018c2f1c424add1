"""The text side of a Piper voice: VITS (Kim et al. 2021, arXiv 2106.06103) without its decoder.

Phoneme ids go through a text encoder and a stochastic duration predictor. Each phoneme is repeated
for its duration, noise is added, and an inverse flow makes the latent frames that HiFi-GAN decodes.
It computes one phrase at a time: in a batch, sums in another order could round a duration
differently. Sizes follow from the voice's file. Shapes are [time, channels].
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from stages.kernels.torchscript import scripted
from stages.models.piper.durations import DurationPredictor
from stages.models.piper.encoder import TextEncoder
from stages.models.piper.flow import Flow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from stages.kernels.convolution import Parameters
    from stages.models.piper.flow import FlowStream


@dataclass(frozen=True, slots=True)
class Scales:
    """Factors for the noise in the sound (`noise`), for that in the rhythm (`noise_w`), and for
    durations.

    Durations are multiplied by `length` before each is rounded up to a frame, as in Piper. They are
    divided by `speed` after that, so the speed is exact over a phrase.
    """

    noise: float
    length: float
    noise_w: float
    speed: float = 1.0


@dataclass(slots=True)
class Latents:
    """One phrase before the flow.

    `mean` and `spread` are those of each phoneme id, [ids, channels]. `ids` has the number of the
    id for each frame, and `ends` the frame at which each id ends. The first `num_fed` frames went
    into the flow; the frames after them take their noise from `noise`.
    """

    mean: Tensor
    spread: Tensor
    ids: Tensor
    ends: list[int]
    noise: torch.Generator
    stream: FlowStream
    num_fed: int = 0

    @property
    def num_frames(self) -> int:
        """Frames of the phrase."""
        return len(self.ids)

    @property
    def is_complete(self) -> bool:
        """Whether all frames went into the flow."""
        return self.num_fed == len(self.ids)


class Vits:
    """One voice. Call `encode` once for a phrase, then `flow` for each slice of its frames."""

    def __init__(self, parameters: Parameters) -> None:
        self._device = parameters.device
        self._speakers = parameters.optional("emb_g.weight")
        self._encoder = scripted(TextEncoder(parameters))
        self._durations = scripted(DurationPredictor(parameters))
        self._flow = Flow(parameters)

    @torch.inference_mode()
    def encode(
        self, ids: Sequence[int], scales: Scales, noise: torch.Generator, speaker: int = 0
    ) -> Latents:
        """The durations and the prior of one phrase. `noise` is a CPU generator that nothing else
        uses."""
        voice = self._embedding(speaker)
        hidden, mean, log_scale = self._encoder(torch.tensor(ids, device=self._device))
        rhythm = self._noise(len(ids), 2, noise) * scales.noise_w
        durations = self._durations(hidden, rhythm, voice)
        repeats = _num_frames(durations, scales)
        spread = log_scale.exp().mul_(scales.noise)
        ends: list[int] = repeats.cumsum(dim=0).tolist()
        stream = self._flow.begin(voice)
        return Latents(mean, spread, torch.repeat_interleave(repeats), ends, noise, stream)

    @torch.inference_mode()
    def flow(self, latents: Latents, num_frames: int) -> Tensor:
        """The phrase's next frames, [frames, channels]: `num_frames`, or all that are left if the
        rows that these need include the last one."""
        begin, reach = latents.num_fed, self._flow.reach
        latents.num_fed = min(begin + num_frames + (0 if begin else reach), latents.num_frames)
        prior = self._prior(latents, begin, latents.num_fed)
        return latents.stream.feed(prior, last=latents.is_complete).cpu()

    def _prior(self, latents: Latents, begin: int, end: int) -> Tensor:
        """The rows of the prior for frames `begin` to `end`, [frames, channels].

        A generator gives the same numbers in parts as at once if each part is a multiple of 16
        numbers. The channels of a voice are such a multiple.
        """
        ids = latents.ids[begin:end]
        noise = self._noise(len(ids), latents.mean.shape[1], latents.noise)
        return torch.addcmul(latents.mean[ids], latents.spread[ids], noise)

    def _embedding(self, speaker: int) -> Tensor | None:
        """The speaker's embedding [1, channels]; None if the voice has only one speaker."""
        return None if self._speakers is None else self._speakers[speaker : speaker + 1]

    def _noise(self, rows: int, channels: int, noise: torch.Generator) -> Tensor:
        return torch.randn(rows, channels, generator=noise).to(self._device)


def _num_frames(log_durations: Tensor, scales: Scales) -> Tensor:
    """Frames of each phoneme, int64 [phonemes]; together at least one."""
    frames = torch.ceil(torch.exp(log_durations) * scales.length).double()
    ends = (frames.cumsum(dim=0) / scales.speed).round().long()
    ends[-1:].clamp_(min=1)
    return ends.diff(prepend=ends.new_zeros(1))


def phrase_noise(seed: int, number: int) -> torch.Generator:
    """The noise of phrase `number` of a request with `seed`. It depends on nothing else."""
    key = hashlib.blake2b(f"{seed} {number}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(key, "big"))
