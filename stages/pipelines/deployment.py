"""A set of pipelines and the workers that they share, started and stopped as one.

`wire` turns the ordered positions of a pipeline into faces and edges. Workers are shared between
pipelines; edges never are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio

from stages.connectors.memory import MemoryConnector
from stages.connectors.shared_memory import SharedMemoryEdge
from stages.executors.executor import Port
from stages.executors.thread import ThreadExecutor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.connectors.contract import Edge
    from stages.executors.executor import Executor
    from stages.executors.face import Face
    from stages.pipelines.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Position:
    """One step of a pipeline: the worker that does it, and whether the client sees its chunks.

    `max_unread` bounds what the worker may report ahead of the client, `max_chunks` what it may
    send ahead of the next stage.
    """

    worker: Executor
    final: bool
    max_unread: int = 8
    max_chunks: int = 8


def wire(positions: Sequence[Position]) -> tuple[tuple[Face, ...], list[Edge]]:
    """The faces of a pipeline, in order, and the edges between them."""
    edges = [connect(before, after) for before, after in pairwise(positions)]
    faces = tuple(
        position.worker.add_face(
            Port(
                position.final,
                edges[k - 1].open_receiver if k > 0 else None,
                edges[k].open_sender if k < len(edges) else None,
                position.max_unread,
            )
        )
        for k, position in enumerate(positions)
    )
    return faces, edges


def connect(before: Position, after: Position) -> Edge:
    """The edge that fits where its ends are."""
    sender, receiver = before.worker, after.worker
    if isinstance(sender, ThreadExecutor) and isinstance(receiver, ThreadExecutor):
        return MemoryConnector(receiver.ring, sender.ring, before.max_chunks)
    return SharedMemoryEdge.create(f"{sender.name}>{receiver.name}", before.max_chunks)


class Deployment:
    """What one server process runs."""

    def __init__(
        self,
        workers: Sequence[Executor],
        pipelines: Sequence[Pipeline],
        edges: Sequence[Edge],
    ) -> None:
        self.pipelines = tuple(pipelines)
        self.workers = tuple(workers)
        self._edges = tuple(edges)

    @property
    def is_up(self) -> bool:
        """Whether every worker is running."""
        return all(worker.is_up for worker in self.workers)

    async def start(self, timeout_s: float = 300.0) -> None:
        """Load and warm all stages at once; on a failure all are stopped again.

        Raises StartError, which names the stage.
        """
        try:
            async with anyio.create_task_group() as tasks:
                for worker in self.workers:
                    tasks.start_soon(worker.start, timeout_s)
        except ExceptionGroup as failures:
            await self.stop()
            raise failures.exceptions[0] from None

    async def stop(self) -> None:
        """End every worker, then free the edges."""
        async with anyio.create_task_group() as tasks:
            for worker in self.workers:
                tasks.start_soon(worker.stop)
        for edge in self._edges:
            edge.close()
