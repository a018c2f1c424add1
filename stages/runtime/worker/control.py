"""The control path: the orders to a worker, and its reports. One ordered channel each way."""

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
    """Begin a request at one position of the worker.

    Its chunks come over the edge named `incoming` and leave over the edge named `outgoing`, for as
    long as it lives. None where its chunks use no edge.
    """

    position: int
    request_id: str
    stage_input: StageInput
    incoming: str | None = None
    outgoing: str | None = None


@dataclass(frozen=True, slots=True)
class Abort:
    """Stop a request at one position. The answer is AbortDone. `incoming` is as in Submit."""

    position: int
    request_id: str
    incoming: str | None = None


@dataclass(frozen=True, slots=True)
class AddCredit:
    """The client consumed more reported chunks: how many of each request, by its id."""

    chunks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Connect:
    """The receiver of the worker's outgoing edge `name` is at this address."""

    name: str
    address: Address


@dataclass(frozen=True, slots=True)
class Stop:
    """End the worker."""


Order = Submit | Abort | AddCredit | Connect | Stop


@dataclass(frozen=True, slots=True)
class Ready:
    """The first report: the stage is loaded and warm, and its worker takes orders.

    For each incoming edge whose sender must connect: its address, and whether the sender is
    connected.
    """

    addresses: Mapping[str, Address]
    connected: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Output:
    """A stage's report, for the position that the request was submitted to."""

    position: int
    output: StageOutput


@dataclass(frozen=True, slots=True)
class AbortDone:
    """An abort is done: the worker holds nothing of the request."""

    position: int
    request_id: str


@dataclass(frozen=True, slots=True)
class ConnectionChanged:
    """The sender of the worker's incoming edge `name` has connected, or is gone."""

    name: str
    is_up: bool


PositionReport = Output | AbortDone
Report = PositionReport | StepReport | ConnectionChanged


class Mailbox(Protocol):
    """Where a worker takes its orders from."""

    def take(self, *, block: bool) -> list[Order]:
        """All orders that have come. `block` waits for an order, or for news on an edge."""
