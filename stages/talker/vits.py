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

from stages.convolution import Conv, Parameters, Window
from stages.talker.durations import DurationPredictor
from stages.talker.encoder import TextEncoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


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


class _Coupling:
    """One coupling of the flow, inverse: half of the channels shifts the other by a WaveNet."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        self._pre = parameters.conv(f"{module}.pre")
        self._post = parameters.conv(f"{module}.post")
        self._layers: list[tuple[Conv, Conv]] = []
        for layer in range(parameters.count(f"{module}.enc.in_layers.{{}}")):
            names = (f"{module}.enc.{kind}.{layer}" for kind in ("in_layers", "res_skip_layers"))
            gate, res_skip = map(parameters.conv, names)
            self._layers.append((gate, res_skip))
        self._speaker = parameters.optional_conv(f"{module}.enc.cond_layer")
        self.reach = sum(gate.reach for gate, _ in self._layers)

    def __call__(self, rows: Tensor, voice: Tensor | None) -> Tensor:
        half = self._pre.in_channels
        kept, shifted = rows[:, :half], rows[:, half:]
        hidden = self._pre(kept)
        width = hidden.shape[1]
        skipped = torch.zeros_like(hidden)
        bias = self._speaker(voice) if self._speaker and voice is not None else None
        for layer, (gate, res_skip) in enumerate(self._layers):
            gated = gate(hidden)
            if bias is not None:
                gated = gated + bias[:, 2 * width * layer : 2 * width * (layer + 1)]
            change = res_skip(gated[:, :width].tanh() * gated[:, width:].sigmoid())
            skipped += change[:, -width:]
            if change.shape[1] > width:
                hidden = hidden + change[:, :width]
        return torch.cat([kept, shifted - self._post(skipped)], dim=1)


@dataclass(slots=True)
class Latents:
    """One piece before the flow: `prior` is [frames, channels], noise already added. `ends` is, for
    each of its ids, the frame at which it ends."""

    prior: Tensor
    ends: list[int]
    speaker: int = 0

    @property
    def num_frames(self) -> int:
        """Frames of the piece."""
        return len(self.prior)


class Vits:
    """One voice. `encode` a piece once, then take its frames window by window with `flow`."""

    def __init__(self, parameters: Parameters) -> None:
        self._device = parameters.device
        self._speakers = parameters.optional("emb_g.weight")
        self._encoder = TextEncoder(parameters)
        self._durations = DurationPredictor(parameters)
        # Every second flow of VITS only swaps the halves (and has no weights).
        numbers = [n for n in range(64) if parameters.has(f"flow.flows.{n}.pre")]
        self._couplings = [_Coupling(parameters, f"flow.flows.{n}") for n in reversed(numbers)]

    @torch.inference_mode()
    def encode(
        self, ids: Sequence[int], scales: Scales, noise: torch.Generator, speaker: int = 0
    ) -> Latents:
        """Durations and prior of one piece. `noise` is a CPU generator, used up by it."""
        hidden, mean, log_scale = self._encoder(torch.tensor(ids, device=self._device))
        rhythm = self._noise(len(ids), 2, noise) * scales.noise_w
        durations = self._durations(hidden, rhythm, self._embedding(speaker))
        repeats = _num_frames(durations, scales)
        mean = mean.repeat_interleave(repeats, dim=0)
        spread = log_scale.repeat_interleave(repeats, dim=0).exp_().mul_(scales.noise)
        prior = mean.addcmul_(spread, self._noise(len(mean), mean.shape[1], noise))
        return Latents(prior, repeats.cumsum(dim=0).tolist(), speaker)

    @torch.inference_mode()
    def flow(self, latents: Latents, begin: int, end: int) -> Tensor:
        """Frames `begin` to `end` of the piece, [frames, channels], exact for any cut."""
        reach = sum(coupling.reach for coupling in self._couplings)
        left, right = min(begin, reach), min(latents.num_frames - end, reach)
        window = Window(latents.prior[begin - left : end + right], left, right)
        voice = self._embedding(latents.speaker)
        for coupling in self._couplings:
            window.trim(reach)
            window.rows = coupling(window.rows.flip(1), voice)
            reach -= coupling.reach
        window.trim(0)
        return window.rows.cpu()

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
