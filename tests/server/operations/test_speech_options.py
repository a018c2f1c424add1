"""Options of speech over HTTP: style, captions, unspoken letters, speakers, reloaded voices."""

import base64
import json
from dataclasses import dataclass
from functools import partial

import pytest

from server.operations.shared.captions import webvtt
from stages.contract.messages import (
    AudioChunk,
    AudioEnd,
    Caption,
    TextChunk,
    TextEnd,
    TextSpan,
    VoiceFile,
)
from stages.contract.model import VoiceSpec
from stages.contract.request_settings import SettingError, fill
from stages.text.markup import cleaned
from tests.server.asgi import events, get, post
from tests.server.bench import CHAT, SPEECH, SPOKEN, scripted, tone

URL = "/v1/audio/speech"
CHAT_URL = "/v1/chat/completions"
HELLO = Caption(TextSpan(0, 12, 0, 4_000), (TextSpan(0, 5, 0, 2_000),))
THERE = Caption(TextSpan(0, 12, 0, 4_000), (TextSpan(6, 11, 2_000, 4_000),))
WITH_CAPTIONS = (
    AudioChunk(tone(2_400).samples, 24_000, (HELLO,)),
    AudioChunk(tone(2_400).samples, 24_000, (THERE,)),
    AudioEnd(4_800, 4),
)
PIECE = {"start": 0, "end": 12, "start_s": 0.0, "end_s": 0.1667}
FIRST = {"start": 0, "end": 5, "start_s": 0.0, "end_s": 0.0833}
SECOND = {"start": 6, "end": 11, "start_s": 0.0833, "end_s": 0.1667}


@dataclass(frozen=True)
class NoSettings:
    """Of a family without any."""


async def speak(app, **changes):
    return await post(URL, {**SPEECH, **changes}).run(app)


async def test_style_reaches_the_talker():
    async with scripted() as (app, deployment):
        style = {"length_scale": 1.5, "sentence_silence": 0.5, "noise_w": 0, "clean": False}
        reply = await speak(app, **style)
        talker = deployment.speech[0].submitted[0][1].params[0]
    assert reply.status == 200
    chosen = talker.settings
    assert (chosen.length_scale, chosen.sentence_silence, chosen.noise_w) == (1.5, 0.5, 0.0)
    assert not talker.clean
    assert not talker.captions


async def test_a_family_has_settings_of_its_own_and_checks_them_itself():
    def own(values, extra):
        if extra.get("pitch") == "silly":
            raise SettingError("pitch", "it must be high or low")
        return extra

    async with scripted(speech_settings=own) as (app, deployment):
        assert (await speak(app, pitch="high")).status == 200
        assert deployment.speech[0].submitted[0][1].params[0].settings == {"pitch": "high"}
        refused = await speak(app, pitch="silly")
    error = refused.json["error"]
    assert refused.status == 400
    assert (error["param"], error["message"]) == (
        "pitch",
        "Invalid 'pitch': it must be high or low.",
    )


async def test_what_a_family_does_not_have_is_refused_by_name_and_hints_are_not():
    async with scripted(speech_settings=partial(fill, NoSettings)) as (app, _):
        assert (await speak(app, instructions="Whisper.", speed=1, unknown=1)).status == 200
        for field, value in (("speed", 2), ("noise_w", 0), ("sentence_silence", 0)):
            refused = await speak(app, **{field: value})
            assert (refused.status, refused.json["error"]["param"]) == (400, field)


@pytest.mark.parametrize(
    ("setting", "field", "cleans"),
    [(True, None, True), (False, None, False), (False, True, True), (True, False, False)],
)
async def test_the_request_overrides_the_setting_for_cleaning(setting, field, cleans):
    async with scripted(clean=setting) as (app, deployment):
        await speak(app, clean=field)
        assert deployment.speech[0].submitted[0][1].params[0].clean is cleans


@pytest.mark.parametrize(
    ("setting", "announcement"), [(None, "Code block."), ("", ""), ("Kode", "Kode")]
)
async def test_the_announcement_of_code_is_a_setting(setting, announcement):
    async with scripted(code_announcement=setting) as (app, deployment):
        await speak(app)
        assert deployment.speech[0].submitted[0][1].params[0].code_announcement == announcement


