"""Builds what the server runs from its settings: the deployment, and the service on top of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from server.serving.service import Service
from stages.contract.model import DEFAULT_MAX_RUNNING
from stages.contract.roles import Role
from stages.models import registry
from stages.models.registry import build, voices
from stages.runtime.placement import BuildConfig, Placement, RayCluster

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from server.config.settings import Settings
    from stages.contract.model import VoiceSpec
    from stages.runtime.deployment import Deployment
    from stages.runtime.family import WeightFile


def build_service(settings: Settings) -> Service:
    """Build the service. Nothing is loaded until the service runs."""
    return Service(settings, partial(build_deployment, settings))


def build_deployment(settings: Settings) -> Deployment:
    """Build the deployment. Raises CheckpointError for an unknown model."""
    return build(settings.models, build_config(settings))


def build_config(settings: Settings) -> BuildConfig:
    """What models are built from."""
    return BuildConfig(
        cache_dir=settings.cache_dir,
        placements={role: stage_placement(settings, role) for role in Role},
        phonemizer=settings.phonemizer,
        voices_dir=settings.voices_dir,
        voice=settings.voice,
        max_loaded_voices=settings.max_loaded_voices,
        recordings_dir=settings.recordings_dir,
        max_running=settings.max_running or DEFAULT_MAX_RUNNING,
    )


def stage_placement(settings: Settings, role: Role) -> Placement:
    """Where a stage runs. The setting of its role overrides the one for all stages."""

    def setting(name: str) -> Any:
        own = getattr(settings.stages[role], name)
        return getattr(settings, name) if own is None else own

    return Placement(
        device=setting("device"),
        dtype=setting("dtype"),
        replicas=setting("replicas"),
        executor=setting("executor"),
        cpus=setting("cpus"),
        gpus=setting("gpus"),
        ray=RayCluster(settings.ray_address, settings.ray_namespace),
    )


def known_voices(settings: Settings) -> Sequence[VoiceSpec]:
    """The voices of the models that the settings name, without loading anything."""
    return voices(settings.models, build_config(settings))


def fetch_voice(name: str, settings: Settings) -> Path:
    """Fetch a voice from a public collection; its file. Raises OSError."""
    return registry.fetch_voice(name, settings.models, build_config(settings))


def speaking_model(settings: Settings) -> str:
    """The first model of the settings that speaks a given text. Raises CheckpointError."""
    return registry.speaking_source(settings.models, build_config(settings))


def weight_files(settings: Settings) -> Sequence[WeightFile]:
    """Every file that the models need, fetched where it is missing. Raises CheckpointError."""
    return registry.weight_files(settings.models, build_config(settings))


def memory_bytes(settings: Settings) -> Mapping[str, Mapping[Role, int]]:
    """How much memory the stages will take, by model and role. Raises CheckpointError."""
    return registry.memory_bytes(settings.models, build_config(settings))
