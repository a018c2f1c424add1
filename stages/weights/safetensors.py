"""Reads the weights in a model's folder: one safetensors file, or several with an index.

Tensors are read one by one, so each is in memory only once on its way to the device. A missing
tensor or file, or a wrong one, raises CheckpointError with its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open

from stages.contract.errors import CheckpointError
from stages.weights.json_file import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch import Tensor

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


class Weights(Mapping[str, "Tensor"]):
    """The tensors of a folder by name. Each access reads the tensor from its file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, Any] = {}
        for path in _files(folder):
            if not path.is_file():
                raise CheckpointError(f"{path} is missing")
            try:
                file: Any = safe_open(path, framework="pt")
            except (OSError, SafetensorError) as error:
                raise CheckpointError(
                    f"{path} is not a complete safetensors file: {error}"
                ) from error
            self._files |= dict.fromkeys(file.keys(), file)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._files:
            raise CheckpointError(f"{self._folder} has no tensor {name!r}")
        tensor: Tensor = self._files[name].get_tensor(name)
        return tensor

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def check(self, name: str, *shape: int) -> None:
        """Raise CheckpointError unless the tensor has this shape. Does not read the tensor."""
        if name not in self._files:
            raise CheckpointError(f"{self._folder} has no tensor {name!r}")
        found = tuple(self._files[name].get_slice(name).get_shape())
        if found != shape:
            raise CheckpointError(f"{self._folder}: the shape of {name!r} is {found}, not {shape}")


class Part(dict[str, torch.Tensor]):
    """The tensors whose names begin with `prefix`, in float32 on `device`; keys lack the prefix."""

    def __init__(self, weights: Mapping[str, Tensor], prefix: str, device: torch.device) -> None:
        names = [name for name in weights if name.startswith(prefix)]
        super().__init__(
            (name.removeprefix(prefix), weights[name].to(device, torch.float32)) for name in names
        )
        self._prefix = prefix

    def __missing__(self, name: str) -> Tensor:
        raise CheckpointError(f"there is no tensor {self._prefix + name!r}")


def _files(folder: Path) -> list[Path]:
    if not (folder / INDEX).is_file():
        return [folder / WEIGHTS]
    names = set(read_json(folder / INDEX).get("weight_map", {}).values())
    return [folder / name for name in sorted(names)]