@pytest.mark.parametrize(
    ("changes", "param", "code"),
    [
        ({"length_scale": 0.05}, "length_scale", "number_below_min_value"),
        ({"length_scale": 11}, "length_scale", "number_above_max_value"),
        ({"sentence_silence": -1}, "sentence_silence", "number_below_min_value"),
        ({"sentence_silence": 60}, "sentence_silence", "number_above_max_value"),
        ({"clean": "yes"}, "clean", "invalid_type"),
        ({"speaker": 1.5}, "speaker", "invalid_type"),
        ({"speaker": True}, "speaker", "invalid_type"),
        ({"speaker": "s0"}, "speaker", "speaker_not_found"),
        ({"speaker": 1}, "speaker", "speaker_not_found"),
        ({"speaker": -1}, "speaker", "speaker_not_found"),
        ({"captions": True}, "captions", "invalid_value"),
        ({"captions": 1, "stream_format": "sse"}, "captions", "invalid_type"),
        ({"input": "**__``**"}, "input", "invalid_value"),
        ({"input": "***\n---\n"}, "input", "invalid_value"),
        ({"input": "I love 東京"}, "input", "unspeakable_text"),
        ({"input": "Привет"}, "input", "unspeakable_text"),
    ],
)
async def test_a_refusal_names_the_field(changes, param, code):
    async with scripted() as (app, deployment):
        reply = await speak(app, **changes)
        assert deployment.speech[0].submitted == []
    assert (reply.status, reply.error["param"], reply.error["code"]) == (400, param, code)


async def test_unspeakable_letters_are_reported_by_script_and_position():
    async with scripted() as (app, _):
        reply = await speak(app, input="**I** love 東京")
    assert "cannot speak CJK letters" in reply.error["message"]
    assert "character 11" in reply.error["message"]
    assert "東" not in reply.error["message"]


async def test_a_text_of_only_code_is_refused_without_an_announcement():
    async with scripted(code_announcement="") as (app, _):
        reply = await speak(app, input="```\nx = 1\n```")
    assert (reply.status, reply.error["param"]) == (400, "input")
    async with scripted() as (app, _):
        assert (await speak(app, input="```\nx = 1\n```")).status == 200


@pytest.mark.parametrize("response_format", ["pcm", "mp3"])
async def test_captions_do_not_change_the_audio(response_format):
    options = {"stream_format": "sse", "response_format": response_format}
    async with scripted(sounder=WITH_CAPTIONS) as (app, _):
        plain = events((await speak(app, **options)).content)
        reply = events((await speak(app, **options, captions=True)).content)
    deltas = [json.loads(event) for event in reply[:-2]]
    without = [json.loads(event) for event in plain[:-2]]
    assert not any("captions" in delta for delta in without)
    assert audio_of(deltas) == audio_of(without)
    pieces = [piece for delta in deltas for piece in delta["captions"]]
    assert [word for piece in pieces for word in piece["words"]] == [FIRST, SECOND]
    assert all({**piece, "words": []} == {**PIECE, "words": []} for piece in pieces)
    assert reply[-2:] == plain[-2:]


def audio_of(deltas):
    return b"".join(base64.b64decode(delta["audio"]) for delta in deltas)


async def test_a_streamed_chat_has_captions_if_requested():
    audio = {**SPOKEN["audio"], "captions": True}
    async with scripted(sounder=WITH_CAPTIONS) as (app, deployment):
        body = {**SPOKEN, "audio": audio, "stream": True}
        reply = await post(CHAT_URL, body).run(app)
        assert deployment.chat[1].submitted[0][1].params.captions
    deltas = [json.loads(event)["choices"][0]["delta"] for event in events(reply.content)[:-1]]
    pieces = [p for delta in deltas for p in delta.get("audio", {}).get("captions", ())]
    assert [word for piece in pieces for word in piece["words"]] == [FIRST, SECOND]


async def test_a_whole_chat_has_each_caption_once():
    audio = {**SPOKEN["audio"], "captions": True}
    async with scripted(sounder=WITH_CAPTIONS) as (app, _):
        reply = await post(CHAT_URL, {**SPOKEN, "audio": audio}).run(app)
        plain = await post(CHAT_URL, SPOKEN).run(app)
    spoken = reply.json["choices"][0]["message"]["audio"]
    assert spoken["captions"] == [{**PIECE, "words": [FIRST, SECOND]}]
    assert not {"captions", "unspoken"} & plain.json["choices"][0]["message"]["audio"].keys()


FOREIGN = (TextChunk("Hi да", 1), TextChunk(" and 京", 1), TextEnd("stop", 5, 2))
REPORT = {"letters": 3, "first": 3, "scripts": "Cyrillic, CJK"}


