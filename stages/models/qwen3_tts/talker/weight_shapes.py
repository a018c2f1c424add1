"""The shape of each tensor of a talker by its configuration. Checked before any tensor is read.

Without this check a tensor of the wrong shape would fail later in a matrix product, without a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stages.models.qwen3_tts.talker.model_config import LayerSizes, QwenTtsConfig
    from stages.weights.safetensors import Weights

    Shapes = Iterator[tuple[str, tuple[int, ...]]]


def check_weight_shapes(config: QwenTtsConfig, weights: Weights) -> None:
    """Raise CheckpointError if a tensor is missing or has another shape. It names the tensor."""
    for name, shape in _talker(config):
        weights.check(f"talker.{name}", *shape)
    for name, shape in _predictor(config):
        weights.check(f"talker.code_predictor.{name}", *shape)


def _talker(config: QwenTtsConfig) -> Shapes:
    hidden, text = config.talker.hidden_size, config.text_hidden_size
    yield "model.text_embedding.weight", (config.text_vocab_size, text)
    yield "model.codec_embedding.weight", (config.talker.vocab_size, hidden)
    yield from _linear("text_projection.linear_fc1", text, text, bias=True)
    yield from _linear("text_projection.linear_fc2", hidden, text, bias=True)
    yield from _layers(config.talker)
    yield "codec_head.weight", (config.talker.vocab_size, hidden)


def _predictor(config: QwenTtsConfig) -> Shapes:
    sizes, talker_hidden = config.predictor, config.talker.hidden_size
    for group in range(config.num_groups - 1):
        yield f"model.codec_embedding.{group}.weight", (sizes.vocab_size, talker_hidden)
        yield f"lm_head.{group}.weight", (sizes.vocab_size, sizes.hidden_size)
    if sizes.hidden_size != talker_hidden:
        name = "small_to_mtp_projection"
        yield from _linear(name, sizes.hidden_size, talker_hidden, bias=True)
    yield from _layers(sizes)


def _layers(sizes: LayerSizes) -> Shapes:
    """The tensors of the layers of a decoder-only transformer."""
    hidden, inner, dim = sizes.hidden_size, sizes.intermediate_size, sizes.head_dim
    queries, keys = sizes.num_heads * dim, sizes.num_kv_heads * dim
    for i in range(sizes.num_layers):
        layer = f"model.layers.{i}"
        yield from _linear(f"{layer}.self_attn.q_proj", queries, hidden, bias=sizes.qkv_bias)
        for name in "kv":
            yield from _linear(f"{layer}.self_attn.{name}_proj", keys, hidden, bias=sizes.qkv_bias)
        yield from _linear(f"{layer}.self_attn.o_proj", hidden, queries)
        for name in ("gate", "up"):
            yield from _linear(f"{layer}.mlp.{name}_proj", inner, hidden)
        yield from _linear(f"{layer}.mlp.down_proj", hidden, inner)
        for name in ("self_attn.q_norm", "self_attn.k_norm"):
            yield f"{layer}.{name}.weight", (dim,)
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"{layer}.{name}.weight", (hidden,)
    yield "model.norm.weight", (hidden,)


def _linear(name: str, outputs: int, inputs: int, *, bias: bool = False) -> Shapes:
    yield f"{name}.weight", (outputs, inputs)
    if bias:
        yield f"{name}.bias", (outputs,)
