"""Converts a GGUF file of the Llama layout into the files that the thinker loads.

Weights are dequantised to float32. llama.cpp interleaves the rotary dimensions of queries and keys;
this is undone. The tokenizer is rebuilt from the file's vocabulary and merges.
Format: ggml's docs/gguf.md; names and order: llama.cpp's convert_hf_to_gguf.py.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from stages.models.llama.model_files import ModelFiles, ModelSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GLOBAL_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL = 3  # the GGUF token type of control tokens
_EXPECTED = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
}


def convert(source: Path, files: ModelFiles) -> None:
    """Convert the GGUF file `source` to `files`: all of them or none.

    If another process wrote them first, its files stay. Raises ValueError for a kind of GGUF file
    that is not supported.
    """
    reader = gguf.GGUFReader(source)
    for key, expected in _EXPECTED.items():
        if (found := _field(reader, key)) != expected:
            raise ValueError(f"{source.name}: {key} is {found!r}, but must be {expected!r}")
    parent = files.directory.parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".unfinished-") as scratch:
        made = ModelFiles(Path(scratch) / "model")
        made.directory.mkdir()
        save_file(_tensors(reader), made.weights)
        _tokenizer(reader).save(str(made.tokenizer))
        made.settings.write_text(json.dumps(asdict(_settings(reader)), indent=1), "utf-8")
        try:
            os.replace(made.directory, files.directory)
        except OSError:
            if not files.directory.is_dir():
                raise


def _field(reader: Any, key: str) -> Any:
    field = reader.get_field(key)
    return None if field is None else field.contents()


def _settings(reader: Any) -> ModelSettings:
    num_heads = _field(reader, "llama.attention.head_count")
    hidden_size = _field(reader, "llama.embedding_length")
    tokens = _field(reader, "tokenizer.ggml.tokens")
    transformer = {
        "vocab_size": len(tokens),
        "hidden_size": hidden_size,
        "intermediate_size": _field(reader, "llama.feed_forward_length"),
        "num_layers": _field(reader, "llama.block_count"),
        "num_heads": num_heads,
        "num_kv_heads": _field(reader, "llama.attention.head_count_kv"),
        "head_dim": _field(reader, "llama.attention.key_length") or hidden_size // num_heads,
        "max_tokens": _field(reader, "llama.context_length"),
        "rope_theta": _field(reader, "llama.rope.freq_base"),
        "rms_eps": _field(reader, "llama.attention.layer_norm_rms_epsilon"),
        "tied_head": all(tensor.name != "output.weight" for tensor in reader.tensors),
    }
    ends = {_field(reader, "tokenizer.ggml.eos_token_id")}
    ends |= {i for i, token in enumerate(tokens) if token == "<|endoftext|>"}
    return ModelSettings(transformer, _field(reader, "tokenizer.chat_template"), sorted(ends))


def _tensors(reader: Any) -> dict[str, NDArray[np.float32]]:
    num_heads = {
        "attn_q": _field(reader, "llama.attention.head_count"),
        "attn_k": _field(reader, "llama.attention.head_count_kv"),
    }
    made = {}
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        kind = tensor.name.split(".")[-2]
        if kind in num_heads:
            values = half_split(values, num_heads[kind])
        made[_name(tensor.name)] = np.ascontiguousarray(values, dtype=np.float32)
    return made


def _name(name: str) -> str:
    if name in _GLOBAL_NAMES:
        return _GLOBAL_NAMES[name]
    _, layer, kind, suffix = name.split(".")
    return f"model.layers.{layer}.{_LAYER_NAMES[kind]}.{suffix}"


def half_split(weight: NDArray[np.float32], num_heads: int) -> NDArray[np.float32]:
    """The weight [heads * dim, inputs] with each head's rotary pairs (2i, 2i + 1) moved to
    (i, i + dim / 2)."""
    rows, inputs = weight.shape
    pairs = weight.reshape(num_heads, rows // num_heads // 2, 2, inputs)
    return pairs.swapaxes(1, 2).reshape(rows, inputs)


def _tokenizer(reader: Any) -> Tokenizer:
    """The byte-level BPE tokenizer. llama.cpp's "smollm" splits off digits before it applies the
    GPT-2 pattern."""
    tokens = _field(reader, "tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in _field(reader, "tokenizer.ggml.merges")]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = _field(reader, "tokenizer.ggml.token_type")
    control = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in control])
    return tokenizer
