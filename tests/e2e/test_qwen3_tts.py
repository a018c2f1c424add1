"""Qwen3-TTS over HTTP with small checkpoints: both stages, the three kinds, both executors."""

import base64
import json
from contextlib import asynccontextmanager, suppress

import anyio
import numpy as np
import pytest

from server.app import create_app
from server.config.settings import Settings
from server.errors import BrokenStreamError
from server.serving.service import Service
from stages.contract.errors import CheckpointError
from stages.contract.model import DEFAULT_MAX_RUNNING
from stages.models.registry import build
from stages.runtime.placement import BuildConfig, Placement
from tests.deployments import placed
from tests.qwen3_tts import sizes
from tests.qwen3_tts.checkpoint import KINDS, write_checkpoint
from tests.server.asgi import Exchange, events, get, post, running
from tests.server.operations.test_voice_upload import upload, wav

SPEECH = "/v1/audio/speech"
TEXT = "The other thing is in the house, and that is all of it."
TEXTS = [TEXT, "Nothing.", "In the other house there is the thing.", "Who is it then?"] * 2
FRAME_SAMPLES = 1920


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Checkpoints that sample their codes, and whose speech ends when its text ends."""
    folder = tmp_path_factory.mktemp("served")
    return {
        kind: write_checkpoint(folder / kind, kind, sizes.SAMPLED, ends_with_text=True)
        for kind in KINDS
    }


@asynccontextmanager
async def serving(folder, tmp_path, executor="thread", **settings):
    """The app with a checkpoint as its model."""
    chosen = Settings(model=str(folder), recordings_dir=tmp_path / "recordings", **settings)
    on = Placement(executor=executor)
    config = BuildConfig(
        chosen.cache_dir,
        placed(on, on, on),
        recordings_dir=chosen.recordings_dir,
        max_running=chosen.max_running or DEFAULT_MAX_RUNNING,
    )
    service = Service(chosen, lambda: build([str(folder)], config))
    async with service.running():
        await service.settled.wait()
        if service.failure is not None:
            raise service.failure
        yield create_app(service)


def speech(text=TEXT, voice="ryan", **fields):
    body = {"model": "tts-1", "voice": voice, "input": text, "response_format": "pcm", "seed": 5}
    return post(SPEECH, {**body, **fields})


def is_close(one, other):
    """Whether both have the same length and differ by at most 1 in 16 bits."""
    return len(one) == len(other) and np.abs(one.astype(int) - other).max() <= 1


async def samples_of(app, **fields):
    reply = await speech(**fields).run(app)
    assert reply.status == 200, reply.content
    assert reply.complete
    return np.frombuffer(reply.content, "<i2")


async def test_speech_is_whole_frames_and_the_same_seed_gives_the_same_speech(folders, tmp_path):
    async with serving(folders["custom_voice"], tmp_path) as app:
        once, again = await samples_of(app), await samples_of(app)
        other = await samples_of(app, seed=6)
    assert len(once) % FRAME_SAMPLES == 0
    assert len(once) > 20 * FRAME_SAMPLES
    assert np.abs(once).max() > 300
    assert is_close(once, again)
    assert len(other) != len(once) or (other != once).any()


@pytest.mark.parametrize("executor", ["thread", "process"])
async def test_eight_concurrent_speeches_equal_those_made_alone(executor, folders, tmp_path):
    alone, together = {}, {}

    async def speak(app, number):
        together[number] = await samples_of(app, text=TEXTS[number], seed=number)

    async with serving(folders["custom_voice"], tmp_path) as app:
        for number, text in enumerate(TEXTS):
            alone[number] = await samples_of(app, text=text, seed=number)
    async with serving(folders["custom_voice"], tmp_path, executor) as app:
        async with anyio.create_task_group() as tasks:
            for number in range(len(TEXTS)):
                tasks.start_soon(speak, app, number)
    for number in alone:
        assert is_close(together[number], alone[number])


async def test_events_have_usage_in_tokens_and_frames_and_captions(folders, tmp_path):
    async with serving(folders["custom_voice"], tmp_path) as app:
        reply = await speech(stream_format="sse", captions=True).run(app)
    *deltas, done, end = events(reply.content)
    assert end == "[DONE]"
    usage = json.loads(done)["usage"]
    deltas = [json.loads(delta) for delta in deltas]
    sound = b"".join(base64.b64decode(delta["audio"]) for delta in deltas)
    frames = len(sound) // 2 // FRAME_SAMPLES
    assert usage["output_tokens"] == frames
    assert usage["input_tokens"] + frames == usage["total_tokens"]
    assert 20 < usage["input_tokens"] < len(TEXT)  # some pairs of letters are one token
    assert deltas[-1]["captions"] == [
        {
            "start": 0,
            "end": len(TEXT),
            "start_s": 0.0,
            "end_s": pytest.approx(frames * 0.08),
            "words": [],
        }
    ]


async def test_voices_and_languages_are_those_of_the_checkpoint(folders, tmp_path):
    async with serving(folders["custom_voice"], tmp_path) as app:
        voices = (await get("/v1/audio/voices").run(app)).json["data"]
        assert [voice["name"] for voice in voices] == list(sizes.SPEAKERS)
        assert voices[0]["languages"] == ["zh", "en", "de"]
        default = await samples_of(app, voice="alloy")
        assert is_close(default, await samples_of(app, voice="vivian"))
        for language in ("en", "de-AT", "zh"):
            await samples_of(app, language=language)
        refused = await speech(language="sv").run(app)
        assert (refused.status, refused.error["param"]) == (400, "language")
        refused = await speech(voice="nobody").run(app)
        assert (refused.status, refused.error["code"]) == (400, "voice_not_found")


@pytest.mark.parametrize(
    "options", [{"speed": 2.0}, {"noise_scale": 0.1}, {"sentence_silence": 1.0}, {"speaker": "1"}]
)
async def test_options_that_the_model_does_not_support_are_refused(options, folders, tmp_path):
    async with serving(folders["custom_voice"], tmp_path) as app:
        reply = await speech(**options).run(app)
        assert reply.status == 400
        assert reply.error["param"] == next(iter(options))
        await samples_of(app, speed=1.0)


async def test_another_description_gives_another_voice(folders, tmp_path):
    async with serving(folders["voice_design"], tmp_path) as app:
        low = await samples_of(app, voice="designed", instructions="A low voice.")
        high = await samples_of(app, voice="alloy", instructions="A high voice.")
    assert len(low) != len(high) or (low != high).any()


async def test_a_voice_can_be_uploaded_used_and_removed(folders, tmp_path):
    async with serving(folders["base"], tmp_path) as app:
        assert (await get("/v1/audio/voices").run(app)).json["data"] == []
        assert (await speech(voice="ann").run(app)).status == 400
        sound = wav(1.5)
        plain = await upload(sound, name="ann").run(app)
        described = await upload(sound, name="bob", transcript="A tone.", language="en").run(app)
        assert (plain.status, described.status) == (200, 200)
        ann, bob = await samples_of(app, voice="ann"), await samples_of(app, voice="bob")
        assert len(ann) % FRAME_SAMPLES == len(bob) % FRAME_SAMPLES == 0
        assert len(ann) != len(bob) or (ann != bob).any()
        await Exchange("DELETE", "/v1/audio/voices/ann").run(app)
        assert (await speech(voice="ann").run(app)).status == 400
    async with serving(folders["base"], tmp_path) as app:  # the voice is kept after a restart
        assert is_close(await samples_of(app, voice="bob"), bob)


async def test_a_client_that_disconnects_frees_its_place(folders, tmp_path):
    async with serving(folders["custom_voice"], tmp_path, max_running=1, max_waiting=1) as app:
        leaving = speech(text=TEXT * 8)
        async with running(leaving, app):
            await leaving.got_bytes.wait()
            leaving.left.set()
        assert len(await samples_of(app)) > 0


async def test_a_speech_ends_at_its_deadline(folders, tmp_path):
    async with serving(folders["custom_voice"], tmp_path) as app:
        late = speech(text=TEXT * 12, timeout_s=0.1)
        with suppress(BrokenStreamError):  # if a part of it was sent before the deadline
            await late.run(app)
        assert late.status == 504 or not late.complete
        assert len(await samples_of(app)) > 0


def test_a_folder_without_a_checkpoint_is_refused(folders, tmp_path):
    config = BuildConfig(tmp_path)
    with pytest.raises(CheckpointError, match="no model 'nowhere'"):
        build(["nowhere"], config)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        build([str(tmp_path / "empty")], config)
