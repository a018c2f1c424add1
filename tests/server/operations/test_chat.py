"""Chat completions over HTTP: whole and streamed, in text and in speech."""

import base64
import io
import json
import time
import wave

import pytest

from openapi.chat.chunk import ChatChunk
from openapi.chat.request import ChatRequest
from server.errors import BrokenStreamError
from stages.contract.errors import RequestError
from stages.contract.messages import (
    AudioEnd,
    ChatPrompt,
    Message,
    SpeechEnd,
    TextChunk,
    TextEnd,
)
from tests.server.asgi import events, post, running
from tests.server.bench import CHAT, HELLO, SOUND, SPOKEN, fake, scripted, tone
from tests.server.observe.scraping import metrics_of
from tests.server.operations.replies import chunks_of

URL = "/v1/chat/completions"
SAMPLES = b"".join(chunk.samples.tobytes() for chunk in SOUND[:2])


async def chat(app, body=CHAT, **changes):
    return await post(URL, {**body, **changes}).run(app)


def deltas_of(chunks):
    return [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]


async def test_a_whole_reply_in_text():
    async with scripted() as (app, deployment):
        reply = await chat(app)
        assert deployment.chat[1].submitted == []
    assert reply.reply_headers["content-type"] == "application/json"
    body = reply.json
    (choice,) = body["choices"]
    assert choice == {
        "index": 0,
        "message": {
            "role": "assistant",
            "content": "Hi there",
            "refusal": None,
            "annotations": [],
        },
        "logprobs": None,
        "finish_reason": "stop",
    }
    assert (body["object"], body["model"]) == ("chat.completion", "chatter")
    usage = body["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (5, 2, 7)


async def test_cached_prompt_tokens_count_once_for_all_choices():
    cached = (TextChunk("Hi", 1), TextEnd("stop", 50, 1, cached_tokens=40))
    async with scripted(thinker=cached) as (app, _):
        reply = await chat(app, n=2)
        metrics = await metrics_of(app)
    usage = reply.json["usage"]
    assert (usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]) == (50, 40)
    assert metrics["nano_omni_cached_prompt_tokens_total", "model=chatter"] == 80


@pytest.mark.parametrize("modalities", [["text", "audio"], ["audio"]])
async def test_the_wav_file_of_a_whole_reply_has_its_true_size_in_the_header(modalities):
    async with scripted() as (app, _):
        audio = {"voice": "alloy", "format": "wav"}
        reply = await chat(app, SPOKEN, modalities=modalities, audio=audio)
    message = reply.json["choices"][0]["message"]
    assert message["content"] is None
    assert message["audio"]["transcript"] == "Hi there"
    assert message["audio"]["expires_at"] > time.time()
    with wave.open(io.BytesIO(base64.b64decode(message["audio"]["data"]))) as file:
        assert file.getnframes() == len(SAMPLES) // 2
        assert file.readframes(file.getnframes()) == SAMPLES
    usage = reply.json["usage"]
    details = usage["completion_tokens_details"]
    assert (details["text_tokens"], details["audio_tokens"]) == (2, 5)
    assert usage["completion_tokens"] == 7
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] == 12


async def test_pcm16_has_no_header():
    async with scripted() as (app, _):
        reply = await chat(app, SPOKEN)
    assert base64.b64decode(reply.json["choices"][0]["message"]["audio"]["data"]) == SAMPLES


