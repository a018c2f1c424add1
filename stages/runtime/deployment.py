"""A set of pipelines and the workers that they share, started and stopped as one.

`wire` turns the ordered positions of a pipeline into faces and edges. Workers are shared between
pipelines; edges never are: each joins one replica of a stage with one of the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio

from stages.runtime.connectors.memory import MemoryConnector
from stages.runtime.connectors.shared_memory import SharedMemoryEdge
from stages.runtime.executors.handle import ReplicatedHandle
from stages.runtime.worker.edges import Position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.pipeline import Pipeline
    from stages.runtime.connectors.contract import Edge
    from stages.runtime.executors.executor import Executor
    from stages.runtime.replicas import StageReplicas


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """One step of a pipeline: the stage that does it, and whether the client sees its chunks.

    `max_unread` bounds what a request may report ahead of the client, `max_chunks` what it may
    send ahead of the next stage.
    """

    stage: StageReplicas
    final: bool
    max_unread: int = 8
    max_chunks: int = 8


def wire(positions: Sequence[PipelineStage]) -> tuple[tuple[ReplicatedHandle, ...], list[Edge]]:
    """The faces of a pipeline, in order, and the edges between them."""
    hops = [  # of each: a row for each replica before, in it an edge to each replica after
        [
            [connect(one, other, before.max_chunks) for other in after.stage.workers]
            for one in before.stage.workers
        ]
        for before, after in pairwise(positions)
    ]
    faces: list[ReplicatedHandle] = []
    for k in reversed(range(len(positions))):
        face = ReplicatedHandle(faces[0] if faces else None)
        for n, worker in enumerate(positions[k].stage.workers):
            port = Position(
                positions[k].final,
                positions[k].max_unread,
                tuple(row[n] for row in hops[k - 1]) if k else (),
                tuple(hops[k][n]) if k < len(hops) else (),
            )
            worker.join(face, port)
        faces.insert(0, face)
    return tuple(faces), [edge for rows in hops for row in rows for edge in row]


def connect(sender: Executor, receiver: Executor, max_chunks: int) -> Edge:
    """The edge between the next position of each, by how far apart their workers may be."""
    name = f"{sender.name}:{sender.num_positions}>{receiver.name}"
    kinds = {sender.kind, receiver.kind}
    if kinds == {"thread"}:
        return MemoryConnector(name, max_chunks)
    if "ray" not in kinds:
        return SharedMemoryEdge.create(name, max_chunks)
    from stages.runtime.executors.ray_executor import link  # an extra

    return link(name, sender, receiver, max_chunks)


class Deployment:
    """What one server process runs."""

    def __init__(
        self,
        stages: Sequence[StageReplicas],
        pipelines: Sequence[Pipeline],
        edges: Sequence[Edge],
    ) -> None:
        self.pipelines = tuple(pipelines)
        self.stages = tuple(stages)
        self.workers = tuple(worker for stage in stages for worker in stage.workers)
        self._edges = tuple(edges)

    @property
    def is_up(self) -> bool:
        """Whether every stage has a worker that runs."""
        return all(stage.num_up for stage in self.stages)

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
