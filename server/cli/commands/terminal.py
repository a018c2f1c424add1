"""Output of the commands: lines on standard output, spinner and progress bar on a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


def print_line(line: str) -> None:
    """Print a line and flush it."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def spinner(label: str) -> AbstractContextManager[object]:
    """Show a spinner on standard error inside the scope. Without a terminal, show nothing."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(f"{label} ...")


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar on standard error if it is a terminal. Yields the call that advances it.

    Each call advances the bar by one of `total`.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)
