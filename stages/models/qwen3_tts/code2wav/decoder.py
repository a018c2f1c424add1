"""The codec's decoder: turns frames of codes into samples, for many streams in one call.

The layers are those of the 12 Hz tokenizer of the public `qwen-tts` package: a residual vector
quantizer, windowed attention, ConvNeXt upsampling, and a causal GAN decoder with snake activations.
All layers are causal. So each frame is decoded once, a stream keeps only its `StreamingState`, and
the samples do not depend on where the stream is cut. The decoder knows nothing of requests, nor of
when to decode which frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.kernels.linear import Linear
from stages.models.qwen3_tts.code2wav.attention import (
    AttentionInputs,
    AttentionShape,
    WindowedAttention,
)
from stages.models.qwen3_tts.code2wav.causal_layers import (
    CausalConv,
    CausalDepthwiseConv,
    CausalTransposedConv,
    Snake,
)
from stages.models.qwen3_tts.code2wav.module import Module
from stages.models.qwen3_tts.code2wav.streaming_state import StateLayout, StreamingState

if TYPE_CHECKING:
    from torch import Tensor

    from stages.models.qwen3_tts.code2wav.model_config import CodecConfig
    from stages.weights.safetensors import Weights

_DILATIONS = (1, 3, 9)
_USAGE_FLOOR = 1e-5  # for codes that training never chose
_NORM_EPS = 1e-6  # of the layer norm in ConvNeXt blocks


class Decoder:
    """The model on its device.

    In float32, samples differ by at most 3e-5 between any two ways to cut or batch the streams.
    """

    def __init__(
        self, config: CodecConfig, weights: Weights, device: torch.device, dtype: torch.dtype
    ) -> None:
        """Load the weights. Raises CheckpointError for missing or unknown tensors."""
        self.config, self.device, self.dtype = config, device, dtype
        module = Module(weights, device, "decoder.")
        self._layout = StateLayout()
        build = _Builder(self._layout, dtype)
        self._quantizer = _Quantizer(config, module.inner("quantizer"), dtype)
        width = config.latent_dim
        self._pre = build.conv(module.inner("pre_conv.conv"), config.codebook_dim, width, 3)
        self._transformer = _Transformer(config, module.inner("pre_transformer"), build)
        self._upsample = [
            _Upsample(width, factor, module.inner(f"upsample.{i}"), build)
            for i, factor in enumerate(config.upsampling_ratios)
        ]
        inner = module.inner("decoder")
        self._first = build.conv(inner.inner("0.conv"), width, config.decoder_dim, 7)
        self._blocks = []
        width = config.decoder_dim
        for i, rate in enumerate(config.upsample_rates):
            self._blocks.append(_Block(width, rate, inner.inner(f"{i + 1}.block"), build))
            width //= 2
        last = len(config.upsample_rates) + 1
        self._snake = Snake(inner.inner(f"{last}"), width, dtype)
        self._last = build.conv(inner.inner(f"{last + 1}.conv"), width, 1, 7)
        module.check_all_taken("input_proj")  # a part of the quantizer that only training uses

    @property
    def state_size(self) -> int:
        """The number of values in a stream's state."""
        return self._layout.size

    def new_state(self, num_streams: int = 1) -> StreamingState:
        """The state of new streams."""
        values = torch.zeros(num_streams, self.state_size, device=self.device, dtype=self.dtype)
        return StreamingState(
            values, torch.zeros(num_streams, dtype=torch.int64, device=self.device)
        )

    @torch.inference_mode()
    def decode(self, codes: Tensor, state: StreamingState) -> Tensor:
        """Decode [streams, frames, num_quantizers] to float32 samples [streams, frames * hop].

        `state.values` is advanced past these frames. The caller advances the positions.
        """
        rows = self._transformer(self._pre(self._quantizer(codes), state), state)
        for upsample in self._upsample:
            rows = upsample(rows, state)
        rows = self._first(rows, state)
        for block in self._blocks:
            rows = block(rows, state)
        return self._last(self._snake(rows), state)[..., 0].float().clamp_(-1, 1)


