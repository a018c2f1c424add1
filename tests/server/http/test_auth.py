"""API keys: who may use the server, how others are refused, and which paths need no key."""

from hashlib import sha256

import pytest

from orchestrator import Admission
from server.app import create_app
from server.config.keys import Keys, keys_of
from server.config.settings import Settings, SettingsError
from server.config.sources import load_settings
from server.errors import WrongKeyError
from server.http.auth import KEY
from server.serving.service import Service
from stages.contract.messages import SpeechEnd
from tests.server.asgi import Exchange, get, post
from tests.server.bench import (
    CHAT,
    HELLO,
    SOUND,
    SPEECH,
    ScriptedDeployment,
    ScriptedStage,
    scripted,
)

ONE, OTHER = "sk-one", "sk-other-é"


def bearer(token):
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize("headers", [{}, {"authorization": ""}, {"authorization": "Basic eA=="}])
async def test_a_request_without_a_key_is_refused_with_401(headers):
    async with scripted(api_keys=[ONE]) as (app, deployment):
        reply = await post("/v1/audio/speech", SPEECH, headers=headers).run(app)
    assert deployment.speech[0].submitted == []
    assert reply.status == 401
    assert reply.reply_headers["www-authenticate"] == "Bearer"
    assert reply.reply_headers["x-request-id"]
    assert reply.error["message"].startswith("You didn't provide an API key.")
    assert (reply.error["type"], reply.error["code"]) == ("invalid_request_error", None)


@pytest.mark.parametrize("token", ["sk-none", "sk-on", "sk-one ,", ONE.upper(), "é" * 5000])
async def test_a_wrong_key_is_refused_and_not_repeated(token):
    async with scripted(api_keys=[ONE, OTHER]) as (app, _):
        reply = await get("/v1/models", headers=bearer(token)).run(app)
    assert reply.status == 401
    assert reply.error == {
        "message": "Incorrect API key provided.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_api_key",
    }


@pytest.mark.parametrize(
    "path", ["/v1/nothing", "/openapi.json", "/healthy", "/health/../v1/models"]
)
async def test_every_other_path_needs_a_key(path):
    async with scripted(api_keys=[ONE]) as (app, _):
        assert (await get(path).run(app)).status == 401


@pytest.mark.parametrize("path", ["/health", "/health/live", "/health/ready"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_health_needs_no_key(method, path):
    async with scripted(api_keys=[ONE]) as (app, _):
        assert (await Exchange(method, path).run(app)).status == 200


async def test_every_key_is_accepted_and_has_its_own_name():
    seen = []
    async with scripted(api_keys=[ONE, OTHER]) as (app, _):

        async def watched(scope, receive, send):
            await app(scope, receive, send)
            seen.append(scope[KEY])

        for token in (ONE, ONE, OTHER):
            reply = await get("/v1/models", headers=bearer(token)).run(watched)
            assert reply.status == 200
    assert seen[0] == seen[1] != seen[2]
    assert seen[0] == sha256(ONE.encode()).hexdigest()[:12]


class RecordingAdmission(Admission):
    """Notes for which key each request asks for its places."""

    def __init__(self):
        super().__init__(max_running=4, max_waiting=4)
        self.keys = []

    async def enter(self, key="", places=1):
        self.keys.append(key)
        return await super().enter(key, places)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/audio/speech", SPEECH),
        ("/v1/chat/completions", CHAT),
        ("/v1/completions", {"model": "chatter", "prompt": "Hi"}),
        ("/v1/responses", {"model": "chatter", "input": "Hi"}),
    ],
)
async def test_the_name_of_the_key_reaches_the_admission(path, body):
    deployment = ScriptedDeployment(
        ScriptedStage(*HELLO), ScriptedStage(SpeechEnd(1)), ScriptedStage(*SOUND)
    )
    service = Service(Settings(api_keys=[ONE]), lambda: deployment)
    service.admission = RecordingAdmission()
    async with service.running():
        await service.settled.wait()
        reply = await post(path, body, headers=bearer(ONE)).run(create_app(service))
    assert reply.status == 200
    assert service.admission.keys == [sha256(ONE.encode()).hexdigest()[:12]]


async def test_a_server_without_keys_accepts_any_token():
    async with scripted() as (app, _):
        for headers in ({}, bearer("any"), {"authorization": "nonsense"}):
            assert (await get("/v1/models", headers=headers).run(app)).status == 200


def test_keys_are_read_from_the_setting_and_from_the_file(tmp_path, monkeypatch):
    path = tmp_path / "keys"
    path.write_text("# of the team\n\n  sk-a  \n  # more\nsk-b\n", encoding="utf-8-sig")
    monkeypatch.setenv("NANO_OMNI_API_KEYS", "sk-c, sk-d")
    keys = keys_of(load_settings({"api_keys_file": path}))
    assert len({keys.name_of(f"sk-{letter}".encode()) for letter in "abcd"}) == 4
    for comment in (b"# of the team", b"# more"):
        with pytest.raises(WrongKeyError):
            keys.name_of(comment)


@pytest.mark.parametrize("content", [None, b"", b"# only this\n", b"\xff\xfe"])
def test_a_file_without_keys_is_refused(tmp_path, content):
    path = tmp_path / "keys"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match="api_keys_file"):
        keys_of(Settings(api_keys_file=path))


@pytest.mark.parametrize("given", ["sk-secret", ["sk-secret"], ("sk-secret",)])
def test_the_settings_contain_no_key(given):
    settings = Settings(api_keys=given)
    assert settings.api_keys == (sha256(b"sk-secret").digest(),)
    assert "sk-secret" not in repr(settings)
    assert not Keys(())
