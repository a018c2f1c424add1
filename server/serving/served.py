"""What is served: a model with its voices, and the deployment behind all models.

The protocols list what the server needs from a deployment, its stages and their workers, so that
tests can use fakes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from orchestrator.supervisor import Supervised
from stages.contract.pipeline import AUDIO_ONLY, Medium

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from orchestrator import OutputStream
    from orchestrator.stats import OrchestratorStats, StageStats
    from server.serving.outputs import Runner
    from server.serving.voices import Voices
    from stages.contract.histogram import HistogramCounts
    from stages.contract.messages import Request
    from stages.contract.model import ModelSpec
    from stages.contract.pipeline import Pipeline
    from stages.contract.roles import Role

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
    """Models and the stages behind them."""

    @property
    def models(self) -> Sequence[ModelSpec]:
        """The models, in the order in which they were asked for."""

    @property
    def stages(self) -> Sequence[ServedStage]:
        """The stages that the models share."""

    @property
    def is_up(self) -> bool:
        """Whether every stage has a worker that runs."""

    async def start(self, timeout_s: float) -> None:
        """Start every stage; returns when all are warm. Raises StartError, naming the stage."""

    async def stop(self) -> None:
        """Stop every stage. May be called after a failed start."""


@dataclass(frozen=True, slots=True)
class ServedPipeline:
    """A pipeline of a model, and the orchestrator that runs its requests."""

    pipeline: Pipeline
    runner: Runner
    stats: OrchestratorStats

    def open(self, requests: Sequence[Request], deadline_s: float, key: str) -> OpenStream:
        """A function whose context runs `requests` for the caller `key`, all admitted together."""
        return partial(self.runner.group, requests, deadline_s=deadline_s, key=key)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that accepts requests. `aliases` are those that it answers to on this server."""

    model: ModelSpec
    aliases: tuple[str, ...]
    pipelines: tuple[ServedPipeline, ...]
    voices: Voices

    @property
    def model_id(self) -> str:
        """The id of the model."""
        return self.model.model_id

    @property
    def names(self) -> tuple[str, ...]:
        """The model's id, then its aliases."""
        return (self.model_id, *self.aliases)

    def pipeline(self, inputs: Medium, outputs: frozenset[Medium]) -> ServedPipeline | None:
        """The pipeline for a request with these inputs and outputs; None if there is none."""
        for each in self.pipelines:
            if (each.pipeline.inputs, each.pipeline.outputs) == (inputs, outputs):
                return each
        return None

    @property
    def speech(self) -> ServedPipeline | None:
        """The pipeline that speaks a given text; None if the model has none."""
        return self.pipeline(Medium.TEXT, AUDIO_ONLY)

    def hold_s(self) -> list[HistogramCounts]:
        """How long the gates of its pipelines held terminals, in seconds."""
        return [each.stats.hold_s.counts for each in self.pipelines]

    @property
    def num_drain_timeouts(self) -> int:
        """How many terminals waited for a stage that did not report in time."""
        return sum(each.stats.num_drain_timeouts for each in self.pipelines)

    def stage_stats(self, role: Role) -> list[StageStats]:
        """The statistics of the stages of a role, one for each pipeline that has it."""
        return [
            stats
            for each in self.pipelines
            for found, stats in zip(each.pipeline.roles, each.stats.stages, strict=True)
            if found == role
        ]

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of all its stages, each once, in the order of the longest pipeline."""
        ordered = sorted(self.pipelines, key=lambda each: -len(each.pipeline.roles))
        return tuple(dict.fromkeys(role for each in ordered for role in each.pipeline.roles))
