"""Makes the workers of a stage, as its placement says: how many, and what runs each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from stages.runtime.executors.process import ProcessExecutor
from stages.runtime.executors.thread import ThreadExecutor

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.contract.stage import Stage
    from stages.runtime.executors.executor import Executor
    from stages.runtime.placement import Placement


@dataclass(frozen=True, slots=True)
class StageWorkers:
    """All workers of a stage, which share its requests, and the stage's name."""

    name: str
    workers: tuple[Executor, ...]

    @property
    def num_up(self) -> int:
        """How many of the workers run."""
        return sum(worker.is_up for worker in self.workers)


def make_replicas(
    placement: Placement, name: str, stage: Callable[..., Stage], *args: object, default: int = 1
) -> StageWorkers:
    """A worker for each replica. Their names are `name`, or `name-0`, `name-1`, ... if several.

    `default` is the number of replicas if the placement does not say.
    """
    executor, count = _executor(placement), placement.replicas or default
    names = [name] if count == 1 else [f"{name}-{n}" for n in range(count)]
    return StageWorkers(name, tuple(executor(each, stage, *args) for each in names))


def _executor(placement: Placement) -> Callable[..., Executor]:
    match placement.executor:
        case "thread":
            return ThreadExecutor
        case "process":
            return ProcessExecutor
        case "ray":  # an extra, so imported only where it is used
            from stages.runtime.executors.ray_executor import RayExecutor

            return partial(RayExecutor, placement)
    raise ValueError(f"no executor {placement.executor!r}; use thread, process or ray")
