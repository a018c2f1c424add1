"""What requests are sent to: a model with its voices, and the deployment behind all models.

The protocols say what the server needs of a deployment, its stages and their workers, so that a
fake can stand in for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from orchestrator.supervisor import Supervised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from orchestrator import OutputStream
    from orchestrator.stats import OrchestratorStats
    from server.serving.outputs import Runner
    from server.serving.voices import Voices
    from stages.contract.histogram import HistogramCounts
    from stages.contract.messages import Request
    from stages.contract.pipeline import Pipeline

    OpenStream = Callable[[], AbstractAsyncContextManager[OutputStream]]


class WorkerSteps(Protocol):
    """The steps of a worker since it began."""

    @property
    def step_s(self) -> HistogramCounts:
        """How long they took."""

    @property
    def batch_size(self) -> HistogramCounts:
        """How many requests each advanced."""


class ServedWorker(Supervised, Protocol):
    """What is shown of a worker, besides what its supervisor needs."""

    is_up: bool
    num_starts: int

    @property
    def step_stats(self) -> WorkerSteps:
        """How long its steps took, and how many requests each advanced."""

    @property
    def num_open(self) -> int:
        """How many requests were submitted and are not over."""

    @property
    def num_queued(self) -> int:
        """How many of these it has not begun."""


class ServedStage(Protocol):
    """A stage by its name, and the workers that share its requests."""

    @property
    def name(self) -> str:
        """What pipelines call it."""

    @property
    def workers(self) -> Sequence[ServedWorker]:
        """Its replicas."""

    @property
    def num_up(self) -> int:
        """How many of them run."""


class ServedDeployment(Protocol):
    """Pipelines and the stages behind them."""

    @property
    def pipelines(self) -> tuple[Pipeline, ...]:
        """The models, by what may be asked of them."""

    @property
    def stages(self) -> Sequence[ServedStage]:
        """What they share."""

    @property
    def is_up(self) -> bool:
        """Whether every stage has a worker that runs."""

    async def start(self, timeout_s: float) -> None:
        """Bring every stage up; returns when all are warm, raises naming the one that is not."""

    async def stop(self) -> None:
        """End every stage. Safe after a start that failed."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that requests can be sent to."""

    pipeline: Pipeline
    runner: Runner
    voices: Voices
    stats: OrchestratorStats

    def open(self, requests: Sequence[Request], deadline_s: float, key: str) -> OpenStream:
        """What runs `requests`, admitted all or none on the account of `key`, once entered."""
        return partial(
            self.runner.group,
            requests,
            last_stage=requests[0].last_stage,
            deadline_s=deadline_s,
            key=key,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The id, then the aliases."""
        return (self.pipeline.model_id, *self.pipeline.aliases)

    @property
    def speaks(self) -> bool:
        """Whether it makes sound."""
        return bool(self.voices.known)

    @property
    def chats(self) -> bool:
        """Whether it answers, and does not only speak what it is given."""
        return self.pipeline.prompts is not None
