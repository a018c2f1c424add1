"""The text side of a Piper voice: VITS (Kim et al. 2021, arXiv 2106.06103) without its decoder.

Phoneme ids go through a text encoder and a stochastic duration predictor; each phoneme is repeated
for its duration, noise is added, and an inverse flow makes the latent frames that HiFi-GAN decodes.
Always float32, one piece at a time: sums in another order would round a duration differently.
Sizes follow from the voice's file. Shapes are [time, channels].
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
    """How much noise in sound and in rhythm, and what durations are multiplied and divided by.

    `length` is the voice's own and acts before each duration is rounded up to a frame, as in
    Piper; `speed` acts after, so that it is exact over a piece.
    """

    noise: float
    length: float
    noise_w: float
    speed: float = 1.0


@dataclass(slots=True)
class Latents:
    """One piece before the flow. `mean` and `spread` are those of each id, [ids, channels], `ids`
    says whose each frame is, and `ends`, for each id, the frame at which it ends. The first
    `num_fed` frames went into the flow; `noise` is for those after."""

    mean: Tensor
    spread: Tensor
    ids: Tensor
    ends: list[int]
    noise: torch.Generator
    stream: FlowStream
    num_fed: int = 0

    @property
    def num_frames(self) -> int:
        """Frames of the piece."""
        return len(self.ids)

    @property
    def complete(self) -> bool:
        """Whether all frames were taken."""
        return self.num_fed == len(self.ids)


class Vits:
    """One voice. `encode` a piece once, then take its frames slice by slice with `flow`."""

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
        """Durations of one piece, and what its frames are made of. `noise` is a CPU generator, used
        up by it."""
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
        """The piece's next frames, [frames, channels]: about `num_frames`, or all that are left
        where what they need is already the rest of the piece."""
        begin, reach = latents.num_fed, self._flow.reach
        latents.num_fed = min(begin + num_frames + (0 if begin else reach), latents.num_frames)
        prior = self._prior(latents, begin, latents.num_fed)
        return latents.stream.feed(prior, last=latents.complete).cpu()

    def _prior(self, latents: Latents, begin: int, end: int) -> Tensor:
        """The next frames before the flow, [frames, channels]. A generator gives the same numbers
        in parts as at once where parts are of sixteens, as the channels of a voice are."""
        ids = latents.ids[begin:end]
        noise = self._noise(len(ids), latents.mean.shape[1], latents.noise)
        return torch.addcmul(latents.mean[ids], latents.spread[ids], noise)

    def _embedding(self, speaker: int) -> Tensor | None:
        """[1, channels] of a speaker; None where the voice has only one."""
        return None if self._speakers is None else self._speakers[speaker : speaker + 1]

    def _noise(self, rows: int, channels: int, noise: torch.Generator) -> Tensor:
        return torch.randn(rows, channels, generator=noise).to(self._device)


def _num_frames(log_durations: Tensor, scales: Scales) -> Tensor:
    """Frames of each phoneme, int64 [phonemes]; at least one in all."""
    frames = torch.ceil(torch.exp(log_durations) * scales.length).double()
    ends = (frames.cumsum(dim=0) / scales.speed).round().long()
    ends[-1:].clamp_(min=1)
    return ends.diff(prepend=ends.new_zeros(1))


def phrase_noise(seed: int, number: int) -> torch.Generator:
    """The noise of phrase `number` of a request with `seed`: it depends on nothing else."""
    key = hashlib.blake2b(f"{seed} {number}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(key, "big"))
