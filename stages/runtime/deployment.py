"""A set of pipelines and the workers that they share, started and stopped as one.

`wire` turns the ordered stages of a pipeline into handles and edges. Pipelines share workers, but
never edges: each edge joins one worker of a stage with one of the next.
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

    from stages.contract.model import ModelSpec
    from stages.contract.roles import Role
    from stages.runtime.connectors.contract import Edge
    from stages.runtime.executors.executor import Executor
    from stages.runtime.replicas import StageWorkers


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """One position of a pipeline: its stage, and whether the client sees what the stage emits.

    `max_unread` limits how many chunks a request may report that the client has not consumed.
    `max_chunks` limits how many it may send that the next stage has not consumed.
    """

    stage: StageWorkers
    role: Role
    final: bool
    max_unread: int = 8
    max_chunks: int = 8


def wire(pipeline: Sequence[PipelineStage]) -> tuple[tuple[ReplicatedHandle, ...], list[Edge]]:
    """The handles of a pipeline's positions, in order, and the edges between them."""
    # For each two neighbours: a row for each sending worker, with an edge to each receiving worker.
    tables = [
        [
            [make_edge(sender, receiver, before.max_chunks) for receiver in after.stage.workers]
            for sender in before.stage.workers
        ]
        for before, after in pairwise(pipeline)
    ]
    handles: list[ReplicatedHandle] = []
    for k in reversed(range(len(pipeline))):
        handle = ReplicatedHandle(handles[0] if handles else None)
        for n, worker in enumerate(pipeline[k].stage.workers):
            position = Position(
                pipeline[k].final,
                pipeline[k].max_unread,
                incoming=tuple(row[n] for row in tables[k - 1]) if k else (),
                outgoing=tuple(tables[k][n]) if k < len(tables) else (),
            )
            worker.add_position(handle, position)
        handles.insert(0, handle)
    return tuple(handles), [edge for table in tables for row in table for edge in row]


def make_edge(sender: Executor, receiver: Executor, max_chunks: int) -> Edge:
    """The edge between the next positions of two workers; its kind depends on where they run."""
    name = f"{sender.name}:{sender.num_positions}>{receiver.name}"
    kinds = {sender.kind, receiver.kind}
    if kinds == {"thread"}:
        return MemoryConnector(name, max_chunks)
    if kinds <= {"thread", "process"}:
        return SharedMemoryEdge.create(name, max_chunks)
    if "ray" not in kinds:
        raise ValueError(f"there is no edge between workers that run in {sorted(kinds)}")
    from stages.runtime.executors.ray_executor import make_remote_edge  # an extra

    return make_remote_edge(name, sender, receiver, max_chunks)


class Deployment:
    """All that one server process runs: models, the stages that they use, and their edges."""

    def __init__(
        self,
        stages: Sequence[StageWorkers],
        models: Sequence[ModelSpec],
        edges: Sequence[Edge],
    ) -> None:
        self.models = tuple(models)
        self.stages = tuple(stages)
        self.workers = tuple(worker for stage in stages for worker in stage.workers)
        self._edges = tuple(edges)

    @property
    def is_up(self) -> bool:
        """Whether every stage has a worker that runs."""
        return all(stage.num_up for stage in self.stages)

    async def start(self, timeout_s: float = 300.0) -> None:
        """Load and warm all stages at once. If one fails, all are stopped again.

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
