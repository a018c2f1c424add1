"""The control path: what a worker is told, and what it reports. One ordered channel each way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from stages.runtime.worker.step_stats import StepReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stages.contract.messages import StageInput, StageOutput
    from stages.runtime.connectors.contract import Address


@dataclass(frozen=True, slots=True)
class Submit:
    """Begin a request on one face.

    Its chunks come over the edge `inlet` and leave over the edge `outlet` for as long as it lives;
    None where they do not come or go over any.
    """

    face: int
    request_id: str
    stage_input: StageInput
    inlet: str | None = None
    outlet: str | None = None


@dataclass(frozen=True, slots=True)
class Abort:
    """Stop a request on one face, and say so when nothing of it is left. `inlet` as in Submit."""

    face: int
    request_id: str
    inlet: str | None = None


@dataclass(frozen=True, slots=True)
class Credit:
    """The client consumed so many `chunks` more of what requests reported, by their ids."""

    chunks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Connect:
    """The receiver of the edge `name` out of the worker is at this address."""

    name: str
    address: Address


@dataclass(frozen=True, slots=True)
class Stop:
    """End the worker."""


Order = Submit | Abort | Credit | Connect | Stop


@dataclass(frozen=True, slots=True)
class Ready:
    """First of all: the stage is loaded and warm, and its worker listens.

    Of the edges into it that have to be called: where, and whether their senders have done so.
    """

    addresses: Mapping[str, Address]
    links: Mapping[str, bool]


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


@dataclass(frozen=True, slots=True)
class ConnectionChanged:
    """The sender of the edge `name` into the worker has called, or is gone."""

    name: str
    is_up: bool


PositionReport = Output | AbortDone
Report = PositionReport | StepReport | ConnectionChanged


class Mailbox(Protocol):
    """A worker's side of the control path, and its doorbell."""

    def take(self, *, block: bool) -> list[Order]:
        """All orders that are there. `block` waits for one, or for an edge to ring."""
