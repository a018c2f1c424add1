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
    """The deployment. ValueError where a model is not known."""
    device, dtype = settings.device, settings.dtype
    config = BuildConfig(
        settings.cache_dir,
        Placement(settings.thinker_device or device, settings.thinker_dtype or dtype),
        Placement(settings.talker_device or device),
        Placement(settings.code2wav_device or device, settings.code2wav_dtype or dtype),
        settings.phonemizer,
        settings.executor,
        settings.voices_dir,
        settings.voice,
        settings.max_loaded_voices,
    )
    return build(settings.model, config)