class _Builder:
    """Builds convolutions from weights, and assigns a slice of the state to each."""

    def __init__(self, layout: StateLayout, dtype: torch.dtype) -> None:
        self.layout, self.dtype = layout, dtype

    def conv(
        self, module: Module, inputs: int, outputs: int, taps: int, dilation: int = 1
    ) -> CausalConv:
        weight, bias = module.take("weight", outputs, inputs, taps), module.take("bias", outputs)
        return CausalConv(self.layout, weight, bias, self.dtype, dilation)

    def transposed_conv(
        self, module: Module, inputs: int, outputs: int, size: int, stride: int
    ) -> CausalTransposedConv:
        weight, bias = module.take("weight", inputs, outputs, size), module.take("bias", outputs)
        return CausalTransposedConv(self.layout, weight, bias, self.dtype, stride)


class _Quantizer:
    """Maps a frame's codes to the sum of their projected vectors.

    The first codebook has its own projection, the others share one. The vectors are projected once,
    at load. So a frame is one sum of table rows.
    """

    def __init__(self, config: CodecConfig, module: Module, dtype: torch.dtype) -> None:
        tables = []
        for i in range(config.num_quantizers):
            part, number = ("rvq_first", i) if i == 0 else ("rvq_rest", i - 1)
            tables.append(self._table(config, module.inner(part), number))
        self._table_rows = torch.cat(tables).to(dtype)
        num_rows = len(self._table_rows)
        self._starts = torch.arange(0, num_rows, config.codebook_size, device=tables[0].device)

    @staticmethod
    def _table(config: CodecConfig, module: Module, number: int) -> Tensor:
        """A projected codebook [codebook_size, codebook_dim].

        A checkpoint stores the sum of the vectors of each code, and their number.
        """
        size, width = config.codebook_size, config.codebook_dim
        book = module.inner(f"vq.layers.{number}._codebook")
        usage = book.take("cluster_usage", size).clamp(min=_USAGE_FLOOR)
        vectors = book.take("embedding_sum", size, width // 2) / usage[:, None]
        projection = module.take("output_proj.weight", width, width // 2, 1)[..., 0]
        return vectors @ projection.T

    def __call__(self, codes: Tensor) -> Tensor:
        rows = functional.embedding_bag(
            (codes + self._starts).flatten(0, 1), self._table_rows, mode="sum"
        )
        return rows.view(*codes.shape[:2], -1)


class _Transformer:
    """Layers of windowed attention and gated feed-forward, with output scales folded in."""

    def __init__(self, config: CodecConfig, module: Module, build: _Builder) -> None:
        c, hidden = config, config.hidden_size
        self._shape = AttentionShape(
            hidden,
            c.num_attention_heads,
            c.head_dim,
            c.sliding_window,
            c.rope_theta,
        )
        self._eps, self._dtype = c.rms_norm_eps, build.dtype
        self._in = _linear(module.inner("input_proj"), c.latent_dim, hidden, build.dtype)
        self._layers = [
            _TransformerLayer(config, self._shape, module.inner(f"layers.{i}"), build)
            for i in range(c.num_hidden_layers)
        ]
        self._norm = module.take("norm.weight", hidden).to(build.dtype)
        self._out = _linear(module.inner("output_proj"), hidden, c.latent_dim, build.dtype)

    def __call__(self, rows: Tensor, state: StreamingState) -> Tensor:
        streams, time, _ = rows.shape
        inputs = AttentionInputs.of(self._shape, state, time, self._dtype)
        rows = self._in(rows.flatten(0, 1)).view(streams, time, -1)
        for layer in self._layers:
            rows = layer(rows, state, inputs)
        normed = functional.rms_norm(rows, rows.shape[-1:], self._norm, self._eps)
        return self._out(normed.flatten(0, 1)).view(streams, time, -1)


class _TransformerLayer:
    """A pre-norm layer: attention and feed-forward, each with a residual connection."""

    def __init__(
        self, config: CodecConfig, shape: AttentionShape, module: Module, build: _Builder
    ) -> None:
        hidden, inner, dtype = config.hidden_size, config.intermediate_size, build.dtype
        self._eps = config.rms_norm_eps
        self._attention_norm = module.take("input_layernorm.weight", hidden).to(dtype)
        scale = module.take("self_attn_layer_scale.scale", hidden)
        self._attention = WindowedAttention(
            build.layout, module.inner("self_attn"), shape, scale, dtype
        )
        self._feed_norm = module.take("post_attention_layernorm.weight", hidden).to(dtype)
        names = ("mlp.gate_proj.weight", "mlp.up_proj.weight")
        gate_up = [module.take(name, inner, hidden) for name in names]
        down = module.take("mlp.down_proj.weight", hidden, inner)
        scale = module.take("mlp_layer_scale.scale", hidden)
        self._gate_up = Linear(torch.cat(gate_up), dtype)
        self._down = Linear(down * scale[:, None], dtype)

    def __call__(self, rows: Tensor, state: StreamingState, inputs: AttentionInputs) -> Tensor:
        rows = rows + self._attention(self._normed(rows, self._attention_norm), state, inputs)
        gate, up = self._gate_up(self._normed(rows, self._feed_norm).flatten(0, 1)).chunk(2, -1)
        return rows + self._down(functional.silu(gate).mul_(up)).view(rows.shape)

    def _normed(self, rows: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(rows, rows.shape[-1:], weight, self._eps)


class _Upsample:
    """`factor` output rows for each input row, then a ConvNeXt block (Liu et al. 2022)."""

    def __init__(self, width: int, factor: int, module: Module, build: _Builder) -> None:
        dtype = build.dtype
        self._up = build.transposed_conv(module.inner("0.conv"), width, width, factor, factor)
        block = module.inner("1")
        depthwise = block.inner("dwconv.conv")
        self._depthwise = CausalDepthwiseConv(
            build.layout,
            depthwise.take("weight", width, 1, 7),
            depthwise.take("bias", width),
            dtype,
        )
        norm = block.inner("norm")
        self._norm = (norm.take("weight", width).to(dtype), norm.take("bias", width).to(dtype))
        gamma = block.take("gamma", width)
        self._widen = _linear(block.inner("pwconv1"), width, 4 * width, dtype)
        self._narrow = _linear(block.inner("pwconv2"), 4 * width, width, dtype, gamma)

    def __call__(self, rows: Tensor, state: StreamingState) -> Tensor:
        rows = self._up(rows, state)
        change = self._depthwise(rows, state)
        change = functional.layer_norm(change, change.shape[-1:], *self._norm, _NORM_EPS)
        change = self._narrow(functional.gelu(self._widen(change.flatten(0, 1))))
        return rows + change.view(rows.shape)


class _Block:
    """`rate` output rows of half the width for each input row, then three residual units."""

    def __init__(self, width: int, rate: int, module: Module, build: _Builder) -> None:
        half = width // 2
        self._snake = Snake(module.inner("0"), width, build.dtype)
        self._up = build.transposed_conv(module.inner("1.conv"), width, half, 2 * rate, rate)
        self._units = [
            _ResidualUnit(half, dilation, module.inner(f"{i + 2}"), build)
            for i, dilation in enumerate(_DILATIONS)
        ]

    def __call__(self, rows: Tensor, state: StreamingState) -> Tensor:
        rows = self._up(self._snake(rows), state)
        for unit in self._units:
            rows = unit(rows, state)
        return rows


class _ResidualUnit:
    """x + conv(snake(conv(snake(x))))."""

    def __init__(self, width: int, dilation: int, module: Module, build: _Builder) -> None:
        self._snakes = [Snake(module.inner(name), width, build.dtype) for name in ("act1", "act2")]
        self._wide = build.conv(module.inner("conv1.conv"), width, width, 7, dilation)
        self._point = build.conv(module.inner("conv2.conv"), width, width, 1)

    def __call__(self, rows: Tensor, state: StreamingState) -> Tensor:
        change = self._wide(self._snakes[0](rows), state)
        return self._point(self._snakes[1](change), state).add_(rows)


def _linear(
    module: Module, inputs: int, outputs: int, dtype: torch.dtype, scale: Tensor | None = None
) -> Linear:
    """A linear layer with bias. Its outputs are multiplied by `scale`, if there is one."""
    weight, bias = module.take("weight", outputs, inputs), module.take("bias", outputs)
    if scale is not None:
        weight, bias = weight * scale[:, None], bias * scale
    return Linear(weight, dtype, bias)
