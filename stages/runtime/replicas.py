"""The workers of a stage, by its placement."""

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
class StageReplicas:
    """A stage by its name, and the workers that share its requests."""

    name: str
    workers: tuple[Executor, ...]

    @property
    def num_up(self) -> int:
        """How many of them run."""
        return sum(worker.is_up for worker in self.workers)


def make_replicas(
    placement: Placement, name: str, stage: Callable[..., Stage], *args: object
) -> StageReplicas:
    """The workers of a stage: `name`, or `name-0`, `name-1`, ... where there are several."""
    executor, count = _executor(placement), placement.replicas
    names = [name] if count == 1 else [f"{name}-{n}" for n in range(count)]
    return StageReplicas(name, tuple(executor(each, stage, *args) for each in names))


def _executor(placement: Placement) -> Callable[..., Executor]:
    match placement.executor:
        case "thread":
            return ThreadExecutor
        case "process":
            return ProcessExecutor
        case "ray":  # an extra: imported only where it is asked for
            from stages.runtime.executors.ray_executor import RayExecutor

            return partial(RayExecutor, placement)
    raise ValueError(f"no executor {placement.executor!r}; there are thread, process and ray")
