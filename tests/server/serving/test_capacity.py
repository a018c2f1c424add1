"""How many requests run at once, measured with a few samples at start."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from orchestrator import OrchOutput
from server.config.settings import Settings
from server.serving.capacity import NUM_SAMPLES, audio_s_per_s, choose_max_running, max_running_at
from server.serving.service import Service
from stages.contract.errors import RequestError
from stages.contract.messages import AudioChunk, AudioEnd, SpeechEnd
from stages.contract.model import DEFAULT_MAX_RUNNING
from stages.contract.roles import Role
from tests.server.bench import HELLO, SOUND, ScriptedDeployment, ScriptedStage

SECOND = AudioChunk(np.zeros(24_000, np.int16), 24_000)


class Speaker:
    """A model that takes `second_s` of its clock `now` for each second of audio."""

    model = SimpleNamespace(sample="sample", max_running=DEFAULT_MAX_RUNNING)

    def __init__(self, second_s, error=None):
        self.second_s = second_s
        self.error = error
        self.now = 5.0
        self.speech = self  # its pipeline that speaks

    def open(self, requests, deadline_s, key):
        assert requests == ("sample",) * NUM_SAMPLES

        @asynccontextmanager
        async def stream():
            yield self.outputs(requests)

        return stream

    async def outputs(self, requests):
        for request_id in requests:
            for data in (SECOND, SECOND, AudioEnd(48_000, 40)):
                self.now += self.second_s * isinstance(data, AudioChunk)
                is_end = isinstance(data, AudioEnd)
                error = self.error if is_end else None
                yield OrchOutput(request_id, 1, data, is_end, error, 0, Role.CODE2WAV, is_end)


async def test_the_rate_is_the_audio_of_all_samples_divided_by_the_time():
    speaker = Speaker(0.025)
    rate = await audio_s_per_s(speaker, "sample", lambda: speaker.now)
    assert rate == pytest.approx(40)


async def test_a_sample_that_fails_fails_the_start():
    with pytest.raises(RequestError):
        await choose_max_running([Speaker(0.025, RequestError("a", "no voice"))])


@pytest.mark.parametrize(("rate", "places"), [(0.5, 1), (3.0, 2), (40.0, 32), (500.0, 64)])
def test_max_running_stays_below_the_measured_rate(rate, places):
    assert max_running_at(rate) == places


@pytest.mark.parametrize(
    ("rates", "places", "num_trials"),
    [((40.0, 60.0), 32, 1), ((10.0, 20.0, 30.0), 16, 2), ((10.0, 12.0, 5.0, 40.0), 9, 3)],
)
async def test_a_bad_trial_is_repeated(monkeypatch, rates, places, num_trials):
    trials = iter(rates)

    async def next_rate(served, sample):
        return next(trials)

    monkeypatch.setattr("server.serving.capacity.audio_s_per_s", next_rate)
    assert await choose_max_running([Speaker(0.025)]) == places
    assert len(list(trials)) == len(rates) - num_trials


async def test_with_two_models_nothing_is_measured():
    assert await choose_max_running([Speaker(0.025), Speaker(0.025)]) == DEFAULT_MAX_RUNNING


@pytest.mark.parametrize(
    ("settings", "places"), [({}, DEFAULT_MAX_RUNNING), ({"max_running": 3}, 3)]
)
async def test_the_setting_counts_and_without_a_sample_the_default(settings, places):
    stages = ScriptedStage(*HELLO), ScriptedStage(SpeechEnd(1)), ScriptedStage(*SOUND)
    service = Service(Settings(**settings), lambda: ScriptedDeployment(*stages))
    async with service.running():
        await service.settled.wait()
        assert service.admission.max_running == places