async def test_streamed_text():
    async with scripted() as (app, _):
        reply = await chat(app, stream=True)
    chunks = chunks_of(reply)
    assert deltas_of(chunks) == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "Hi"},
        {"content": " there"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 3 + ["stop"]
    assert all("usage" not in chunk for chunk in chunks)
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    assert b"error" not in reply.content


async def test_streamed_usage_is_null_before_the_last_chunk():
    async with scripted() as (app, _):
        reply = await chat(app, stream=True, stream_options={"include_usage": True})
        whole = await chat(app)
    *chunks, last = chunks_of(reply)
    assert all(chunk["usage"] is None for chunk in chunks)
    assert last["choices"] == []
    assert last["usage"] == whole.json["usage"]


async def test_the_chunks_of_speech_are_in_the_order_that_clients_need():
    async with scripted() as (app, _):
        reply = await chat(app, SPOKEN, stream=True, stream_options={"include_usage": True})
    *chunks, usage = chunks_of(reply)
    first, *middle, expiry, end = deltas_of(chunks)
    assert first == {"role": "assistant", "content": None, "refusal": None}
    assert set(expiry) == {"audio"}
    assert set(expiry["audio"]) == {"expires_at"}
    assert end == {}
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert [list(delta) for delta in middle] == [["audio"]] * len(middle)
    pieces = [delta["audio"] for delta in middle]
    assert [list(piece) for piece in pieces if "id" in piece] == [["id", "transcript"]]
    assert "".join(piece.get("transcript", "") for piece in pieces) == "Hi there"
    joined = "".join(piece.get("data", "") for piece in pieces)
    assert base64.b64decode(joined, validate=True) == SAMPLES
    assert usage["usage"]["completion_tokens"] == 7


async def test_the_base64_of_streamed_audio_can_be_joined():
    sounder = (tone(1), tone(2), tone(5, 2), tone(100, 3), AudioEnd(108, 1))
    async with scripted(sounder=sounder) as (app, _):
        reply = await chat(app, SPOKEN, stream=True)
    pieces = [delta.get("audio", {}).get("data") for delta in deltas_of(chunks_of(reply))]
    pieces = [base64.b64decode(piece) for piece in pieces if piece]
    assert all(len(piece) % 6 == 0 for piece in pieces[:-1])
    assert b"".join(pieces) == b"".join(c.samples.tobytes() for c in sounder[:-1])


async def test_an_empty_spoken_reply_has_an_id_and_ends_normally():
    silent = {"thinker": (TextEnd("stop", 5, 0),), "sounder": (AudioEnd(0, 0),)}
    async with scripted(**silent) as (app, _):
        reply = await chat(app, SPOKEN, stream=True)
        whole = await chat(app, SPOKEN, audio={"voice": "low", "format": "wav"})
    audio = [delta["audio"] for delta in deltas_of(chunks_of(reply)) if "audio" in delta]
    assert [list(piece) for piece in audio] == [["id", "transcript"], ["expires_at"]]
    assert len(base64.b64decode(whole.json["choices"][0]["message"]["audio"]["data"])) == 44


async def test_every_chunk_matches_its_schema():
    async with scripted() as (app, _):
        reply = await chat(app, SPOKEN, stream=True, stream_options={"include_usage": True})
    for chunk in chunks_of(reply):
        ChatChunk.model_validate(chunk)


async def test_the_finish_reason_at_the_token_limit_is_length():
    async with scripted(thinker=(TextChunk("Hi", 1), TextEnd("length", 5, 1))) as (app, _):
        reply = await chat(app)
    assert reply.json["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_failure_before_the_first_output_is_a_500(stream):
    async with scripted(thinker=(RequestError("r", "no"),)) as (app, _):
        reply = await chat(app, stream=stream)
    assert (reply.status, reply.error["code"]) == (500, "generation_failed")


async def test_a_failure_in_a_stream_is_an_error_event_without_done():
    async with scripted(thinker=(HELLO[0], RequestError("r", "no"))) as (app, _):
        request = post(URL, {**CHAT, "stream": True})
        with pytest.raises(BrokenStreamError):
            await request.run(app)
    assert not request.complete
    *_, failure = events(request.content)
    assert json.loads(failure)["error"]["code"] == "generation_failed"


async def test_parameters_reach_the_stages():
    async with scripted() as (app, deployment):
        await chat(
            app,
            temperature=0,
            top_p=0.5,
            top_k=3,
            seed=-1,
            max_tokens=9,
            max_completion_tokens=4,
            stop="end",
        )
        await chat(app, SPOKEN, audio={"voice": {"id": "high"}, "format": "wav"})
        (_, request), (_, spoken) = deployment.chat[0].submitted
    thinker = request.params[0]
    assert thinker.prompt == ChatPrompt((Message("user", "Hello"),))
    assert (thinker.max_tokens, thinker.stop) == (4, ("end",))
    assert (thinker.sampling.temperature, thinker.sampling.top_p) == (0.0, 0.5)
    assert (thinker.sampling.top_k, thinker.sampling.seed) == (3, 2**63 - 1)
    assert [params.voice for params in spoken.params[1:]] == ["high", "high"]
    assert spoken.params[0].sampling.temperature == 0.2
    assert spoken.params[0].max_tokens == 256


async def test_roles_and_parts_reach_the_thinker():
    async with scripted() as (app, deployment):
        parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
        roles = ["developer", "system", "user", "assistant", "tool", "function"]
        reply = await chat(app, messages=[{"role": role, "content": parts} for role in roles])
    assert reply.status == 200
    roles = ["system", "system", "user", "assistant", "user", "user"]
    prompt = deployment.chat[0].submitted[0][1].params[0].prompt
    assert prompt == ChatPrompt(tuple(Message(role, "ab") for role in roles))


async def test_nulls_and_unknown_fields_are_ignored():
    tools = {"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "none"}
    optional = dict.fromkeys(ChatRequest.model_fields.keys() - CHAT.keys())
    async with scripted() as (app, _):
        for body in ({**optional, "no_such_field": 1}, tools, {"tools": [], "tool_choice": "auto"}):
            assert (await chat(app, **body)).status == 200


async def test_a_reply_is_limited_to_the_rest_of_the_context():
    async with scripted() as (app, deployment):
        await chat(app, messages=[{"role": "user", "content": "x" * 8190}], max_tokens=50)
        assert deployment.chat[0].submitted[0][1].params[0].max_tokens == 2


async def test_the_fake_model_repeats_and_speaks_the_prompt():
    async with fake() as app:
        spoken = {**SPOKEN, "model": "gpt-audio", "audio": {"voice": "alloy", "format": "pcm16"}}
        whole = await chat(app, spoken)
        reply = await chat(app, spoken, stream=True)
    audio = whole.json["choices"][0]["message"]["audio"]
    assert audio["transcript"] == "You said: Hello"
    deltas = [delta["audio"] for delta in deltas_of(chunks_of(reply)) if "audio" in delta]
    assert "".join(delta.get("transcript", "") for delta in deltas) == audio["transcript"]
    assert "".join(delta.get("data", "") for delta in deltas) == audio["data"]


async def test_the_last_events_wait_for_every_stage():
    async with scripted() as (app, deployment):
        talker = deployment.chat[1]
        talker.script = ()
        request = post(URL, {**SPOKEN, "stream": True, "stream_options": {"include_usage": True}})
        async with running(request, app):
            await request.holds(base64.b64encode(SAMPLES[4800:9600]))
            assert b"stop" not in request.content
            assert b"expires_at" not in request.content
            talker.report(SpeechEnd(1))
    assert request.content.endswith(b"data: [DONE]\n\n")
    assert request.content.count(b"[DONE]") == request.content.count(b'"stop"') == 1
