"""Writes small checkpoints of Qwen3-TTS with random weights, in the public ones' layout.

The weights come from NumPy's generator, seeded with each tensor's name, so they are the same
wherever they are made and need not be stored. Their scale is that of trained ones: what a layer
gives is as large as what it takes. `layout.json` has the tensors' names and shapes as the public
package has them (`reference.py` writes it).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from safetensors.numpy import save_file

from tests.qwen3_tts import sizes

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS = ("custom_voice", "voice_design", "base")
LAYOUT = Path(__file__).parent / "layout.json"
LARGE = 2**20  # numbers
END_GAIN = 1.0  # so that the end is sure where it comes, and rare elsewhere


def write_checkpoint(
    folder: Path,
    kind: str,
    generation: Mapping[str, Any] = sizes.GREEDY,
    *,
    ends_with_text: bool = False,
) -> Path:
    """A whole checkpoint of `kind` in `folder`, which is made; returns it.

    With `ends_with_text` a speech has about as many frames as its text has tokens; else it has no
    end that could be told.
    """
    layout = json.loads(LAYOUT.read_text())
    speech = folder / "speech_tokenizer"
    speech.mkdir(parents=True)
    config = sizes.model_config(kind)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", dict(generation))
    write_text_tokenizer(folder)
    tensors = weights(layout[kind])
    if kind == "voice_design":  # its speeches end soon
        tensors["talker.codec_head.weight"][sizes.END] *= 1.5
    if ends_with_text:
        end_with_text(tensors, config)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    write_json(speech / "config.json", sizes.SPEECH_TOKENIZER)
    extractor = {"feature_extractor_type": "EncodecFeatureExtractor", "sampling_rate": 24000}
    write_json(speech / "preprocessor_config.json", extractor)
    save_file(weights(layout["speech_tokenizer"]), speech / "model.safetensors", {"format": "pt"})
    return folder


def weights(shapes: Mapping[str, list[int]]) -> dict[str, Any]:
    """A tensor for each name."""
    return {name: _tensor(name, tuple(shape)) for name, shape in shapes.items()}


def _tensor(name: str, shape: tuple[int, ...]) -> Any:
    rng = np.random.Generator(np.random.PCG64(crc32(name.encode())))
    noise = rng.standard_normal(shape, np.float32 if math.prod(shape) > LARGE else np.float64)
    return np.ascontiguousarray(_scaled(name, shape, noise), dtype=np.float32)


def _scaled(name: str, shape: tuple[int, ...], noise: Any) -> Any:
    last, parent = name.rsplit(".", 1)[-1], name.rsplit(".", 2)[-2] if "." in name else ""
    if last == "initialized":
        return np.ones(shape)
    if last == "cluster_usage":
        return 1.0 + 0.3 * np.tanh(noise)
    if last == "bias":
        return 0.1 * noise
    if "norm" in parent:
        return 1.0 + 0.2 * noise
    if last in ("alpha", "beta", "gamma", "scale"):
        return 0.3 + 0.1 * noise
    if last == "embed_sum":
        return 0.3 * noise
    if last == "embedding_sum" or (last == "weight" and "embedding" in name):
        return noise
    fan_in = shape[0] if _is_transposed(name) else math.prod(shape[1:])
    return _gain(name) * noise / math.sqrt(fan_in)


def _gain(name: str) -> float:
    """So that sounds differ in their codes, and samples stay within -1 and 1."""
    gains = {"encoder.encoder.layers.0.conv.weight": 6.0, "decoder.decoder.6.conv.weight": 0.01}
    return gains.get(name, 0.5 if _is_transposed(name) else 1.0)


def _is_transposed(name: str) -> bool:
    upsampling = name.startswith("decoder.upsample.") and name.endswith(".0.conv.weight")
    return upsampling or (name.startswith("decoder.") and name.endswith(".block.1.conv.weight"))


def end_with_text(tensors: dict[str, Any], config: Mapping[str, Any]) -> None:
    """Make the end mark of a text outweigh all else that is read with it, and the head answer it
    with the end of the speech."""
    talker = config["talker_config"]
    name = "talker.text_projection.linear_"
    mark = tensors["talker.model.text_embedding.weight"][config["tts_eos_token_id"]]
    mark *= 40
    inner = tensors[f"{name}fc1.weight"] @ mark + tensors[f"{name}fc1.bias"]
    read = tensors[f"{name}fc2.weight"] @ (inner / (1 + np.exp(-inner.clip(-80))))
    head = tensors["talker.codec_head.weight"]
    head[talker["codec_eos_token_id"]] = END_GAIN * read / np.linalg.norm(read)


def write_json(path: Path, content: Any) -> None:
    """A JSON file."""
    path.write_text(json.dumps(content, indent=1))


def write_text_tokenizer(folder: Path) -> None:
    """`vocab.json`, `merges.txt` and `tokenizer_config.json`, as the public checkpoints have."""
    tokens = [*_byte_characters(), *[a + b for a, b in sizes.TEXT_MERGES]]
    write_json(folder / "vocab.json", {token: i for i, token in enumerate(tokens)})
    lines = ["#version: 0.2", *[f"{a} {b}" for a, b in sizes.TEXT_MERGES]]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n")
    added = {
        str(sizes.FIRST_SPECIAL + i): {
            "content": token,
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        for i, token in enumerate(sizes.SPECIAL_TOKENS)
    }
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "Qwen2Tokenizer",
            "add_prefix_space": False,
            "added_tokens_decoder": added,
            "bos_token": None,
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "unk_token": None,
            "errors": "replace",
            "model_max_length": 131072,
            "split_special_tokens": False,
        },
    )


def _byte_characters() -> list[str]:
    """The 256 bytes as the visible characters that stand for them in byte-level vocabularies."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte) for byte in visible] + [chr(256 + i) for i in range(len(hidden))]
