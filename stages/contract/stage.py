"""The Stage contract: what a model has to be able to do to serve as one step of a pipeline.

A stage runs many requests at once and is called by one worker, from one thread. It knows nothing of
HTTP, of the orchestrator, of its neighbours, or of how its chunks travel. Everything it keeps for a
request is in its own map under the request's id, from `open` to `close`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from stages.contract.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stages.contract.messages import Chunk, StageEnd, StageParams


@dataclass(frozen=True, slots=True)
class Emit:
    """One thing that a step made for a request: a chunk, or the end, which is the last.

    With neither it only says that the step advanced the request.
    """

    request_id: str
    chunk: Chunk | None = None
    end: StageEnd | None = None


class Stage(Protocol):
    """One model behind one step. A request sees open, feed*, end_input, close, in this order."""

    def load(self) -> None:
        """Bring the weights in. Called once, first; an error names what is missing."""

    def warm(self) -> None:
        """Run once at real sizes, so that the first request is as fast as the others."""

    def open(self, request_id: str, params: StageParams) -> None:
        """Begin a request. Raising fails this request only."""

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """Take one chunk; only called while `wants_chunk`. Raising fails this request only."""

    def end_input(self, request_id: str) -> None:
        """No more chunks will come; called once, after the last `feed`."""

    def wants_chunk(self, request_id: str) -> bool:
        """Whether another chunk would be taken now; saying no holds back the stage before."""

    def ready(self, request_id: str) -> bool:
        """Whether `step` could advance the request with what it has.

        Asked again after anything of its own, and when another request ends or closes: a stage
        with room for some requests only may let the others wait.
        """

    def step(self, credit: Mapping[str, int]) -> Iterable[Emit]:
        """Advance the requests in `credit` that the stage chooses, in about 100 ms at most.

        `credit` holds the ready requests and how many chunks each may emit in this step (at least
        1); an end needs no credit. Raising RequestError fails that request; what was yielded before
        it counts, and the other requests stay as they are. Any other exception ends the worker.
        """

    def close(self, request_id: str) -> None:
        """Drop everything of the request. Called exactly once for each `open` that returned."""


@contextmanager
def blame(request_id: str) -> Iterator[None]:
    """Turn any exception inside into `RequestError` of this request."""
    try:
        yield
    except RequestError:
        raise
    except Exception as cause:
        raise RequestError(request_id, f"{type(cause).__name__}: {cause}") from cause
