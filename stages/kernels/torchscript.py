"""Compiles networks of many small operations with TorchScript, to run each in one call.

torch releases Python's global lock at every operation, however small. If other threads are busy,
taking the lock back can wait for a wake-up, and meanwhile nobody computes. Two talkers in threads
took 1.2 times as long for a phrase as one alone; in two processes they took 1.0 times as long
(docs/decisions/0115-torchscript-talker.md).
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

CAN_COMPILE = sys.version_info < (3, 14)  # torch will not support TorchScript on later versions
_compiling = Lock()


def scripted(module: nn.Module) -> Callable[..., Any]:
    """`module.forward`, compiled if torch can compile on this Python.

    The compiler reads type annotations, so they must exist at run time.
    """
    if not CAN_COMPILE:
        return module
    with _compiling, warnings.catch_warnings():
        # torch.compile, its replacement, needs a C++ compiler on the machine that serves.
        warnings.simplefilter("ignore", DeprecationWarning)
        compiled = torch.jit.script(module)

    def run(*args: object, **kwargs: object) -> Any:
        # Without torch's optimiser: its result is no faster and takes 18 MB.
        with torch.jit.optimized_execution(False):  # type: ignore[attr-defined]
            return compiled(*args, **kwargs)

    return run
