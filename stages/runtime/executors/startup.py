"""How a worker loads its stage: the same in a thread, in a process and on Ray."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.contract.errors import OmniError
from stages.runtime.allocator import give_back_freed_memory, keep_freed_memory, use_large_pages

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.contract.stage import Stage


@dataclass(frozen=True, slots=True)
class StageClass:
    """A stage's class by its module: only its worker's process imports it, and torch with it."""

    module: str
    name: str

    def __call__(self, *args: object) -> Stage:
        stage: Stage = getattr(importlib.import_module(self.module), self.name)(*args)
        return stage


def reason_of(error: Exception) -> str:
    """Why a worker ended. Our errors are sentences; others say little without their class."""
    return str(error) if isinstance(error, OmniError) else repr(error)


def load_stage(make_stage: Callable[[], Stage]) -> Stage:
    """A stage that is loaded and warm, on one torch thread.

    Stages share the cores, and torch's threads wait for each other at every operation. With two of
    them beside another busy process, steps of 40 ms took up to 2.3 s
    (docs/decisions/0002-one-torch-thread-per-stage.md).
    """
    keep_freed_memory()
    stage = make_stage()
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)
    stage.load()
    stage.warm()
    give_back_freed_memory()
    use_large_pages()
    return stage
