"""Unwraps the single error of a task group, for callers that do not know about the group."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def ungrouped() -> Iterator[None]:
    """Raise the exception itself if a task group failed with exactly one."""
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        error = group.exceptions[0]
        raise error from error.__cause__
