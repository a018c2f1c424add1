"""A family that is not in the tree is served like those that are, in threads and in processes."""

import io
import json
import wave

import httpx2
import pytest

from server.cli.main import main
from server.config.settings import Settings
from server.serving.deploy import build_service
from stages.models.registry import FAMILIES
from tests.outside.family import DOT_SAMPLES
from tests.server.loopback import serving

E, T, GAP = 2 + 2, 4 + 2, 2  # dots
SPEECH = {"model": "tts-1", "voice": "alloy", "input": "et", "response_format": "pcm"}
CHAT = {"model": "gpt-audio", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
def registered():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FAMILIES, "morse", "tests.outside.family")  # the one line
        yield


@pytest.fixture(scope="module")
def folder(registered, tmp_path_factory):
    folder = tmp_path_factory.mktemp("morse")
    config = {"model_type": "morse", "id": "morse-one"}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module", params=["thread", "process"])
def client(folder, request):
    settings = Settings(port=0, model=str(folder), executor=request.param)
    with (
        serving(build_service(settings)) as server,
        httpx2.Client(base_url=server.url, timeout=30) as client,
    ):
        yield client


def test_it_speaks(client):
    answer = client.post("/v1/audio/speech", json=SPEECH)
    assert answer.status_code == 200
    assert len(answer.content) == 2 * DOT_SAMPLES * (E + T)


def test_it_chats_in_text(client):
    answer = client.post("/v1/chat/completions", json=CHAT).json()
    assert answer["choices"][0]["message"]["content"] == "e t"
    assert answer["usage"]["completion_tokens"] == 2


def test_it_chats_in_text_and_audio(client):
    spoken = {"modalities": ["text", "audio"], "audio": {"voice": "key", "format": "wav"}}
    answer = client.post("/v1/chat/completions", json={**CHAT, **spoken}).json()
    assert answer["choices"][0]["message"]["audio"]["transcript"] == "e t"
    assert answer["usage"]["completion_tokens_details"]["audio_tokens"] > 0


def test_it_has_captions(client):
    events = {**SPEECH, "stream_format": "sse", "captions": True}
    answer = client.post("/v1/audio/speech", json=events).text
    lines = [line.removeprefix("data: ") for line in answer.splitlines() if "captions" in line]
    spans = [
        (each["start"], each["end"]) for line in lines for each in json.loads(line)["captions"]
    ]
    assert spans == [(0, 1), (1, 2)]


def test_it_checks_a_setting_of_its_own(client):
    assert client.post("/v1/audio/speech", json={**SPEECH, "pitch_hz": 440}).status_code == 200
    for wrong in (1, "high", [], True):
        refused = client.post("/v1/audio/speech", json={**SPEECH, "pitch_hz": wrong})
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "pitch_hz"
    assert client.post("/v1/audio/speech", json={**SPEECH, "speed": 2}).status_code == 400


def test_voices_are_uploaded_spoken_and_removed(client):
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setparams((1, 2, 24_000, 0, "NONE", ""))
        file.writeframes(bytes(2 * 48_000))
    form = {"name": "mine", "consent": "yes"}
    files = {"audio_sample": ("mine.wav", sound.getvalue(), "audio/wav")}
    assert client.post("/v1/audio/voices", data=form, files=files).status_code == 200
    assert client.post("/v1/audio/speech", json={**SPEECH, "voice": "mine"}).status_code == 200
    assert client.delete("/v1/audio/voices/mine").status_code == 200
    assert client.post("/v1/audio/speech", json={**SPEECH, "voice": "mine"}).status_code == 400


def test_two_models_of_it_share_aliases(registered, folder, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "morse", "id": "morse-two"}))
    both = f"{folder},{tmp_path}"
    for chosen, owner in ({}, "morse-one"), ({"tts-1": "morse-two"}, "morse-two"):
        with serving(build_service(Settings(port=0, model=both, aliases=chosen))) as server:
            models = httpx2.get(f"{server.url}/v1/models").json()["data"]
            ready = httpx2.get(f"{server.url}/health/ready").json()
        names = [model["id"] for model in models]
        assert names.count("tts-1") == 1
        before = [name for name in names[: names.index("tts-1")] if name.startswith("morse")]
        assert before[-1] == owner
        assert {"morse-one", "morse-two"} <= set(names)
        assert len(ready["stages"]) == 6


def test_the_commands_ask_the_family(registered, folder, capsys):
    assert main(["weights", "--model", str(folder)]) == 0
    assert "config.json" in capsys.readouterr().out
    assert main(["memory", "--model", str(folder)]) == 0
    assert "talker" in capsys.readouterr().out
    assert main(["models", "--model", str(folder)]) == 0
    assert "text to text and audio: thinker, talker, code2wav" in capsys.readouterr().out
