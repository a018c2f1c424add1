"""Builds what the commands run from the settings: the deployment, and the service on top of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from server.serving.service import Service
from stages.contract.pipeline import DEFAULT_MAX_RUNNING
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
    """Build the deployment. Raises CheckpointError for an unknown model."""
    config = BuildConfig(
        settings.cache_dir,
        stage_placement(settings, "thinker"),
        stage_placement(settings, "talker"),
        stage_placement(settings, "code2wav"),
        settings.phonemizer,
        settings.voices_dir,
        settings.voice,
        settings.max_loaded_voices,
        settings.recordings_dir,
        settings.max_running or DEFAULT_MAX_RUNNING,
    )
    return build(settings.model, config)


def stage_placement(settings: Settings, stage: str) -> Placement:
    """Where a stage runs. The setting of the stage itself overrides the one for all stages."""

    def setting(name: str) -> Any:
        own = getattr(settings, f"{stage}_{name}")
        return getattr(settings, name) if own is None else own

    device, executor = setting("device"), setting("executor")
    return Placement(
        device=device,
        dtype=setting("dtype"),
        replicas=setting("replicas") or _default_replicas(settings, stage, device, executor),
        executor=executor,
        cpus=setting("cpus"),
        gpus=setting("gpus"),
        ray=RayCluster(settings.ray_address, settings.ray_namespace),
    )


def _default_replicas(settings: Settings, stage: str, device: str, executor: str) -> int:
    """Two replicas for the talker and decoder of Piper voices on a CPU with several cores, else 1.

    One replica of each leaves cores idle; the second one uses them.
    """
    has_idle_cores = (
        stage != "thinker"
        and settings.model in ("embedded", "piper-joe")
        and executor == "thread"
        and num_cores() >= 2
    )
    if not has_idle_cores or device.startswith("cuda"):
        return 1
    from stages.kernels.device import pick_device  # imports torch, which this process needs anyway

    return 2 if pick_device(device).type == "cpu" else 1
