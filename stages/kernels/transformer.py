"""A decoder-only transformer in plain torch: the Llama layout, and Qwen's additions to it.

It has RMS norm, rotary positions, grouped-query attention and a gated feed-forward (Touvron et al.
2023, "LLaMA"). `qk_norm` is Qwen3's addition, `qkv_bias` Qwen2's. Many sequences advance in one
pass, by a prompt's tokens or by one each. It knows nothing of requests, text or sampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.kernels.attention import SpanBatch
from stages.kernels.device import on_device
from stages.kernels.kv_cache import CacheShape, KvCache
from stages.kernels.linear import Linear

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from stages.kernels.attention import Batch, Segment


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """Sizes and variants. `max_tokens` is the context length. With `tied_head`, the head is the
    embedding."""

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


_NORMS = ("input", "post_attention")
_NUM_EXACT = 32  # logits that are computed in float32


class DecoderOnlyTransformer:
    """The layers and the norm after them; the names of the weights begin with `prefix`.

    Qwen's talkers have multimodal rotary positions. Speech and text have the same position on all
    three axes, which makes them plain rotary positions.
    """

    def __init__(self, config: TransformerConfig, source: Source, prefix: str) -> None:
        self.config = config
        self._dtype = source.state_dtype
        self._device = source.device
        self._layers = [
            _Layer(config, source, f"{prefix}layers.{i}.") for i in range(config.num_layers)
        ]
        self._norm = _RmsNorm(source.copy(f"{prefix}norm.weight"), config.rms_eps)
        half = torch.arange(0, config.head_dim, 2, device=source.device) / config.head_dim
        self._frequencies = (config.rope_theta**-half).repeat(2)
        self._signs = torch.ones(config.head_dim, device=source.device)
        self._signs[: config.head_dim // 2] = -1.0

    @property
    def cache_shape(self) -> CacheShape:
        """What one token needs in a cache."""
        c = self.config
        return CacheShape(
            c.num_layers, c.num_kv_heads, c.head_dim, c.max_tokens, self._dtype, self._device
        )

    def __call__(self, state: Tensor, batch: Batch, rows: Tensor | None = None) -> Tensor:
        """Embeddings [tokens, hidden] → normalised float32 states of `rows`, or of all tokens.

        Overwrites the embeddings. Stores keys and values in the slots of the batch.
        """
        rotation = self._rotation(batch.positions)
        for i, layer in enumerate(self._layers):
            state.add_(layer.attention(state, i, batch, rotation))
            state.add_(layer.feed_forward(state))
        return self._norm(state if rows is None else state[rows])

    def _rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines, [tokens, 1, head_dim] (Su et al. 2021, in half-split order)."""
        angles = positions[:, None, None].float() * self._frequencies
        sines = angles.sin() * self._signs
        return angles.cos().to(self._dtype), sines.to(self._dtype)


