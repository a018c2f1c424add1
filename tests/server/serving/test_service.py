"""The life of a service: loading in the background, failing, and stopping."""

import threading

import anyio
import anyio.from_thread
import pytest

from server.app import create_app
from server.config.settings import Settings
from server.serving.service import Service
from server.serving.voices import voices_of
from stages.contract.errors import StartError, UnavailableError
from stages.contract.messages import SpeechEnd
from stages.contract.model import VoiceSpec
from tests.server.asgi import get, post
from tests.server.bench import HELLO, SOUND, SPEECH, ScriptedDeployment, ScriptedStage


def deployment():
    return ScriptedDeployment(
        ScriptedStage(*HELLO), ScriptedStage(SpeechEnd(1)), ScriptedStage(*SOUND)
    )


async def test_a_service_stopped_while_it_builds_loads_nothing():
    class Watched(ScriptedDeployment):
        num_starts = 0

        async def start(self, timeout_s):
            self.num_starts += 1

    built = Watched(ScriptedStage(), ScriptedStage(), ScriptedStage())
    with anyio.CancelScope() as scope:

        def deploy():
            anyio.from_thread.run_sync(scope.cancel)
            return built

        async with Service(Settings(), deploy).running():
            await anyio.sleep_forever()
    assert (built.num_starts, built.is_up) == (0, False)


async def test_a_loading_service_is_alive_and_not_ready():
    may_load = threading.Event()

    def deploy():
        may_load.wait(20)
        return deployment()

    service = Service(Settings(), deploy)
    app = create_app(service)
    async with service.running():
        assert (await get("/health/live").run(app)).status == 200
        for request in (get("/health/ready"), get("/v1/models"), post("/v1/audio/speech", SPEECH)):
            reply = await request.run(app)
            assert reply.status == 503
            assert 1 <= int(reply.reply_headers["retry-after"]) <= 60
        may_load.set()
        await service.settled.wait()
        assert (await get("/health/ready").run(app)).status == 200


async def test_a_failed_start_is_kept_in_failure_and_everything_stops():
    made = deployment()

    async def start(_timeout_s):
        raise StartError("talker: no weights")

    made.start = start
    service = Service(Settings(), lambda: made)
    async with service.running():
        await service.settled.wait()
        assert str(service.failure) == "talker: no weights"
        assert not service.ready
        with pytest.raises(UnavailableError):
            service.model("speaker")
    assert not made.is_up


async def test_everything_is_stopped_at_the_end():
    made = deployment()
    service = Service(Settings(), lambda: made)
    async with service.running():
        await service.settled.wait()
    assert not made.is_up


def test_a_model_voice_with_a_name_of_openai_is_that_voice():
    voices = voices_of((VoiceSpec("joe", "en"), VoiceSpec("alloy", "en")), "")
    assert voices.default == "joe"
    assert voices.resolve("alloy", "voice").name == "alloy"
    assert voices.resolve("nova", "voice").name == "joe"


async def test_a_default_voice_that_no_model_has_is_a_failure():
    service = Service(Settings(voice="nobody"), deployment)
    async with service.running():
        await service.settled.wait()
        assert "no such voice" in str(service.failure)
