"""The flow of VITS, inverse and in a stream: prior rows in, latent frames out, each computed once.

Every layer keeps the rows that its next outputs read again, so that a slice of frames costs what
they cost in the whole, and a phrase's state is 32 rows for each coupling. Shapes are
[frames, channels].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.kernels.convolution import Dense
from stages.kernels.torchscript import scripted

if TYPE_CHECKING:
    from stages.kernels.convolution import Parameters

_GAINS = (2.0, 1.0)  # what `_gate` wants of both halves


class _Layer(nn.Module):
    """One layer of a WaveNet; its state is the rows that it reads again."""

    def __init__(self, gate: Dense, res_skip: Dense) -> None:
        super().__init__()
        self.gate, self.res_skip = gate, res_skip
        self.width = gate.in_channels

    def forward(
        self, state: Tensor, before: Tensor, bias: Tensor | None, *, last: bool
    ) -> tuple[Tensor, Tensor]:
        """What is hidden, and what was skipped to the end, of the next rows."""
        reach = self.gate.reach
        state = torch.cat([before, state])
        if last:
            state = functional.pad(state, [0, 0, 0, reach])
        again = state[-2 * reach :].clone()
        if len(state) <= 2 * reach:
            return state[:0], again
        gated = self.gate.blocks(state[:, : self.width])
        if bias is not None:
            gated += bias
        state = state[reach : len(state) - reach]
        change = self.res_skip.blocks(_gate(gated, self.width))[: len(state)]
        return state[:, -change.shape[1] :] + change, again


class _Coupling(nn.Module):
    """One coupling: half of the channels shifts the other by a WaveNet. `blank` is its state before
    the first row.

    What the layers skip to the end is only summed there and goes through a linear layer, `post`, so
    each layer's weights for it have that in them already. `pre` gives its bias besides, as the
    first of the sum.
    """

    def __init__(self, parameters: Parameters, module: str) -> None:
        super().__init__()
        weight, bias = parameters.convolution(f"{module}.pre")
        post, post_bias = parameters.convolution(f"{module}.post")
        blank = weight.new_zeros(len(post), *weight.shape[1:])
        self.pre = Dense(torch.cat([weight, blank]), torch.cat([bias, -post_bias]))
        modules = [f"{module}.enc.{kind}_layers.{{}}" for kind in ("in", "res_skip")]
        numbers = range(parameters.count(modules[0]))
        gates = [_gate_of(parameters, modules[0].format(number)) for number in numbers]
        skips = [_res_skip_of(parameters, modules[1].format(n), -post[:, :, 0]) for n in numbers]
        self.layers = nn.ModuleList(map(_Layer, gates, skips))
        self.reaches = [gate.reach for gate in gates]
        before = [weight.new_zeros(reach, len(weight) + len(post)) for reach in self.reaches]
        self.blank = [weight.new_zeros(0, 2 * self.pre.in_channels), *before]

    def forward(
        self, rows: Tensor, state: list[Tensor], biases: list[Tensor] | None, *, last: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """`state`: the rows that are not given out yet, and those of each layer."""
        half = rows.shape[1] // 2
        hidden = self.pre(rows[:, :half])  # and what layers skipped to the end
        again: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            bias = None if biases is None else biases[number]
            hidden, read = layer(hidden, state[1 + number], bias, last=last)
            again.append(read)
        rows = torch.cat([state[0], rows])
        done = len(hidden)
        kept, shifted = rows[:done, :half], rows[:done, half:]
        out = torch.cat([kept, shifted + hidden[:, -half:]], dim=1)
        return out, [rows[done:].clone()] + again  # noqa: RUF005 - TorchScript has no other


class _Couplings(nn.Module):
    """All of them, in one call: rows of the prior to frames, and the states after those."""

    def __init__(self, couplings: list[_Coupling]) -> None:
        super().__init__()
        self.couplings = nn.ModuleList(couplings)

    def forward(
        self, rows: Tensor, states: list[list[Tensor]], biases: list[list[Tensor]], *, last: bool
    ) -> tuple[Tensor, list[list[Tensor]]]:
        again: list[list[Tensor]] = []
        for number, coupling in enumerate(self.couplings):
            own = biases[number] if len(biases) > 0 else None
            rows, state = coupling(rows.flip(1), states[number], own, last=last)
            again.append(state)
        return rows, again


class Flow:
    """The weights; `reach` rows after a frame are read for it."""

    def __init__(self, parameters: Parameters) -> None:
        # Every second flow of VITS only swaps the halves (and has no weights).
        numbers = [n for n in range(64) if parameters.has(f"flow.flows.{n}.pre")]
        names = [f"flow.flows.{n}" for n in reversed(numbers)]
        self._speakers = [parameters.optional_dense(f"{name}.enc.cond_layer") for name in names]
        couplings = [_Coupling(parameters, name) for name in names]
        self._blank = [coupling.blank for coupling in couplings]
        self.reach = sum(reach for coupling in couplings for reach in coupling.reaches)
        self.run = scripted(_Couplings(couplings))

    def begin(self, voice: Tensor | None) -> FlowStream:
        """One phrase. `voice` is a speaker's embedding [1, channels], or None where the voice has
        only one."""
        biases = []
        for speaker, blank in zip(self._speakers, self._blank, strict=True):
            if speaker is not None and voice is not None:
                gates = speaker(voice).view(len(blank) - 1, len(_GAINS), -1)
                biases.append(list((gates * gates.new_tensor(_GAINS)[:, None]).flatten(1)))
        return FlowStream(self, self._blank, biases)


@dataclass(slots=True)
class FlowStream:
    """One phrase on its way through the flow, from its first row to its last."""

    _flow: Flow
    _states: list[list[Tensor]]
    _biases: list[list[Tensor]]

    def feed(self, rows: Tensor, *, last: bool) -> Tensor:
        """The next rows of the prior to the next frames: behind by the flow's reach, until `last`
        brings them all."""
        out: Tensor
        out, self._states = self._flow.run(rows, self._states, self._biases, last=last)
        return out


def _gate_of(parameters: Parameters, module: str) -> Dense:
    weight, bias = parameters.convolution(module)
    gains = weight.new_tensor(_GAINS).repeat_interleave(len(weight) // len(_GAINS))
    dilation = parameters.onnx.convolutions[module]["dilations"][0]
    return Dense(weight * gains[:, None, None], bias * gains, dilation)


def _res_skip_of(parameters: Parameters, module: str, post: Tensor) -> Dense:
    """What is added to the hidden rows (not in the last layer), and what is skipped through `post`,
    [out, width]."""
    parts = parameters.convolution(module)
    num_res = len(parts[0]) - post.shape[1]
    weight, bias = (
        torch.cat([p[:num_res], torch.tensordot(post.double(), p[num_res:].double(), 1).to(p)])
        for p in parts
    )
    return Dense(weight, bias)


def _gate(rows: Tensor, width: int) -> Tensor:
    """tanh(a) * sigmoid(b), of rows that hold 2a and b in `width` channels each. A sigmoid is
    vectorised and a tanh, on a CPU, takes eight times as long."""
    rows.sigmoid_()
    return rows[:, :width].mul_(2).sub_(1) * rows[:, width:]