class Transformer:
    """A language model on its device. A sequence's results do not depend on the rest of the batch.

    In float32 the logits of other batches differ by at most 1e-4, from rounding.
    """

    def __init__(
        self,
        config: TransformerConfig,
        tensors: Mapping[str, Tensor],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        """`tensors` has Hugging Face names. Raises KeyError with the name of a missing one."""
        self.config = config
        source = Source(tensors, device, dtype)
        self._state_dtype = source.state_dtype
        self._embedding = source.rows("model.embed_tokens")
        self._decoder = DecoderOnlyTransformer(config, source, "model.")
        head = "model.embed_tokens" if config.tied_head else "lm_head"
        self._head = source.linear(head)
        self._head_rows = self._embedding if config.tied_head else source.rows(head)

    def new_cache(self) -> KvCache:
        """An empty cache for this model's sequences."""
        return KvCache(self._decoder.cache_shape)

    @torch.inference_mode()
    def forward(self, segments: Sequence[Segment]) -> Tensor:
        """Advance each sequence by its segment. Takes at least one segment, and each slot once.

        Returns float32 logits [segments that want them, vocabulary], in the order of the segments.
        """
        batch = SpanBatch([segment.span for segment in segments], self.config.num_heads)
        tokens = [token for i in batch.order for token in segments[i].tokens]
        index = on_device(tokens, batch.positions.device)
        state = functional.embedding(index, self._embedding).to(self._state_dtype)
        last = self._decoder(state, batch, batch.last)
        if not len(last):
            return last.new_empty((0, self.config.vocab_size))
        return self._logits(last)

    def _logits(self, state: Tensor) -> Tensor:
        """[rows, hidden] → float32 logits [rows, vocabulary].

        From 16 on, bfloat16 has steps of 0.125. This caused half of the divergence from float32,
        so the likeliest logits are computed again in float32.
        """
        logits = self._head(state)
        if logits.dtype == torch.float32:
            return logits
        logits = logits.float()
        likely = logits.topk(min(_NUM_EXACT, self.config.vocab_size), sorted=False).indices
        exact = torch.bmm(self._head_rows[likely].float(), state[..., None])
        return logits.scatter_(1, likely, exact.squeeze(-1))


class Source:
    """Reads weights by name, as copies on a device in a dtype; nothing keeps the file mapped."""

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._tensors = tensors
        self.device = device
        self._dtype = dtype
        # bfloat16 attention over a cache is slow on CPUs, so there only the weights are bfloat16.
        self.state_dtype = torch.float32 if device.type == "cpu" else dtype

    def copy(self, name: str) -> Tensor:
        """A tensor in the dtype of states."""
        return self._tensors[name].to(self.device, self.state_dtype, copy=True)

    def rows(self, *names: str) -> Tensor:
        """The matrices, concatenated by rows, in the dtype of weights."""
        return torch.cat([self._tensors[f"{n}.weight"].to(self.device, self._dtype) for n in names])

    def linear(self, *names: str, bias: bool = False) -> Linear:
        """One layer of the matrices, concatenated by rows: one product instead of several."""
        weight = self._concatenated(names, "weight")
        return Linear(weight, self._dtype, self._concatenated(names, "bias") if bias else None)

    def _concatenated(self, names: Sequence[str], kind: str) -> Tensor:
        return torch.cat([self._tensors[f"{name}.{kind}"].to(self.device) for name in names])


class _Layer:
    """Attention and feed-forward, each after its norm. The caller adds the residuals."""

    def __init__(self, config: TransformerConfig, source: Source, prefix: str) -> None:
        self._config = config
        attention = prefix + "self_attn."
        projections = [f"{attention}{name}_proj" for name in "qkv"]
        self._qkv = source.linear(*projections, bias=config.qkv_bias)
        self._qk_norm = _qk_norm(config, source, attention) if config.qk_norm else None
        self._out = source.linear(attention + "o_proj")
        norms = [source.copy(f"{prefix}{name}_layernorm.weight") for name in _NORMS]
        self._attention_norm, self._feed_norm = (_RmsNorm(w, config.rms_eps) for w in norms)
        self._gate_up = source.linear(prefix + "mlp.gate_proj", prefix + "mlp.up_proj")
        self._down = source.linear(prefix + "mlp.down_proj")

    def attention(
        self, state: Tensor, index: int, batch: Batch, rotation: tuple[Tensor, Tensor]
    ) -> Tensor:
        """[tokens, hidden] → [tokens, hidden]; stores keys and values in the slots."""
        c = self._config
        x = self._qkv(self._attention_norm(state)).to(state.dtype)
        x = x.view(len(x), -1, c.head_dim)
        qk = x.narrow(1, 0, c.num_heads + c.num_kv_heads)  # indexing takes twice as long
        if self._qk_norm is not None:
            qk.copy_(self._qk_norm(qk))
        cosines, sines = rotation
        swapped = qk.roll(c.head_dim // 2, -1)
        qk.mul_(cosines).addcmul_(swapped, sines)
        return self._out(
            batch.attend(index, *x.split_with_sizes((c.num_heads, 2 * c.num_kv_heads), 1))
        )

    def feed_forward(self, state: Tensor) -> Tensor:
        """[tokens, hidden] → [tokens, hidden]."""
        both = self._gate_up(self._feed_norm(state))
        gate, up = both.chunk(2, dim=-1)
        return self._down(functional.silu(gate).mul_(up))


def _qk_norm(config: TransformerConfig, source: Source, prefix: str) -> _RmsNorm:
    """The norms of all query and key heads: [heads + kv_heads, head_dim]."""
    q = source.copy(prefix + "q_norm.weight").expand(config.num_heads, -1)
    k = source.copy(prefix + "k_norm.weight").expand(config.num_kv_heads, -1)
    return _RmsNorm(torch.cat([q, k]), config.rms_eps)


class _RmsNorm:
    """RMS norm over the last dimension (Zhang and Sennrich 2019).

    Computed as x / hypot(|x|, √(size eps)) · √size w, in four calls: one row of 576 takes 3.5 µs,
    torch's own norm 7.3 µs.
    """

    def __init__(self, weight: Tensor, eps: float) -> None:
        size = weight.shape[-1]
        self._weight = weight.float() * size**0.5
        self._floor = torch.tensor((size * eps) ** 0.5, device=weight.device)

    def __call__(self, x: Tensor) -> Tensor:
        """[..., size] in any float dtype → [..., size] in float32."""
        norm = torch.linalg.vector_norm(x, 2, -1, True, dtype=torch.float32)
        y: Tensor = (x / norm.hypot_(self._floor)).mul_(self._weight)
        return y
