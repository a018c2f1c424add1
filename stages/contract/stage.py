"""The Stage contract: what a model must implement to be one step of a pipeline.

A stage runs many requests at once. One worker calls it, from one thread. A stage knows nothing of
HTTP, of the orchestrator, of other stages, or of how its chunks travel. It keeps the state of a
request in a map of its own, under the request's id, from `open` to `close`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from stages.contract.errors import RequestError
from stages.contract.messages import To

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stages.contract.messages import Chunk, StageEnd, StageParams


@dataclass(frozen=True, slots=True)
class Emit:
    """One result of a step for one request: a chunk, or the end, after which nothing follows.

    With neither, it only reports that the step worked for the request. `to` says who the chunk is
    for. Nobody gets a chunk for a client that does not see this stage. The end is for both.
    """

    request_id: str
    chunk: Chunk | None = None
    end: StageEnd | None = None
    to: To = To.BOTH


class Credit(NamedTuple):
    """How many more chunks a request may emit: for the client, and for the next stage.

    A chunk for both takes one of each.
    """

    client: int
    next: int

    @property
    def both(self) -> int:
        """How many chunks for both it may emit."""
        return min(self.next, self.client)


class Stage(Protocol):
    """One model. The calls for a request are `open`, any number of `feed`, `end_input`, `close`.

    `step` may be called between them. A request that fails or is aborted gets `close` early.
    """

    def load(self) -> None:
        """Load the weights. Called once, before anything else. An error names what is missing."""

    def warm(self) -> None:
        """Run once with real sizes, so that the first request is as fast as later ones."""

    def open(self, request_id: str, params: StageParams) -> None:
        """Begin a request. An exception fails this request only."""

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """Take one chunk. Only called if `wants_chunk`. An exception fails this request only."""

    def end_input(self, request_id: str) -> None:
        """No more chunks will come. Called once, after the last `feed`.

        An exception fails this request only.
        """

    def wants_chunk(self, request_id: str) -> bool:
        """Whether the stage can take another chunk now. False holds back the stage before."""

    def ready(self, request_id: str, credit: Credit) -> bool:
        """Whether `step` could advance the request with the input and the credit that it has.

        A stage whose chunks are all for both looks at `credit.both`. The worker asks again after
        each call for this request, when its credit grows, and when another request ends or closes.
        A stage that can run only some of its requests may therefore let others wait.
        """

    def step(self, credit: Mapping[str, Credit]) -> Iterable[Emit]:
        """Advance the requests in `credit` that the stage chooses, in about 100 ms at most.

        `credit` holds the ready requests and how many chunks each may emit in this step. The end
        needs no credit. Raising RequestError fails that request; what was yielded before it counts,
        and the other requests stay as they are. Any other exception ends the worker.
        """

    def close(self, request_id: str) -> None:
        """Free everything of the request. Called exactly once for each `open` that returned."""


@contextmanager
def as_request_error(request_id: str) -> Iterator[None]:
    """Raise any exception of the block as a `RequestError` of this request.

    A `RequestError` passes unchanged.
    """
    try:
        yield
    except RequestError:
        raise
    except Exception as cause:
        raise RequestError(request_id, f"{type(cause).__name__}: {cause}") from cause
