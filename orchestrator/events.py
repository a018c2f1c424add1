"""What the dispatcher hears. Everything that can move a request's state comes through here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.contract.messages import StageOutput


@dataclass(frozen=True, slots=True)
class Reported:
    """A stage gave an output."""

    stage_id: int
    output: StageOutput


@dataclass(frozen=True, slots=True)
class Died:
    """A stage's worker is gone, and with it everything it held."""

    stage_id: int
    cause: Exception


@dataclass(frozen=True, slots=True)
class Revived:
    """A stage's worker runs again, with nothing of before."""

    stage_id: int


@dataclass(frozen=True, slots=True)
class Aborted:
    """A stage was told to abort: it holds nothing of the request any more, or it is `silent`."""

    stage_id: int
    request_id: str
    silent: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """The request must end early: its client left, its time is over, or a submit failed."""

    request_id: str
    error: Exception
    stage_id: int | None = None


@dataclass(frozen=True, slots=True)
class Undrained:
    """The terminal is built, and some stage did not report within the drain time."""

    request_id: str


Event = Reported | Died | Revived | Aborted | Failed | Undrained
