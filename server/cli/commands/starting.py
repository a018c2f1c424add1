"""Builds what the commands run from the settings: the deployment, and the service on top of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from server.config.settings import SettingsError
from server.serving.service import Service
from stages.contract.pipeline import DEFAULT_MAX_RUNNING
from stages.contract.roles import Role
from stages.models.registry import build
from stages.runtime.cores import num_cores
from stages.runtime.placement import BuildConfig, Placement, RayCluster

if TYPE_CHECKING:
    from server.config.settings import Settings
    from stages.runtime.deployment import Deployment


def build_service(settings: Settings) -> Service:
    """Build the service. Nothing is loaded until the service runs."""
    return Service(settings, partial(build_deployment, settings))


def build_deployment(settings: Settings) -> Deployment:
    """Build the deployment. Raises CheckpointError for an unknown model, SettingsError for two."""
    if len(settings.models) > 1:
        raise SettingsError(f"setting model: name one model, not {', '.join(settings.models)}")
    config = BuildConfig(
        settings.cache_dir,
        stage_placement(settings, Role.THINKER),
        stage_placement(settings, Role.TALKER),
        stage_placement(settings, Role.CODE2WAV),
        settings.phonemizer,
        settings.voices_dir,
        settings.voice,
        settings.max_loaded_voices,
        settings.recordings_dir,
        settings.max_running or DEFAULT_MAX_RUNNING,
    )
    return build(settings.models[0], config)


def stage_placement(settings: Settings, role: Role) -> Placement:
    """Where a stage runs. The setting of the stage itself overrides the one for all stages."""
    stage = settings.stages[role]

    def setting(name: str) -> Any:
        own = getattr(stage, name)
        return getattr(settings, name) if own is None else own

    device, executor = setting("device"), setting("executor")
    return Placement(
        device=device,
        dtype=setting("dtype"),
        replicas=setting("replicas") or _default_replicas(settings, role, device, executor),
        executor=executor,
        cpus=setting("cpus"),
        gpus=setting("gpus"),
        ray=RayCluster(settings.ray_address, settings.ray_namespace),
    )


def _default_replicas(settings: Settings, role: Role, device: str, executor: str) -> int:
    """Two replicas for the talker and decoder of Piper voices on a CPU with several cores, else 1.

    One replica of each leaves cores idle; the second one uses them.
    """
    has_idle_cores = (
        role != Role.THINKER
        and settings.models[0] in ("embedded", "piper-joe")
        and executor == "thread"
        and num_cores() >= 2
    )
    if not has_idle_cores or device.startswith("cuda"):
        return 1
    from stages.kernels.device import pick_device  # imports torch, which this process needs anyway

    return 2 if pick_device(device).type == "cpu" else 1
