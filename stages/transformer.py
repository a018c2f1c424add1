"""One decoder-only transformer in plain torch: the Llama layout, and Qwen3's additions to it.

RMS norm, rotary positions, grouped-query attention and a gated feed-forward (Touvron et al. 2023,
"LLaMA"); with `qk_norm` and `qkv_bias` as in Qwen3 and Qwen2. Many sequences advance in one pass,
by a prompt's tokens or by one each. It knows nothing of requests, text or sampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.attention import SpanBatch
from stages.device import on_device
from stages.kv_cache import CacheShape, KvCache
from stages.linear import Linear

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from stages.attention import Batch, Segment


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """Sizes and choices; `max_tokens` is the context, `tied_head` reuses the embedding."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_tokens: int
    rope_theta: float
    rms_eps: float
    tied_head: bool
    qk_norm: bool = False
    qkv_bias: bool = False


class Decoder:
    """The layers and the norm after them, under names that begin with `prefix`.

    Of the multimodal rotary positions of Qwen's talkers nothing is left here: speech and text have
    the same position on all three axes, and then they are plain ones.
    """

    def __init__(self, config: TransformerConfig, source: Source, prefix: str) -> None:
        self.config = config
        self._dtype = source.state_dtype
        self._device = source.device
        self._layers = [
            _Layer(config, source, f"{prefix}layers.{i}.") for i in range(config.num_layers)
        ]
        self._norm = source.copy(f"{prefix}norm.weight")
        half = torch.arange(0, config.head_dim, 2, device=source.device) / config.head_dim
        self._frequencies = (config.rope_theta**-half).repeat(2)
        self._signs = torch.ones(config.head_dim, device=source.device)
        self._signs[: config.head_dim // 2] = -1.0

    @property
    def cache_shape(self) -> CacheShape:
        """What a token of a sequence needs in a cache."""
        c = self.config
        return CacheShape(
            c.num_layers, c.num_kv_heads, c.head_dim, c.max_tokens, self._dtype, self._device
        )

    def __call__(self, state: Tensor, batch: Batch, rows: Tensor | None = None) -> Tensor:
        """Embeddings [tokens, hidden], which are overwritten → normed states of `rows`, or of all.

        Keys and values go where the batch says.
        """
        rotation = self._rotation(batch.positions)
        for i, layer in enumerate(self._layers):
            state.add_(layer.attention(state, i, batch, rotation))
            state.add_(layer.feed_forward(state))
        return _rms_norm(state if rows is None else state[rows], self._norm, self.config.rms_eps)

    def _rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines, [tokens, 1, head_dim] (Su et al. 2021, in half-split order)."""
        angles = positions[:, None, None].float() * self._frequencies
        sines = angles.sin() * self._signs
        return angles.cos().to(self._dtype), sines.to(self._dtype)


class Transformer:
    """The model on its device. Results for a sequence do not depend on what runs beside it.

    "Not" is within the rounding of other matrix shapes: 1e-4 in the logits in float32.
    """

    def __init__(
        self,
        config: TransformerConfig,
        tensors: Mapping[str, Tensor],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        """Take the weights under their Hugging Face names; KeyError names a missing one."""
        self.config = config
        source = Source(tensors, device, dtype)
        self._state_dtype = source.state_dtype
        self._embedding = source.copy("model.embed_tokens.weight").to(dtype)
        self._decoder = Decoder(config, source, "model.")
        head = self._embedding if config.tied_head else source.weight("lm_head.weight")
        self._head = Linear(head)

    def new_cache(self) -> KvCache:
        """An empty cache for this model's sequences."""
        return KvCache(self._decoder.cache_shape)

    @torch.inference_mode()
    def forward(self, segments: Sequence[Segment]) -> Tensor:
        """Advance each segment's sequence by its tokens; at least one segment, each slot once.

        Gives float32 logits [those that want them, vocabulary], in the order of the segments.
        """
        batch = SpanBatch([segment.span for segment in segments], self.config.num_heads)
        tokens = [token for i in batch.order for token in segments[i].tokens]
        index = on_device(tokens, batch.positions.device)
        state = functional.embedding(index, self._embedding).to(self._state_dtype)
        last = self._decoder(state, batch, batch.last)
        if not len(last):
            return last.new_empty((0, self.config.vocab_size), dtype=torch.float32)
        return self._head(last).float()


class Source:
    """The weights by name, brought to their device and type. Nothing keeps the file mapped."""

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._tensors = tensors
        self.device = device
        self._dtype = dtype
        # bfloat16 attention over a cache is slow on CPUs: there only the weights are small.
        self.state_dtype = torch.float32 if device.type == "cpu" else dtype

    def copy(self, name: str) -> Tensor:
        """A tensor in the type of states."""
        return self._tensors[name].to(self.device, self.state_dtype, copy=True)

    def weight(self, *names: str) -> Tensor:
        """The matrices one above the other: one product instead of several."""
        parts = [self._tensors[name].to(self.device, self._dtype) for name in names]
        return torch.cat(parts)


class _Layer:
    """One block: attention and feed-forward, each with its norm before and without the residual."""

    def __init__(self, config: TransformerConfig, source: Source, prefix: str) -> None:
        self._config = config
        attention = prefix + "self_attn."
        projections = [f"{attention}{name}_proj" for name in "qkv"]
        bias = source.weight(*[f"{name}.bias" for name in projections]) if config.qkv_bias else None
        self._qkv = Linear(source.weight(*[f"{name}.weight" for name in projections]), bias)
        self._qk_norm = _qk_norm(config, source, attention) if config.qk_norm else None
        self._out = Linear(source.weight(attention + "o_proj.weight"))
        self._attention_norm = source.copy(prefix + "input_layernorm.weight")
        self._feed_norm = source.copy(prefix + "post_attention_layernorm.weight")
        gate_up = source.weight(prefix + "mlp.gate_proj.weight", prefix + "mlp.up_proj.weight")
        self._gate_up = Linear(gate_up)
        self._down = Linear(source.weight(prefix + "mlp.down_proj.weight"))

    def attention(
        self, state: Tensor, index: int, batch: Batch, rotation: tuple[Tensor, Tensor]
    ) -> Tensor:
        """[tokens, hidden] → [tokens, hidden]; keys and values go into the slots."""
        c = self._config
        x = self._qkv(_rms_norm(state, self._attention_norm, c.rms_eps)).to(state.dtype)
        x = x.view(len(x), -1, c.head_dim)
        qk = x[:, : c.num_heads + c.num_kv_heads]
        if self._qk_norm is not None:
            qk.copy_(_rms_norm(qk, None, c.rms_eps).mul_(self._qk_norm))
        cosines, sines = rotation
        swapped = qk.roll(c.head_dim // 2, -1)
        qk.mul_(cosines).addcmul_(swapped, sines)
        return self._out(batch.attend(index, x[:, : c.num_heads], x[:, c.num_heads :]))

    def feed_forward(self, state: Tensor) -> Tensor:
        """[tokens, hidden] → [tokens, hidden]."""
        both = self._gate_up(_rms_norm(state, self._feed_norm, self._config.rms_eps))
        gate, up = both.chunk(2, dim=-1)
        return self._down(functional.silu(gate).mul_(up))


def _qk_norm(config: TransformerConfig, source: Source, prefix: str) -> Tensor:
    """The norms' weights for each query and key head: [heads + kv_heads, head_dim]."""
    q = source.copy(prefix + "q_norm.weight").expand(config.num_heads, -1)
    k = source.copy(prefix + "k_norm.weight").expand(config.num_kv_heads, -1)
    return torch.cat([q, k])


def _rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Over the last dimension (Zhang and Sennrich 2019)."""
    return functional.rms_norm(x, (x.shape[-1],), weight, eps)
