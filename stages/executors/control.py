"""The control path: what a worker is told, and what it reports. One ordered channel each way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from stages.executors.figures import Told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stages.messages import StageInput, StageOutput


@dataclass(frozen=True, slots=True)
class Submit:
    """Begin a request on one face."""

    face: int
    request_id: str
    stage_input: StageInput


@dataclass(frozen=True, slots=True)
class Abort:
    """Stop a request on one face, and say so when nothing of it is left."""

    face: int
    request_id: str


@dataclass(frozen=True, slots=True)
class Credit:
    """The client consumed so many `chunks` more of what requests reported, by their ids."""

    chunks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Stop:
    """End the worker."""


Order = Submit | Abort | Credit | Stop


@dataclass(frozen=True, slots=True)
class Output:
    """A stage's report, for the face that the request was submitted to."""

    face: int
    output: StageOutput


@dataclass(frozen=True, slots=True)
class AbortDone:
    """An abort is done: the worker holds nothing of the request."""

    face: int
    request_id: str


FaceReport = Output | AbortDone
Report = FaceReport | Told


class Mailbox(Protocol):
    """A worker's side of the control path, and its doorbell."""

    def take(self, *, block: bool) -> list[Order]:
        """All orders that are there. `block` waits for one, or for an edge to ring."""
