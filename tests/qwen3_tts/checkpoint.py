"""Writes small checkpoints of Qwen3-TTS with random weights, in the layout of the public ones.

The weights come from NumPy's generator, seeded with the name of each tensor. So they are the same
everywhere and need not be stored. Their scale is that of trained weights: the outputs of a layer
are as large as its inputs. `layout.json` has the names and shapes of the tensors as the public
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
LARGE = 2**20  # values in a tensor; larger ones are drawn in float32
END_GAIN = 1.0  # makes the end certain where it belongs, and rare elsewhere


def write_checkpoint(
    folder: Path,
    kind: str,
    generation: Mapping[str, Any] = sizes.GREEDY,
    *,
    ends_with_text: bool = False,
) -> Path:
    """Write a whole checkpoint of `kind`; creates `folder`. Returns it.

    With `ends_with_text` a speech has about as many frames as its text has tokens. Otherwise the
    length of a speech cannot be predicted.
    """
    layout = json.loads(LAYOUT.read_text())
    speech = folder / "speech_tokenizer"
    speech.mkdir(parents=True)
    config = sizes.model_config(kind)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", dict(generation))
    write_text_tokenizer(folder)
    tensors = weights(layout[kind])
    if kind == "voice_design":  # make its speeches end soon
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
    """A random tensor for each name."""
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
    """Gains with which different audio gets different codes, and samples stay within -1 and 1."""
    gains = {"encoder.encoder.layers.0.conv.weight": 6.0, "decoder.decoder.6.conv.weight": 0.01}
    return gains.get(name, 0.5 if _is_transposed(name) else 1.0)


def _is_transposed(name: str) -> bool:
    upsampling = name.startswith("decoder.upsample.") and name.endswith(".0.conv.weight")
    return upsampling or (name.startswith("decoder.") and name.endswith(".block.1.conv.weight"))


def end_with_text(tensors: dict[str, Any], config: Mapping[str, Any]) -> None:
    """Make a speech end with its text.

    The end token of the text outweighs everything that is read with it, and the head answers it
    with the EOS code.
    """
    talker = config["talker_config"]
    name = "talker.text_projection.linear_"
    end_token = tensors["talker.model.text_embedding.weight"][config["tts_eos_token_id"]]
    end_token *= 40
    inner = tensors[f"{name}fc1.weight"] @ end_token + tensors[f"{name}fc1.bias"]
    embedding = tensors[f"{name}fc2.weight"] @ (inner / (1 + np.exp(-inner.clip(-80))))
    head = tensors["talker.codec_head.weight"]
    head[talker["codec_eos_token_id"]] = END_GAIN * embedding / np.linalg.norm(embedding)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(content, indent=1))


def write_text_tokenizer(folder: Path) -> None:
    """Write `vocab.json`, `merges.txt` and `tokenizer_config.json`, as in public checkpoints."""
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
    """The visible characters that stand for the 256 bytes in byte-level vocabularies."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte) for byte in visible] + [chr(256 + i) for i in range(len(hidden))]
