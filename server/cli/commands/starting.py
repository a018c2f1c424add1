"""Makes what the commands run: the service, over the deployment that the settings describe."""

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


def service_of(settings: Settings) -> Service:
    """The service; nothing is loaded before it runs."""
    return Service(settings, partial(deploy, settings))


def deploy(settings: Settings) -> Deployment:
    """The deployment. Raises CheckpointError where a model is not known."""
    config = BuildConfig(
        settings.cache_dir,
        placement_of(settings, "thinker"),
        placement_of(settings, "talker"),
        placement_of(settings, "code2wav"),
        settings.phonemizer,
        settings.voices_dir,
        settings.voice,
        settings.max_loaded_voices,
        settings.recordings_dir,
        settings.max_running or DEFAULT_MAX_RUNNING,
    )
    return build(settings.model, config)


def placement_of(settings: Settings, stage: str) -> Placement:
    """Where a stage runs: what was set for it alone, or else for all."""

    def chosen(name: str) -> Any:
        own = getattr(settings, f"{stage}_{name}")
        return getattr(settings, name) if own is None else own

    device, executor = chosen("device"), chosen("executor")
    return Placement(
        device=device,
        dtype=chosen("dtype"),
        replicas=chosen("replicas") or _default_replicas(settings, stage, device, executor),
        executor=executor,
        cpus=chosen("cpus"),
        gpus=chosen("gpus"),
        ray=RayCluster(settings.ray_address, settings.ray_namespace),
    )


def _default_replicas(settings: Settings, stage: str, device: str, executor: str) -> int:
    """A second talker and decoder of Piper voices use what one of each leaves idle of a CPU's
    cores."""
    pays = (
        stage != "thinker"
        and settings.model in ("embedded", "piper-joe")
        and executor == "thread"
        and num_cores() >= 2
    )
    if not pays or device.startswith("cuda"):
        return 1
    from stages.kernels.device import pick_device  # torch: only where it will run in this process

    return 2 if pick_device(device).type == "cpu" else 1
