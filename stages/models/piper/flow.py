"""The inverse flow of VITS as a stream: prior rows in, latent frames out, each computed once.

Every layer keeps the rows that its next outputs read again. So slices cost no more than the whole,
and the state of a phrase is 32 rows for each coupling. Shapes are [frames, channels].
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

_GAINS = (2.0, 1.0)  # `_gate` takes its two halves multiplied by these


class _Layer(nn.Module):
    """One layer of a WaveNet. Its state is the rows that the next call reads again."""

    def __init__(self, gate: Dense, res_skip: Dense) -> None:
        super().__init__()
        self.gate, self.res_skip = gate, res_skip
        self.width = gate.in_channels

    def forward(
        self, state: Tensor, before: Tensor, bias: Tensor | None, *, last: bool
    ) -> tuple[Tensor, Tensor]:
        """The next rows' hidden and skip channels, and the new state.

        `before` is the state of the last call.
        """
        reach = self.gate.reach
        state = torch.cat([before, state])
        if last:
            state = functional.pad(state, [0, 0, 0, reach])
        kept = state[-2 * reach :].clone()
        if len(state) <= 2 * reach:
            return state[:0], kept
        gated = self.gate.valid_padded(state[:, : self.width])
        if bias is not None:
            gated += bias
        state = state[reach : len(state) - reach]
        change = self.res_skip.valid_padded(_gate(gated, self.width))[: len(state)]
        return state[:, -change.shape[1] :] + change, kept


class _Coupling(nn.Module):
    """One coupling: a WaveNet over half of the channels shifts the other half.

    `blank` is its state before the first row. The skip outputs of the layers are summed and go
    through the linear layer `post`. So each layer's skip weights are multiplied by `post` when
    they are loaded, and `pre` gives the bias of `post` as the first term of the sum.
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
        """The next rows and the new state. A state is the input rows without an output yet, and
        the state of each layer."""
        half = rows.shape[1] // 2
        hidden = self.pre(rows[:, :half])  # hidden and skip channels
        layer_states: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            bias = None if biases is None else biases[number]
            hidden, layer_state = layer(hidden, state[1 + number], bias, last=last)
            layer_states.append(layer_state)
        rows = torch.cat([state[0], rows])
        done = len(hidden)
        kept, shifted = rows[:done, :half], rows[:done, half:]
        out = torch.cat([kept, shifted + hidden[:, -half:]], dim=1)
        return out, [rows[done:].clone()] + layer_states  # noqa: RUF005 - TorchScript has no unpacking


class _Couplings(nn.Module):
    """All couplings in one call: rows of the prior → frames, and the new states."""

    def __init__(self, couplings: list[_Coupling]) -> None:
        super().__init__()
        self.couplings = nn.ModuleList(couplings)

    def forward(
        self, rows: Tensor, states: list[list[Tensor]], biases: list[list[Tensor]], *, last: bool
    ) -> tuple[Tensor, list[list[Tensor]]]:
        new_states: list[list[Tensor]] = []
        for number, coupling in enumerate(self.couplings):
            own = biases[number] if len(biases) > 0 else None
            rows, state = coupling(rows.flip(1), states[number], own, last=last)
            new_states.append(state)
        return rows, new_states


class Flow:
    """The weights of the flow. A frame reads `reach` rows after it."""

    def __init__(self, parameters: Parameters) -> None:
        # Every second flow of VITS only swaps the halves, and has no weights.
        numbers = [n for n in range(64) if parameters.has(f"flow.flows.{n}.pre")]
        names = [f"flow.flows.{n}" for n in reversed(numbers)]
        self._speakers = [parameters.optional_dense(f"{name}.enc.cond_layer") for name in names]
        couplings = [_Coupling(parameters, name) for name in names]
        self._blank = [coupling.blank for coupling in couplings]
        self.reach = sum(reach for coupling in couplings for reach in coupling.reaches)
        self.run = scripted(_Couplings(couplings))

    def begin(self, voice: Tensor | None) -> FlowStream:
        """Start a phrase. `voice` is the speaker's embedding [1, channels]; None if the voice has
        only one speaker."""
        biases = []
        for speaker, blank in zip(self._speakers, self._blank, strict=True):
            if speaker is not None and voice is not None:
                gates = speaker(voice).view(len(blank) - 1, len(_GAINS), -1)
                biases.append(list((gates * gates.new_tensor(_GAINS)[:, None]).flatten(1)))
        return FlowStream(self, self._blank, biases)


@dataclass(slots=True)
class FlowStream:
    """The state of one phrase in the flow."""

    _flow: Flow
    _states: list[list[Tensor]]
    _biases: list[list[Tensor]]

    def feed(self, rows: Tensor, *, last: bool) -> Tensor:
        """The next rows of the prior → the next frames.

        Frames come `reach` rows late; with `last`, all remaining frames come.
        """
        out: Tensor
        out, self._states = self._flow.run(rows, self._states, self._biases, last=last)
        return out


def _gate_of(parameters: Parameters, module: str) -> Dense:
    weight, bias = parameters.convolution(module)
    gains = weight.new_tensor(_GAINS).repeat_interleave(len(weight) // len(_GAINS))
    dilation = parameters.onnx.convolutions[module]["dilations"][0]
    return Dense(weight * gains[:, None, None], bias * gains, dilation)


def _res_skip_of(parameters: Parameters, module: str, post: Tensor) -> Dense:
    """The residual part (none in the last layer), and the skip part multiplied by `post`
    [out, width]."""
    parts = parameters.convolution(module)
    num_res = len(parts[0]) - post.shape[1]
    weight, bias = (
        torch.cat([p[:num_res], torch.tensordot(post.double(), p[num_res:].double(), 1).to(p)])
        for p in parts
    )
    return Dense(weight, bias)


def _gate(rows: Tensor, width: int) -> Tensor:
    """tanh(a) * sigmoid(b), for rows that hold 2a and b in `width` channels each.

    tanh(a) is 2 * sigmoid(2a) - 1: on a CPU, torch's tanh takes eight times as long as its sigmoid.
    """
    rows.sigmoid_()
    return rows[:, :width].mul_(2).sub_(1) * rows[:, width:]
