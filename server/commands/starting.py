"""Makes what the commands run: the service, over the deployment that the settings describe."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from server.service import Service
from stages.pipelines.build import build
from stages.pipelines.config import BuildConfig, Placement

if TYPE_CHECKING:
    from server.settings import Settings
    from stages.pipelines.deployment import Deployment


def service_of(settings: Settings) -> Service:
    """The service; nothing is loaded before it runs."""
    return Service(settings, partial(deploy, settings))


def deploy(settings: Settings) -> Deployment:
    """The deployment. Raises CheckpointError where a model is not known."""
    device, dtype, given = settings.device, settings.dtype, settings
    config = BuildConfig(
        settings.cache_dir,
        Placement(
            given.thinker_device or device, given.thinker_dtype or dtype, given.thinker_replicas
        ),
        Placement(
            given.talker_device or device, given.talker_dtype or dtype, given.talker_replicas
        ),
        Placement(
            given.code2wav_device or device, given.code2wav_dtype or dtype, given.code2wav_replicas
        ),
        settings.phonemizer,
        settings.executor,
        settings.voices_dir,
        settings.voice,
        settings.max_loaded_voices,
        settings.recordings_dir,
        settings.max_running,
    )
    return build(settings.model, config)
