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
    """One coupling: half of the channels shifts the other by a WaveNet. The weights."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        self.pre = Dense(parameters, f"{module}.pre")
        self.post = Dense(parameters, f"{module}.post")
        self.speaker = parameters.optional_dense(f"{module}.enc.cond_layer")
        self.layers = [
            (
                Dense(parameters, f"{module}.enc.in_layers.{layer}", gains=_GAINS),
                Dense(parameters, f"{module}.enc.res_skip_layers.{layer}"),
            )
            for layer in range(parameters.count(f"{module}.enc.in_layers.{{}}"))
        ]
        self.reach = sum(gate.reach for gate, _ in self.layers)


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
        hidden = coupling.pre(rows[:, :half])
        width = hidden.shape[1]
        state = functional.pad(hidden, (0, width))  # hidden, and what layers skipped to the end
        for number in range(len(coupling.layers)):
            state = self._layer(number, state, width, last=last)
        if self._coming is not None:
            rows = torch.cat([self._coming, rows])
        done = len(state)
        self._coming = rows[done:].clone()
        kept, shifted = rows[:done, :half], rows[:done, half:]
        return torch.cat([kept, shifted - coupling.post(state[:, -width:])], dim=1)

    def _layer(self, number: int, state: Tensor, width: int, *, last: bool) -> Tensor:
        gate, res_skip = self._coupling.layers[number]
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
        if change.shape[1] == width:  # the last layer changes nothing but what is skipped
            return state[:, width:] + change
        return state + change


def _gate(rows: Tensor, width: int) -> Tensor:
    """tanh(a) * sigmoid(b), of rows that hold 2a and b in `width` channels each. A sigmoid is
    vectorised and a tanh, on a CPU, takes eight times as long."""
    rows.sigmoid_()
    return rows[:, :width].mul_(2).sub_(1) * rows[:, width:]
