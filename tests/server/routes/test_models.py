"""What there is: models by every name, and voices in the forms that clients look for."""

import pytest

from tests.server.asgi import get, post
from tests.server.bench import SPEECH, scripted


async def test_every_name_of_every_model_is_listed():
    async with scripted() as (app, _):
        reply = await get("/v1/models").run(app)
    assert reply.json["object"] == "list"
    names = [model["id"] for model in reply.json["data"]]
    assert names == ["speaker", "tts-1", "chatter", "gpt-audio", "org/writer"]
    assert {model["object"] for model in reply.json["data"]} == {"model"}


@pytest.mark.parametrize("name", ["speaker", "tts-1", "org/writer"])
async def test_a_listed_model_can_be_asked_for(name):
    async with scripted() as (app, _):
        reply = await get(f"/v1/models/{name}").run(app)
    assert reply.json["id"] == name


@pytest.mark.parametrize("name", ["fake_id", "org/other"])
async def test_another_model_is_a_404(name):
    async with scripted() as (app, _):
        reply = await get(f"/v1/models/{name}").run(app)
    assert reply.status == 404
    assert reply.error["message"] == f"The model '{name}' does not exist"
    assert (reply.error["param"], reply.error["code"]) == ("model", "model_not_found")


async def test_voices_are_listed_once_under_both_names():
    async with scripted() as (app, _):
        reply = await get("/v1/audio/voices").run(app)
    voices = reply.json["voices"]
    assert reply.json["data"] == voices
    assert [(v["id"], v["name"], v["models"]) for v in voices] == [
        ("low", "low", ["speaker", "chatter"]),
        ("high", "high", ["speaker", "chatter"]),
    ]
    assert "alloy" in voices[0]["aliases"]
    assert voices[1]["aliases"] == []


async def test_voices_may_be_names_only():
    async with scripted() as (app, _):
        reply = await get("/v1/audio/voices", query=b"legacy=true").run(app)
    assert reply.json == ["low", "high"]


async def test_the_models_that_speak_are_listed_apart():
    async with scripted() as (app, _):
        reply = await get("/v1/audio/models").run(app)
    assert [model["id"] for model in reply.json["models"]] == ["speaker", "tts-1"]
    assert reply.json["data"] == reply.json["models"]


async def test_every_voice_that_is_listed_can_be_spoken_with():
    async with scripted() as (app, _):
        voices = (await get("/v1/audio/voices").run(app)).json["voices"]
        names = [name for voice in voices for name in (voice["id"], *voice["aliases"])]
        for name in names:
            reply = await post("/v1/audio/speech", {**SPEECH, "voice": name}).run(app)
            assert reply.status == 200
    assert len(names) == 2 + 13
