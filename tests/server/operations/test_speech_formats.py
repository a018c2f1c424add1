"""Speech in every format over HTTP: media type, length, first bytes, and size of events."""

import base64
import json
from functools import partial

import numpy as np
import pytest

from server.encoding.formats import FORMATS, Codec, FileFormat, PyAvEncoder
from server.operations.speech.events import MAX_DELTA_BYTES
from stages.contract.messages import AudioEnd
from tests.server.asgi import events, post, running
from tests.server.bench import SPEECH, SPOKEN, fake, scripted, tone
from tests.server.decoding import decode, seconds

URL = "/v1/audio/speech"
MEDIA_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
TWENTY = (
    "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty."
)
CODEC_DELAY_S = {"mp3": 0.1, "aac": 0.1}


async def fake_speech(app, **changes):
    body = {"model": "tts-1", "voice": "alloy", "input": TWENTY, **changes}
    reply = await post(URL, body).run(app)
    assert reply.status == 200, reply.content
    return reply


def length_s(reply, name):
    return seconds(reply.content, "s16le" if name == "pcm" else None)


@pytest.mark.parametrize(("name", "media_type"), MEDIA_TYPES.items())
async def test_each_format_has_its_media_type_and_the_length_of_the_samples(name, media_type):
    async with fake() as app:
        reply = await fake_speech(app, response_format=name)
    assert reply.reply_headers["content-type"] == media_type
    expected_s = 0.02 * len(TWENTY.replace(" ", ""))
    assert -0.001 < length_s(reply, name) - expected_s < CODEC_DELAY_S.get(name, 0.05)


@pytest.mark.parametrize("changes", [{}, {"response_format": None}])
async def test_the_default_format_is_mp3(changes):
    async with fake() as app:
        reply = await fake_speech(app, **changes)
        mp3 = await fake_speech(app, response_format="mp3")
    assert reply.reply_headers["content-type"] == "audio/mpeg"
    assert reply.content == mp3.content
    assert reply.content.startswith(b"\xff\xf3")


async def test_the_default_format_of_events_is_mp3():
    async with fake() as app:
        plain = await fake_speech(app)
        reply = await fake_speech(app, stream_format="sse")
    deltas = [json.loads(delta)["audio"] for delta in events(reply.content)[:-2]]
    assert b"".join(map(base64.b64decode, deltas)) == plain.content


@pytest.mark.parametrize("name", FORMATS)
async def test_the_first_bytes_do_not_wait_for_the_second_chunk(name):
    async with scripted(sounder=(tone(2400, 3000),)) as (app, deployment):
        request = post(URL, {**SPEECH, "response_format": name})
        async with running(request, app):
            await request.got_bytes.wait()
            assert not request.complete
            deployment.speech[1].report(tone(2400, 3000))
            deployment.speech[1].report(AudioEnd(4800, 4))
    assert request.complete
    assert length_s(request, name) > 0.2 - 0.001


@pytest.mark.parametrize("name", FORMATS)
async def test_no_event_exceeds_the_maximum_size(name):
    noise = np.random.default_rng(1).integers(-9000, 9000, 96_000).astype(np.int16)
    chunk = tone(len(noise))
    object.__setattr__(chunk, "samples", noise)
    async with scripted(sounder=(chunk, AudioEnd(96_000, 80))) as (app, _):
        request = post(URL, {**SPEECH, "response_format": name, "stream_format": "sse"})
        *deltas, _, _ = events((await request.run(app)).content)
    parts = [base64.b64decode(json.loads(delta)["audio"]) for delta in deltas]
    assert 0 < min(map(len, parts)) <= max(map(len, parts)) <= MAX_DELTA_BYTES
    if name == "pcm":
        assert all(len(part) % 2 == 0 for part in parts)
        assert b"".join(parts) == noise.tobytes()


@pytest.mark.parametrize("stream_format", ["audio", "sse"])
async def test_an_encoder_that_cannot_be_opened_is_a_500(monkeypatch, stream_format):
    broken = partial(PyAvEncoder, Codec("ogg", "libopus", options={"page_duration": "soon"}))
    monkeypatch.setitem(FORMATS, "opus", FileFormat("audio/opus", broken, in_thread=True))
    async with scripted() as (app, _):
        request = post(URL, {**SPEECH, "response_format": "opus", "stream_format": stream_format})
        with pytest.raises(ValueError, match="Invalid argument"):
            await request.run(app)
    assert request.status == 500
    assert request.error["type"] == "server_error"


@pytest.mark.parametrize(("speed", "share"), [(0.25, 4.0), (0.5, 2.0), (2.0, 0.5), (4, 0.25)])
@pytest.mark.parametrize("name", ["mp3", "pcm"])
async def test_speed_divides_the_length(name, speed, share):
    async with fake() as app:
        normal = await fake_speech(app, response_format=name)
        reply = await fake_speech(app, response_format=name, speed=speed)
    assert length_s(reply, name) == pytest.approx(length_s(normal, name) * share, rel=0.15)


@pytest.mark.parametrize(
    "text",
    [
        "Hello\u0000 wor\u0007ld.",
        "no\u00a0break and zero\u200bwidth",
        "tab\tand\r\nlines",
        "\u201ccurly\u201d \u2018quotes\u2019 \u2014 and dashes\u2026",
        "\ufeffa byte order mark",
    ],
)
async def test_odd_characters_are_spoken(text):
    async with fake() as app:
        reply = await fake_speech(app, input=text, response_format="pcm")
    samples = np.frombuffer(reply.content, "<i2")
    assert len(samples) > 24_000 * 0.1
    assert np.abs(samples).max() > 1000


@pytest.mark.parametrize("voice", ["alloy", {"id": "alloy"}, "fake-low", {"id": "fake-low"}])
async def test_a_voice_can_be_a_name_or_an_object(voice):
    async with fake() as app:
        reply = await fake_speech(app, voice=voice, response_format="pcm")
        expected = await fake_speech(app, response_format="pcm")
    assert reply.content == expected.content


async def test_instructions_are_accepted_without_effect():
    async with fake() as app:
        instructed = await fake_speech(app, instructions="x" * 4096, response_format="flac")
        plain = await fake_speech(app, response_format="flac")
    assert instructed.content == plain.content


@pytest.mark.parametrize("name", ["wav", "aac", "mp3", "flac", "opus", "pcm16"])
async def test_a_whole_spoken_chat_in_each_format(name):
    async with fake() as app:
        body = {**SPOKEN, "model": "fake-chat", "audio": {"voice": "alloy", "format": name}}
        reply = await post("/v1/chat/completions", body).run(app)
    file = base64.b64decode(reply.json["choices"][0]["message"]["audio"]["data"])
    samples = decode(file, "s16le" if name == "pcm16" else None)
    delay_s = len(samples) / 24_000 - 0.02 * len("Yousaid:Hello")
    assert -0.001 < delay_s < CODEC_DELAY_S.get(name, 0.05)
    assert np.abs(samples.astype(int)).max() > 1000
