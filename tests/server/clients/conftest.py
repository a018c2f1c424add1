"""Servers for the official client: one of fakes, and one whose stages fail."""

import pytest

from server.config.settings import Settings
from server.serving.service import Service
from stages.contract.errors import RequestError
from stages.contract.messages import SpeechEnd
from tests.server.bench import HELLO, ScriptedDeployment, ScriptedStage, fake_service, tone
from tests.server.clients.official import client_of
from tests.server.loopback import serving


@pytest.fixture(scope="module")
def address():
    """A server of fakes."""
    with serving(fake_service(port=0)) as server:
        yield server


@pytest.fixture(scope="module")
def client(address):
    """The official client, for the server of fakes."""
    with client_of(address) as client:
        yield client


@pytest.fixture(scope="module")
def failing():
    """A server whose thinker fails after a word, and whose code2wav fails after a chunk."""
    failure = RequestError("r", "no")

    def deploy():
        stages = ScriptedStage(HELLO[0], failure), ScriptedStage(SpeechEnd(1))
        return ScriptedDeployment(*stages, ScriptedStage(tone(2400), failure))

    with serving(Service(Settings(port=0), deploy)) as server:
        yield server
