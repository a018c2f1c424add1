"""A conversation over HTTP: its replies, the messages that it keeps, and its errors."""

import pytest

from server.cli.client.api import RemoteError, ServerAddress, list_models, open_client
from server.cli.client.chat import Conversation
from server.cli.client.local import local_server
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
        yield ServerAddress(f"{found.url}/v1", "sk-one")


def test_a_reply_streams_text_and_audio_and_is_kept(server):
    with open_client(server) as client:
        conversation = Conversation(client, "fake-chat", "alloy")
        parts = list(conversation.ask("hello big world"))
        assert "".join(part.text for part in parts) == "You said: hello big world"
        assert sum(len(part.pcm) for part in parts) > 0
        list(conversation.ask("and now"))
    assert [message["role"] for message in conversation.messages] == ["user", "assistant"] * 2


def test_without_a_voice_there_is_no_audio(server):
    with open_client(server) as client:
        parts = list(Conversation(client, "fake-chat", "").ask("hello"))
    assert not any(part.pcm for part in parts)


def test_a_refusal_has_the_servers_message_and_is_not_kept(server):
    with open_client(server) as client:
        conversation = Conversation(client, "no-such-model", "")
        with pytest.raises(RemoteError, match=r"HTTP 404: .*no-such-model"):
            list(conversation.ask("hello"))
    assert conversation.messages == []


def test_a_wrong_key_and_an_unreachable_server_give_different_errors(server):
    with open_client(ServerAddress(server.url, "sk-two")) as client:
        with pytest.raises(RemoteError, match="HTTP 401"):
            list_models(client)
    with open_client(ServerAddress("http://127.0.0.1:9")) as client:
        with pytest.raises(RemoteError, match=r"127\.0\.0\.1:9"):
            list_models(client)


def test_an_error_in_the_stream_is_raised_after_the_text_before_it():
    stages = ScriptedStage(TextChunk("Hi", 1), RequestError("r", "no")), ScriptedStage()
    deployment = ScriptedDeployment(*stages, ScriptedStage(tone(2400)))
    with serving(Service(Settings(port=0), lambda: deployment)) as found:
        with open_client(ServerAddress(found.url)) as client:
            conversation = Conversation(client, "org/writer", "")
            with pytest.raises(RemoteError):
                list(conversation.ask("hello"))
    assert conversation.messages[-1] == {"role": "assistant", "content": "Hi"}


def build_fake_service(settings):
    return Service(settings, lambda: build(["fake"], BuildConfig(settings.cache_dir)))


def test_a_local_server_refuses_other_clients():
    with local_server(Settings(model="fake"), build_fake_service) as address:
        with open_client(address) as client:
            assert list_models(client).others[0] == "fake-chat"
        with open_client(ServerAddress(address.url)) as client:
            with pytest.raises(RemoteError, match="HTTP 401"):
                list_models(client)


def test_a_local_server_that_does_not_start_raises_the_reason():
    def deploy():
        raise StartError("no weights")

    with pytest.raises(StartError, match="no weights"):
        with local_server(Settings(), lambda settings: Service(settings, deploy)):
            pass
