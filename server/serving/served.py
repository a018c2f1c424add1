"""What is served: a model with its voices, and the deployment behind all models.

The protocols list what the server needs from a deployment, its stages and their workers, so that
tests can use fakes.
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
    """Statistics of the steps of a worker since it started."""

    @property
    def step_s(self) -> HistogramCounts:
        """How long the steps took."""

    @property
    def batch_size(self) -> HistogramCounts:
        """How many requests each step advanced."""


class ServedWorker(Supervised, Protocol):
    """What metrics and health show of a worker, besides what its supervisor needs."""

    is_up: bool
    num_starts: int

    @property
    def step_stats(self) -> WorkerSteps:
        """Statistics of its steps."""

    @property
    def num_open(self) -> int:
        """How many requests were submitted and have not ended."""

    @property
    def num_queued(self) -> int:
        """How many open requests it has not begun."""


class ServedStage(Protocol):
    """A stage and the workers that share its requests."""

    @property
    def name(self) -> str:
        """Its name in the pipelines."""

    @property
    def workers(self) -> Sequence[ServedWorker]:
        """Its replicas, in order."""

    @property
    def num_up(self) -> int:
        """How many of its workers run."""


class ServedDeployment(Protocol):
    """Pipelines and the stages behind them."""

    @property
    def pipelines(self) -> tuple[Pipeline, ...]:
        """The pipelines, one for each model."""

    @property
    def stages(self) -> Sequence[ServedStage]:
        """The stages that the pipelines share."""

    @property
    def is_up(self) -> bool:
        """Whether every stage has a worker that runs."""

    async def start(self, timeout_s: float) -> None:
        """Start every stage; returns when all are warm. Raises StartError, naming the stage."""

    async def stop(self) -> None:
        """Stop every stage. May be called after a failed start."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that accepts requests."""

    pipeline: Pipeline
    runner: Runner
    voices: Voices
    stats: OrchestratorStats

    def open(self, requests: Sequence[Request], deadline_s: float, key: str) -> OpenStream:
        """A function whose context runs `requests` for the caller `key`, all admitted together."""
        return partial(
            self.runner.group,
            requests,
            last_stage=requests[0].last_stage,
            deadline_s=deadline_s,
            key=key,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The model's id, then its aliases."""
        return (self.pipeline.model_id, *self.pipeline.aliases)

    @property
    def speaks(self) -> bool:
        """Whether it makes audio."""
        return bool(self.voices.known)

    @property
    def chats(self) -> bool:
        """Whether it generates text, rather than only speaking a given text."""
        return self.pipeline.prompts is not None
