"""The lists of models and voices, in the forms that clients look for."""

import pytest

from tests.server.asgi import get, post
from tests.server.bench import SPEECH, scripted


async def test_all_models_are_listed_by_id_and_alias():
    async with scripted() as (app, _):
        reply = await get("/v1/models").run(app)
    assert reply.json["object"] == "list"
    names = [model["id"] for model in reply.json["data"]]
    assert names == ["speaker", "tts-1", "chatter", "gpt-audio", "org/writer"]
    assert {model["object"] for model in reply.json["data"]} == {"model"}


@pytest.mark.parametrize("name", ["speaker", "tts-1", "org/writer"])
async def test_a_listed_model_can_be_retrieved(name):
    async with scripted() as (app, _):
        reply = await get(f"/v1/models/{name}").run(app)
    assert reply.json["id"] == name


@pytest.mark.parametrize("name", ["fake_id", "org/other"])
async def test_an_unknown_model_is_a_404(name):
    async with scripted() as (app, _):
        reply = await get(f"/v1/models/{name}").run(app)
    assert reply.status == 404
    assert reply.error["message"] == f"The model '{name}' does not exist"
    assert (reply.error["param"], reply.error["code"]) == ("model", "model_not_found")


async def test_each_voice_is_listed_once():
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


async def test_legacy_lists_only_the_names_of_voices():
    async with scripted() as (app, _):
        reply = await get("/v1/audio/voices", query=b"legacy=true").run(app)
    assert reply.json == ["low", "high"]


async def test_speech_models_have_a_list_of_their_own():
    async with scripted() as (app, _):
        reply = await get("/v1/audio/models").run(app)
    assert [model["id"] for model in reply.json["models"]] == ["speaker", "tts-1"]
    assert reply.json["data"] == reply.json["models"]


async def test_every_listed_voice_can_speak():
    async with scripted() as (app, _):
        voices = (await get("/v1/audio/voices").run(app)).json["voices"]
        names = [name for voice in voices for name in (voice["id"], *voice["aliases"])]
        for name in names:
            reply = await post("/v1/audio/speech", {**SPEECH, "voice": name}).run(app)
            assert reply.status == 200
    assert len(names) == 2 + 13
