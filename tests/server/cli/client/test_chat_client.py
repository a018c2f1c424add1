"""A conversation over the wire: what is heard of it, what is kept of it, how it fails."""

import pytest

from server.cli.client.api import RemoteError, Target, client_of, offer_of
from server.cli.client.chat import Conversation
from server.cli.client.local import serving_here
from server.config.settings import Settings
from server.serving.service import Service
from stages.contract.errors import RequestError, StartError
from stages.contract.messages import TextChunk
from stages.models.registry import build
from stages.runtime.placement import BuildConfig
from tests.server.bench import ScriptedDeployment, ScriptedStage, fake_service, tone
from tests.server.loopback import serving


@pytest.fixture(scope="module")
def server():
    with serving(fake_service(port=0, api_keys="sk-one")) as found:
        yield Target(f"{found.url}/v1", "sk-one")


def test_a_reply_comes_as_text_and_sound_and_is_kept(server):
    with client_of(server) as client:
        talk = Conversation(client, "fake-chat", "alloy")
        pieces = list(talk.ask("hello big world"))
        assert "".join(piece.text for piece in pieces) == "You said: hello big world"
        assert sum(len(piece.sound) for piece in pieces) > 0
        list(talk.ask("and now"))
    assert [message["role"] for message in talk.messages] == ["user", "assistant"] * 2


def test_without_a_voice_there_is_no_sound(server):
    with client_of(server) as client:
        pieces = list(Conversation(client, "fake-chat", "").ask("hello"))
    assert not any(piece.sound for piece in pieces)


def test_a_refusal_says_what_the_server_said_and_is_forgotten(server):
    with client_of(server) as client:
        talk = Conversation(client, "no-such-model", "")
        with pytest.raises(RemoteError, match=r"HTTP 404: .*no-such-model"):
            list(talk.ask("hello"))
    assert talk.messages == []


def test_a_wrong_key_and_a_server_that_is_not_there_are_told_apart(server):
    with client_of(Target(server.url, "sk-two")) as client:
        with pytest.raises(RemoteError, match="HTTP 401"):
            offer_of(client)
    with client_of(Target("http://127.0.0.1:9")) as client:
        with pytest.raises(RemoteError, match=r"127\.0\.0\.1:9"):
            offer_of(client)


def test_an_error_in_the_stream_is_raised_after_what_came():
    stages = ScriptedStage(TextChunk("Hi", 1), RequestError("r", "no")), ScriptedStage()
    deployment = ScriptedDeployment(*stages, ScriptedStage(tone(2400)))
    with serving(Service(Settings(port=0), lambda: deployment)) as found:
        with client_of(Target(found.url)) as client:
            talk = Conversation(client, "org/writer", "")
            with pytest.raises(RemoteError):
                list(talk.ask("hello"))
    assert talk.messages[-1] == {"role": "assistant", "content": "Hi"}


def fake_of(settings):
    return Service(settings, lambda: build("fake", BuildConfig(settings.cache_dir)))


def test_a_server_of_its_own_lets_nobody_else_in():
    with serving_here(Settings(model="fake"), fake_of) as own:
        with client_of(own) as client:
            assert offer_of(client).others[0] == "fake-chat"
        with client_of(Target(own.url)) as stranger, pytest.raises(RemoteError, match="HTTP 401"):
            offer_of(stranger)


def test_a_server_of_its_own_that_does_not_start_says_why():
    def deploy():
        raise StartError("no weights")

    with pytest.raises(StartError, match="no weights"):
        with serving_here(Settings(), lambda chosen: Service(chosen, deploy)):
            pass
