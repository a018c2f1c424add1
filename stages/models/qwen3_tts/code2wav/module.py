"""The tensors of one module of a checkpoint. Shapes are checked when a tensor is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stages.contract.errors import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor

    from stages.weights.safetensors import Weights


class Module:
    """The tensors whose names begin with `prefix`, on `device`, in float32."""

    def __init__(
        self,
        weights: Weights,
        device: torch.device,
        prefix: str,
        taken: set[str] | None = None,
    ) -> None:
        self._weights = weights
        self._device = device
        self._prefix = prefix
        self._taken = set() if taken is None else taken

    def inner(self, name: str) -> Module:
        """The submodule `name`."""
        return Module(self._weights, self._device, f"{self._prefix}{name}.", self._taken)

    def take(self, name: str, *shape: int) -> Tensor:
        """A tensor. Raises CheckpointError if it is missing or has another shape."""
        full = self._prefix + name
        self._weights.check(full, *shape)
        self._taken.add(full)
        tensor: Tensor = self._weights[full].to(self._device, torch.float32)
        return tensor

    def check_all_taken(self, unused: str) -> None:
        """Raise CheckpointError if a tensor of this module was not taken: another architecture.

        Tensors whose names contain `unused` are ignored.
        """
        for name in self._weights:
            if name.startswith(self._prefix) and name not in self._taken and unused not in name:
                raise CheckpointError(f"the tensor {name!r} is not known")
