"""The dispatcher's events: everything that can move a request's state, except for reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Died:
    """All workers of a stage are gone, and with them every request that they held."""

    stage_id: int
    cause: Exception


@dataclass(frozen=True, slots=True)
class Revived:
    """A stage has a worker again, which holds no request."""

    stage_id: int


@dataclass(frozen=True, slots=True)
class Aborted:
    """A stage acknowledged an abort, so it holds nothing of the request, or it stayed `silent`."""

    stage_id: int
    request_id: str
    silent: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """A request must end early: its client left, its deadline passed, or a submit failed."""

    request_id: str
    error: Exception
    stage_id: int | None = None


@dataclass(frozen=True, slots=True)
class Undrained:
    """The terminal is held, and a stage did not report within the drain time."""

    request_id: str


Event = Died | Revived | Aborted | Failed | Undrained
