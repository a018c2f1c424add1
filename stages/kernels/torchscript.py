"""Networks of many small operations, run without the interpreter.

torch gives up Python's lock at every operation, however small. Beside other threads at work each
return to it can wait for a wake-up, and none of them computes: two talkers took 1.2 times as long
for a phrase as one alone, in two processes 1.0 (docs/decisions/0115-torchscript-talker.md).
TorchScript runs a whole network in one call.
"""

from __future__ import annotations

import sys
import warnings
from threading import Lock
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

_CAN_COMPILE = sys.version_info < (3, 14)  # torch says that it will not support later ones
_compiling = Lock()


def scripted(module: nn.Module) -> Callable[..., Any]:
    """`module.forward`, compiled where torch can. Annotations are read for that, and have to be
    there at run time."""
    if not _CAN_COMPILE:
        return module
    with _compiling, warnings.catch_warnings():
        # torch.compile, which is to replace it, wants a C++ compiler where the server runs.
        warnings.simplefilter("ignore", DeprecationWarning)
        compiled = torch.jit.script(module)

    def run(*args: object, **kwargs: object) -> Any:
        # As it is written. What torch would make of it is no faster, and takes 18 MB.
        with torch.jit.optimized_execution(False):  # type: ignore[attr-defined]
            return compiled(*args, **kwargs)

    return run
