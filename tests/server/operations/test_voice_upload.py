"""Voices that are uploaded and removed over HTTP: stored, listed and refused."""

import io
import wave
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest

from server.app import create_app
from server.config.settings import Settings
from server.serving.service import Service
from stages.contract.messages import SpeechEnd
from stages.contract.model import VoiceSpec
from stages.models.qwen3_tts.talker.recordings import (
    RecordingFolder,
    find_recordings,
    read_recording,
)
from tests.server.asgi import Exchange, get
from tests.server.bench import HELLO, SOUND, ScriptedDeployment, ScriptedStage

URL = "/v1/audio/voices"
BOUNDARY = "a-boundary-7f"


def wav(seconds=2.0, rate=16_000, channels=1):
    t = np.arange(int(seconds * rate)) / rate
    samples = (8000 * np.sin(2 * np.pi * 440 * t)).astype("<i2").repeat(channels)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(samples.tobytes())
    return file.getvalue()


def upload(sound=None, file_field="audio_sample", filename="../../etc/voice.wav", **fields):
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    if sound is not None:
        head = f'Content-Disposition: form-data; name="{file_field}"; filename="{filename}"'
        parts.append(f"--{BOUNDARY}\r\n{head}\r\nContent-Type: audio/wav\r\n\r\n".encode())
        parts += [sound, b"\r\n"]
    body = b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()])
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    return Exchange("POST", URL, body, {"content-type": kind}, pieces=3)


@asynccontextmanager
async def cloning(folder, **settings):
    """The app with a model that clones the voices in `folder`."""

    def voices():
        return tuple(
            VoiceSpec(recording.name, recording.language or "mul", file=recording.file)
            for recording in find_recordings(folder)
        )

    stages = ScriptedStage(*HELLO), ScriptedStage(SpeechEnd(1)), ScriptedStage(*SOUND)
    deployment = ScriptedDeployment(*stages, voices)
    speaker, *others = deployment.models
    speaker = replace(speaker, voices=voices(), uploads=RecordingFolder(folder))
    deployment.models = (speaker, *others)
    service = Service(Settings(**settings), lambda: deployment)
    async with service.running():
        await service.settled.wait()
        assert service.failure is None
        yield create_app(service)


async def test_a_voice_is_stored_listed_and_removed(tmp_path):
    async with cloning(tmp_path / "voices") as app:
        reply = await upload(wav(), name="ann", transcript="A tone.", language="en").run(app)
        assert (reply.status, reply.json["id"]) == (200, "ann")
        assert reply.json["object"] == "audio.voice"
        listed = (await get(URL).run(app)).json["data"]
        (ann,) = [voice for voice in listed if voice["name"] == "ann"]
        assert (ann["language"], ann["models"]) == ("en", ["speaker"])
        recording = read_recording(tmp_path / "voices" / "ann.wav")
        assert recording.transcript == "A tone."
        assert len(recording.samples) == pytest.approx(48_000, abs=100)
        assert np.abs(recording.samples).max() == pytest.approx(8000 / 32768, rel=0.05)

        gone = await Exchange("DELETE", f"{URL}/ann").run(app)
        assert gone.json == {"object": "audio.voice.deleted", "id": "ann", "deleted": True}
        assert list((tmp_path / "voices").iterdir()) == []
        assert (await Exchange("DELETE", f"{URL}/ann").run(app)).status == 404


async def test_stereo_becomes_mono_and_the_file_name_is_ignored(tmp_path):
    async with cloning(tmp_path) as app:
        reply = await upload(wav(1.5, 48_000, 2), name="two").run(app)
        assert reply.status == 200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["two.json", "two.wav"]
    assert len(read_recording(tmp_path / "two.wav").samples) == pytest.approx(36_000, abs=100)


PLAYLIST = b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"
FILE_LIST = b"ffconcat version 1.0\nfile /etc/passwd\n"


@pytest.mark.parametrize(
    ("sound", "fields", "param", "code"),
    [
        (wav(), {}, "name", "missing_required_parameter"),
        (None, {"name": "ann"}, "audio_sample", "missing_required_parameter"),
        (wav(), {"name": "../ann"}, "name", "invalid_value"),
        (wav(), {"name": "a" * 65}, "name", "invalid_value"),
        (wav(), {"name": "ann", "language": "not a tag"}, "language", "invalid_value"),
        (wav(), {"name": "alloy"}, "name", "voice_exists"),
        (wav(), {"name": "low"}, "name", "voice_exists"),  # a voice of another model
        (wav(0.5), {"name": "ann"}, "audio_sample", "audio_too_short"),
        (wav(31), {"name": "ann"}, "audio_sample", "audio_too_long"),
        (b"not an audio file", {"name": "ann"}, "audio_sample", "invalid_audio"),
        (b"", {"name": "ann"}, "audio_sample", "invalid_audio"),
        (PLAYLIST, {"name": "ann"}, "audio_sample", "invalid_audio"),
        (FILE_LIST, {"name": "ann"}, "audio_sample", "invalid_audio"),
    ],
)
async def test_a_refusal_names_the_field(sound, fields, param, code, tmp_path):
    async with cloning(tmp_path) as app:
        reply = await upload(sound, **fields).run(app)
        assert reply.status == 400
        assert (reply.error["param"], reply.error["code"]) == (param, code)
    assert list(tmp_path.iterdir()) == []


async def test_the_size_and_number_of_recordings_are_limited(tmp_path):
    settings = {"max_recording_bytes": 100_000, "max_recordings": 1}
    async with cloning(tmp_path, **settings) as app:
        assert (await upload(wav(10), name="big").run(app)).status == 413
        assert (await upload(wav(), name="ann").run(app)).status == 200
        again = await upload(wav(), name="ann").run(app)
        assert again.error["code"] == "voice_exists"
        more = await upload(wav(), name="bob").run(app)
        assert more.error["code"] == "too_many_voices"


async def test_a_body_that_is_not_a_form_is_refused(tmp_path):
    async with cloning(tmp_path) as app:
        for headers in (
            {"content-type": "application/json"},
            {"content-type": "multipart/form-data"},
            {"content-type": "multipart/form-data; boundary=other"},
        ):
            reply = await Exchange("POST", URL, b"{}", headers).run(app)
            assert reply.status == 400


async def test_uploads_need_a_model_that_clones_voices(tmp_path):
    from tests.server.bench import fake

    async with fake() as app:
        assert (await upload(wav(), name="ann").run(app)).status == 400
        assert (await Exchange("DELETE", f"{URL}/ann").run(app)).status == 404