async def test_a_chat_reports_unspoken_letters():
    async with scripted(thinker=FOREIGN) as (app, _):
        streamed = await post(CHAT_URL, {**SPOKEN, "stream": True}).run(app)
        whole = await post(CHAT_URL, SPOKEN).run(app)
        written = await post(CHAT_URL, CHAT).run(app)
    chunks = [json.loads(event) for event in events(streamed.content)[:-1]]
    audio = [chunk["choices"][0]["delta"].get("audio", {}) for chunk in chunks]
    reports = [delta["unspoken"] for delta in audio if "unspoken" in delta]
    assert reports == [REPORT]
    assert "expires_at" in audio[[("unspoken" in delta) for delta in audio].index(True) + 1]
    assert whole.json["choices"][0]["message"]["audio"]["unspoken"] == REPORT
    assert "unspoken" not in written.content.decode()


@pytest.mark.parametrize("speaker", ["s0", 3])
async def test_a_chat_names_the_path_of_the_field(speaker):
    async with scripted() as (app, _):
        audio = {**SPOKEN["audio"], "speaker": speaker}
        reply = await post(CHAT_URL, {**SPOKEN, "audio": audio}).run(app)
    assert (reply.status, reply.error["param"]) == (400, "audio.speaker")


MANY = VoiceSpec(
    "many", "de-DE", "low", 16_000, ("s0", "s1"), "CC0", VoiceFile("/voices/many.onnx", 1)
)


async def reload_voices(app):
    return await post("/v1/audio/voices/reload", {}).run(app)


async def test_voices_can_be_reloaded_without_a_restart():
    found = [VoiceSpec("low", "en-US")]

    def find():
        return tuple(found)

    async with scripted(find_voices=find) as (app, deployment):
        assert (await speak(app, voice="many")).status == 400
        found.append(MANY)
        reply = await reload_voices(app)
        listed = {voice["id"]: voice for voice in reply.json["voices"]}
        assert (await get("/v1/audio/voices").run(app)).json == reply.json
        assert (await speak(app, voice="many", speaker="s1", input="Hallo.")).status == 200
        _, request = deployment.speech[0].submitted[-1]
    many = listed["many"]
    assert (many["quality"], many["sample_rate"], many["license"]) == ("low", 16_000, "CC0")
    assert many["speakers"] == ["s0", "s1"]
    assert listed["low"]["speakers"] == []
    assert listed["low"]["license"] is None
    talker, code2wav = request.params
    assert (talker.speaker, talker.file) == (1, MANY.file)
    assert (code2wav.speaker, code2wav.file) == (1, MANY.file)
    assert talker.code_announcement == ""


async def test_a_refusal_of_a_speaker_lists_the_speakers():
    async with scripted(find_voices=lambda: (MANY,)) as (app, _):
        await reload_voices(app)
        reply = await speak(app, voice="many", speaker="nobody", input="Hallo.")
    assert "'s0', 's1'" in reply.error["message"]


def test_webvtt_has_a_cue_for_each_piece_and_a_time_for_each_word():
    text = "**Hi** <you> & me.\nBye."
    captions = [
        Caption(
            TextSpan(2, 17, 0, 24_000), (TextSpan(2, 4, 0, 12_000), TextSpan(8, 11, 12_000, 24_000))
        ),
        Caption(TextSpan(2, 17, 0, 24_000), ()),
        Caption(TextSpan(19, 23, 90_061 * 24_000, 90_062 * 24_000), ()),
    ]
    lines = webvtt(cleaned(text, ""), captions).splitlines()
    assert lines[:3] == ["WEBVTT", "", "00:00:00.000 --> 00:00:01.000"]
    assert lines[3].startswith("Hi")
    assert "&amp; me" in lines[3]
    assert lines[5] == "25:01:01.000 --> 25:01:02.000"
    assert lines[6] == "Bye."


def test_the_command_line_writes_captions_and_lists_voices(tmp_path, capsys):
    from server.cli.main import main

    out, captions = tmp_path / "out.wav", tmp_path / "out.vtt"
    arguments = ["say", "Hi.", "-o", str(out), "--captions", str(captions), "--model", "fake"]
    assert main(arguments) == 0
    assert captions.read_text().startswith("WEBVTT")
    assert main(["voices", "--voices-dir", str(tmp_path)]) == 0
    assert "joe  (en-US, medium, 22050 Hz, CC0)" in capsys.readouterr().out
    assert out.stat().st_size > 44
