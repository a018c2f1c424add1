"""Collects what model families build: stages with their workers, pipelines, and their edges.

One builder makes one deployment. Several models may share stages: a family asks for what another
model speaks with by that model's name (`speech_of`), and it is built once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.contract.pipeline import Pipeline
from stages.runtime.deployment import Deployment, PipelineStage, wire
from stages.runtime.replicas import make_replicas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stages.contract.model import ModelSpec, VoiceSpec, VoiceUploads
    from stages.contract.pipeline import Medium
    from stages.contract.roles import Role
    from stages.contract.stage import Stage
    from stages.runtime.connectors.contract import Edge
    from stages.runtime.placement import BuildConfig, Placement
    from stages.runtime.replicas import StageWorkers


@dataclass(frozen=True, slots=True)
class SpeechStages:
    """What a model speaks with: the stages from text to audio, and what a request may ask of them.

    The fields are those of `ModelSpec`.
    """

    steps: tuple[PipelineStage, ...]
    voices: tuple[VoiceSpec, ...]
    speakable: Callable[[str], bool]
    speech_settings: Callable[[Mapping[str, Any], Mapping[str, Any]], object]
    find_voices: Callable[[], tuple[VoiceSpec, ...]] | None = None
    uploads: VoiceUploads | None = None


class Builder:
    """Builds one deployment. `find_speech(name, builder)` builds what the model `name` speaks with.

    `config` is what the server was started with.
    """

    def __init__(
        self, config: BuildConfig, find_speech: Callable[[str, Builder], SpeechStages]
    ) -> None:
        self.config = config
        self._find_speech = find_speech
        self._speech: dict[str, SpeechStages] = {}
        self._stages: dict[str, StageWorkers] = {}
        self._edges: list[Edge] = []

    def stage(
        self,
        source: str,
        role: Role,
        stage: Callable[..., Stage],
        *args: object,
        default_replicas: Callable[[Placement], int] = lambda _: 1,
    ) -> StageWorkers:
        """The workers of `stage(*args)`, placed as the settings say for its role.

        They are called after the role, or `role@source` if another model has that name already.
        `default_replicas` says how many there are if the settings do not.
        """
        name = str(role) if str(role) not in self._stages else f"{role}@{source}"
        if name in self._stages:
            raise ValueError(f"{source} has two stages of the role {role}")
        placement = self.config.placement(role)
        default = 1 if placement.replicas else default_replicas(placement)
        made = make_replicas(placement, name, stage, *args, default=default)
        self._stages[name] = made
        return made

    def pipeline(
        self, inputs: Medium, outputs: Iterable[Medium], steps: Sequence[PipelineStage]
    ) -> Pipeline:
        """A pipeline of these stages, in order, wired with edges of its own."""
        handles, edges = wire(steps)
        self._edges += edges
        final = frozenset(k for k, step in enumerate(steps) if step.final)
        roles = tuple(step.role for step in steps)
        return Pipeline(inputs, frozenset(outputs), roles, handles, final)

    def speech_of(self, name: str) -> SpeechStages:
        """What the model `name` speaks with, built at the first call. Raises CheckpointError."""
        if name not in self._speech:
            self._speech[name] = self._find_speech(name, self)
        return self._speech[name]

    def deployment(self, models: Sequence[ModelSpec]) -> Deployment:
        """Everything that was built, to be started and stopped as one."""
        return Deployment(tuple(self._stages.values()), models, self._edges)
