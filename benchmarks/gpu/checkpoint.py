"""Writes a checkpoint of a real size with random weights. A frame costs the real amount of work.

Speeches end with their text, so that their lengths are known. The 1.7B checkpoint takes 5 GB.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import save_file

from benchmarks.gpu import sizes
from tests.qwen3_tts import checkpoint
from tests.qwen3_tts import sizes as small

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

LAYOUT = Path(__file__).parent / "layout.json"


def write_checkpoint(folder: Path, size: str) -> Path:
    """Write a CustomVoice checkpoint of `size`; creates `folder`. Returns it."""
    layout = json.loads(LAYOUT.read_text())
    config = sizes.model_config(size)
    speech = folder / "speech_tokenizer"
    speech.mkdir(parents=True)
    checkpoint.write_json(folder / "config.json", config)
    checkpoint.write_json(folder / "generation_config.json", small.SAMPLED)
    checkpoint.write_text_tokenizer(folder)
    tensors = checkpoint.weights(layout[size])
    checkpoint.end_with_text(tensors, config)
    save_file(_bfloat16(tensors), folder / "model.safetensors", {"format": "pt"})
    checkpoint.write_json(speech / "config.json", sizes.SPEECH_TOKENIZER)
    tensors = checkpoint.weights(layout["speech_tokenizer"])
    save_file(_bfloat16(tensors), speech / "model.safetensors", {"format": "pt"})
    return folder


def _bfloat16(tensors: Mapping[str, object]) -> dict[str, Tensor]:
    return {name: torch.as_tensor(tensor).to(torch.bfloat16) for name, tensor in tensors.items()}
