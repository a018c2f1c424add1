"""The control path: what a worker is told, and what it reports. One ordered channel each way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stages.messages import StageInput, StageOutput


@dataclass(frozen=True, slots=True)
class Submit:
    """Begin a request on one face.

    Its chunks come from the replica `inlet` of the stage before, and go to the replica `outlet` of
    the stage after, for as long as it lives.
    """

    face: int
    request_id: str
    stage_input: StageInput
    inlet: int = 0
    outlet: int = 0


@dataclass(frozen=True, slots=True)
class Abort:
    """Stop a request on one face, and say so when nothing of it is left. `inlet` as in Submit."""

    face: int
    request_id: str
    inlet: int = 0


@dataclass(frozen=True, slots=True)
class Credit:
    """The client consumed `chunks` more of what the request reported."""

    request_id: str
    chunks: int


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


Report = Output | AbortDone


class Mailbox(Protocol):
    """A worker's side of the control path, and its doorbell."""

    def take(self, *, block: bool) -> list[Order]:
        """All orders that are there. `block` waits for one, or for an edge to ring."""
