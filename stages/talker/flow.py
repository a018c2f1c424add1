"""The flow of VITS, inverse and in a stream: prior rows in, latent frames out, each computed once.

Every layer keeps the rows that its next outputs read again, so that a slice of frames costs what
they cost in the whole, and a phrase's state is 32 rows for each coupling. Shapes are
[frames, channels].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.convolution import Dense

if TYPE_CHECKING:
    from torch import Tensor

    from stages.convolution import Parameters

_GAINS = (2.0, 1.0)  # what `_gate` wants of both halves


class _Coupling:
    """One coupling: half of the channels shifts the other by a WaveNet. The weights.

    What the layers skip to the end is only summed there and goes through a linear layer, `post`, so
    each layer's weights for it have that in them already. `pre` gives its bias besides, as the
    first of the sum.
    """

    def __init__(self, parameters: Parameters, module: str) -> None:
        weight, bias = parameters.convolution(f"{module}.pre")
        post, post_bias = parameters.convolution(f"{module}.post")
        self.width = len(weight)
        blank = weight.new_zeros(len(post), *weight.shape[1:])
        self.pre = Dense(torch.cat([weight, blank]), torch.cat([bias, -post_bias]))
        self.speaker = parameters.optional_dense(f"{module}.enc.cond_layer")
        num_layers = parameters.count(f"{module}.enc.in_layers.{{}}")
        self.layers = [
            (
                _gate_of(parameters, f"{module}.enc.in_layers.{layer}"),
                _res_skip_of(parameters, f"{module}.enc.res_skip_layers.{layer}", -post[:, :, 0]),
            )
            for layer in range(num_layers)
        ]
        self.reach = sum(gate.reach for gate, _ in self.layers)


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


class Flow:
    """The weights; `reach` rows after a frame are read for it."""

    def __init__(self, parameters: Parameters) -> None:
        # Every second flow of VITS only swaps the halves (and has no weights).
        numbers = [n for n in range(64) if parameters.has(f"flow.flows.{n}.pre")]
        self.couplings = [_Coupling(parameters, f"flow.flows.{n}") for n in reversed(numbers)]
        self.reach = sum(coupling.reach for coupling in self.couplings)


class FlowStream:
    """One phrase on its way through the flow, from its first row to its last. `voice` is a
    speaker's embedding [1, channels], or None where the voice has only one."""

    def __init__(self, flow: Flow, voice: Tensor | None) -> None:
        self._couplings = [_CouplingStream(coupling, voice) for coupling in flow.couplings]

    def feed(self, rows: Tensor, *, last: bool) -> Tensor:
        """The next rows of the prior to the next frames: behind by the flow's reach, until `last`
        brings them all."""
        for coupling in self._couplings:
            rows = coupling.feed(rows.flip(1), last=last)
        return rows


class _CouplingStream:
    def __init__(self, coupling: _Coupling, voice: Tensor | None) -> None:
        self._coupling = coupling
        self._biases: list[Tensor] | None = None
        if coupling.speaker and voice is not None:
            biases = coupling.speaker(voice).view(len(coupling.layers), len(_GAINS), -1)
            self._biases = list((biases * biases.new_tensor(_GAINS)[:, None]).flatten(1))
        self._coming: Tensor | None = None  # rows that are not given out yet
        self._read: list[Tensor | None] = [None] * len(coupling.layers)

    def feed(self, rows: Tensor, *, last: bool) -> Tensor:
        coupling = self._coupling
        half = rows.shape[1] // 2
        state = coupling.pre(rows[:, :half])  # hidden, and what layers skipped to the end
        for number in range(len(coupling.layers)):
            state = self._layer(number, state, last=last)
        if self._coming is not None:
            rows = torch.cat([self._coming, rows])
        done = len(state)
        self._coming = rows[done:].clone()
        kept, shifted = rows[:done, :half], rows[:done, half:]
        return torch.cat([kept, shifted + state[:, -half:]], dim=1)

    def _layer(self, number: int, state: Tensor, *, last: bool) -> Tensor:
        width, (gate, res_skip) = self._coupling.width, self._coupling.layers[number]
        before = self._read[number]
        if before is None:
            before = state.new_zeros(gate.reach, state.shape[1])
        state = torch.cat([before, state])
        if last:
            state = functional.pad(state, (0, 0, 0, gate.reach))
        self._read[number] = state[-2 * gate.reach :].clone()
        if len(state) <= 2 * gate.reach:
            return state[:0]
        gated = gate.blocks(state[:, :width])
        if self._biases is not None:
            gated += self._biases[number]
        state = state[gate.reach : len(state) - gate.reach]
        change = res_skip.blocks(_gate(gated, width))[: len(state)]
        return state[:, -change.shape[1] :] + change


def _gate(rows: Tensor, width: int) -> Tensor:
    """tanh(a) * sigmoid(b), of rows that hold 2a and b in `width` channels each. A sigmoid is
    vectorised and a tanh, on a CPU, takes eight times as long."""
    rows.sigmoid_()
    return rows[:, :width].mul_(2).sub_(1) * rows[:, width:]
