"""Options of a chat: several choices, log probabilities, a bias, a schema, an earlier reply."""

import base64
import json

import pytest

from server.errors import BrokenStreamError
from stages.contract.errors import RequestError
from stages.contract.messages import AudioEnd, Candidate, TextChunk, TextEnd, TokenScore
from tests.server.asgi import events, post, running
from tests.server.bench import CHAT, SPOKEN, fake, scripted, tone
from tests.server.operations.replies import chunks_of

URL = "/v1/chat/completions"
USAGE = {"stream": True, "stream_options": {"include_usage": True}}


async def chat(app, body=CHAT, **changes):
    return await post(URL, {**body, **changes}).run(app)


def choices_at(chunks, index):
    """The parts of choice `index`, in order."""
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    return [choice for choice in choices if choice["index"] == index]


async def test_choices_have_consecutive_seeds_and_the_same_prompt():
    async with scripted() as (app, deployment):
        reply = await chat(app, n=3, seed=2**63 - 1)
        requests = [stage_input for _, stage_input in deployment.chat[0].submitted]
    thinkers = [request.params[0] for request in requests]
    assert [thinker.sampling.seed for thinker in thinkers] == [2**63 - 1, 0, 1]
    assert len({thinker.prompt for thinker in thinkers}) == 1
    choices = reply.json["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2]
    assert {choice["message"]["content"] for choice in choices} == {"Hi there"}
    usage = reply.json["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (5, 6, 11)


async def test_spoken_choices_have_their_own_audio_and_seed():
    async with scripted() as (app, deployment):
        reply = await chat(app, SPOKEN, n=2, seed=4)
        talkers = [stage_input.params for _, stage_input in deployment.chat[1].submitted]
    assert [talker.seed for talker in talkers] == [4, 5]
    spoken = [choice["message"]["audio"] for choice in reply.json["choices"]]
    assert len({audio["id"] for audio in spoken}) == 2
    assert len({audio["data"] for audio in spoken}) == 1
    details = reply.json["usage"]["completion_tokens_details"]
    assert (details["text_tokens"], details["audio_tokens"]) == (4, 10)


@pytest.mark.parametrize("body", [CHAT, SPOKEN])
async def test_streamed_choices_start_in_order_and_end_once(body):
    async with scripted() as (app, _):
        whole = (await chat(app, body, n=3)).json
        chunks = chunks_of(await chat(app, body, n=3, **USAGE))
    seen = [choice["index"] for chunk in chunks for choice in chunk["choices"]]
    assert sorted(set(seen), key=seen.index) == [0, 1, 2]
    for index in range(3):
        first, *middle, last = choices_at(chunks, index)
        assert first["delta"]["role"] == "assistant"
        assert last["finish_reason"] == "stop"
        assert not any(choice["finish_reason"] for choice in middle)
        assert not any("role" in choice["delta"] for choice in middle)
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == whole["usage"]


async def test_a_choice_starts_after_the_choices_before_it():
    async with scripted(thinker=()) as (app, deployment):
        thinker = deployment.chat[0]
        request = post(URL, {**CHAT, "n": 2, "stream": True})
        async with running(request, app):
            await thinker.has(2)
            thinker.report(TextChunk("second"), 1)
            await request.holds(b"second")
            for index in (0, 1):
                thinker.report(TextEnd("stop", 5, 0), index)
    indexes = [json.loads(e)["choices"][0]["index"] for e in events(request.content)[:-1]]
    assert indexes[:3] == [0, 1, 1]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_choice_that_fails_fails_the_request(stream):
    async with scripted(thinker=()) as (app, deployment):
        thinker = deployment.chat[0]
        request = post(URL, {**CHAT, "n": 2, "stream": stream})

        async def answer():
            await thinker.has(2)
            thinker.report(TextChunk("Hi"), 0)
            if stream:
                await request.holds(b"Hi")
            thinker.report(RequestError("r", "no"), 1)
            await thinker.aborted.wait()

        if stream:
            with pytest.raises(BrokenStreamError):
                async with running(request, app):
                    await answer()
            assert b"[DONE]" not in request.content
            assert b"generation_failed" in request.content
        else:
            async with running(request, app):
                await answer()
            assert (request.status, request.error["code"]) == (500, "generation_failed")


async def test_a_group_that_does_not_fit_is_a_429():
    async with scripted(max_running=3, max_waiting=0, thinker=()) as (app, deployment):
        first = post(URL, {**CHAT, "n": 2})
        async with running(first, app):
            await deployment.chat[0].started.wait()
            reply = await chat(app, n=2)
            assert (reply.status, reply.reply_headers["retry-after"]) == (429, "2")
            first.left.set()


def scored(name, logprob, *others):
    top = [Candidate(name, name.encode(), logprob), *others]
    return TextChunk(name, 1, (TokenScore(top[0], tuple(top)),))


END = Candidate("<|im_end|>", None, -3.0)
HALF = TextChunk("é", 2, (TokenScore(Candidate("\ufffd", b"\xc3", -1.0)),) * 2)
WITH_SCORES = (scored("Hi", -0.5), scored("!", -0.25, END), HALF, TextEnd("stop", 5, 4))


async def test_a_whole_reply_has_log_probabilities():
    async with scripted(thinker=WITH_SCORES) as (app, deployment):
        reply = await chat(app, logprobs=True, top_logprobs=2)
        assert deployment.chat[0].submitted[0][1].params[0].num_top == 2
    logprobs = reply.json["choices"][0]["logprobs"]
    assert logprobs["refusal"] is None
    assert logprobs["content"][1] == {
        "token": "!",
        "logprob": -0.25,
        "bytes": [33],
        "top_logprobs": [
            {"token": "!", "logprob": -0.25, "bytes": [33]},
            {"token": "<|im_end|>", "logprob": -3.0, "bytes": None},
        ],
    }
    assert logprobs["content"][2]["bytes"] == [0xC3]
    assert logprobs["content"][2]["top_logprobs"] == []
    assert len(logprobs["content"]) == 4


@pytest.mark.parametrize("body", [CHAT, SPOKEN])
async def test_log_probabilities_are_streamed_with_their_tokens(body):
    async with scripted(thinker=WITH_SCORES) as (app, _):
        whole = (await chat(app, body, logprobs=True)).json["choices"][0]["logprobs"]
        chunks = choices_at(chunks_of(await chat(app, body, logprobs=True, stream=True)), 0)
    streamed = [choice["logprobs"] for choice in chunks if choice["logprobs"]]
    assert [len(logprobs["content"]) for logprobs in streamed] == [1, 1, 2]
    assert [token for logprobs in streamed for token in logprobs["content"]] == whole["content"]


async def test_log_probabilities_are_computed_only_if_requested():
    async with scripted() as (app, deployment):
        await chat(app, logprobs=False)
        await chat(app, logprobs=True)
        requested = [i.params[0].num_top for _, i in deployment.chat[0].submitted]
    assert requested == [None, 0]


async def test_bias_penalties_and_schema_reach_the_thinker():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    json_schema = {"name": "n", "schema": schema, "strict": True}
    async with scripted() as (app, deployment):
        await chat(
            app,
            logit_bias={"65": -100, "66": 1.5},
            frequency_penalty=1.5,
            presence_penalty=-2,
            response_format={"type": "json_schema", "json_schema": json_schema},
        )
        await chat(app, response_format={"type": "json_object"})
        await chat(app, response_format={"type": "text"})
        first, second, third = (i.params[0] for _, i in deployment.chat[0].submitted)
    sampling = first.sampling
    assert sampling.bias == ((65, -100.0), (66, 1.5))
    assert (sampling.frequency_penalty, sampling.presence_penalty) == (1.5, -2.0)
    assert json.loads(first.schema) == schema
    assert json.loads(second.schema) == {"type": "object"}
    assert third.schema is None


@pytest.mark.parametrize("stream", [True, False])
async def test_a_later_request_can_refer_to_a_spoken_reply(stream):
    async with fake() as app:
        spoken = {**SPOKEN, "model": "gpt-audio", "audio": {"voice": "alloy", "format": "pcm16"}}
        first = await chat(app, spoken, stream=stream)
        if stream:
            audio = [c["delta"].get("audio", {}) for c in choices_at(chunks_of(first), 0)]
            [audio_id] = [piece["id"] for piece in audio if "id" in piece]
        else:
            audio_id = first.json["choices"][0]["message"]["audio"]["id"]
        follow_up = [
            *CHAT["messages"],
            {"role": "assistant", "content": None, "audio": {"id": audio_id}},
            {"role": "user", "content": "And?"},
        ]
        second = await chat(app, model="fake-chat", messages=follow_up)
        unknown = [{"role": "assistant", "audio": {"id": audio_id[:-1]}}, *CHAT["messages"]]
        refused = await chat(app, model="fake-chat", messages=unknown)
    assert second.json["usage"]["prompt_tokens"] == len("HelloYou said: HelloAnd?")
    assert refused.status == 400
    assert (refused.error["param"], refused.error["code"]) == (
        "messages[0].audio.id",
        "audio_not_found",
    )


async def test_a_later_request_cannot_refer_to_a_failed_reply():
    broken = (tone(6), RequestError("r", "no"))
    async with scripted(sounder=broken) as (app, _):
        request = post(URL, {**SPOKEN, "stream": True})
        with pytest.raises(BrokenStreamError):
            await request.run(app)
        ids = [
            json.loads(event)["choices"][0]["delta"]["audio"]["id"]
            for event in events(request.content)
            if '"id":"audio_' in event
        ]
        reply = await chat(
            app, messages=[{"role": "assistant", "audio": {"id": ids[0]}}, *CHAT["messages"]]
        )
    assert reply.status == 400


async def test_the_base64_of_each_choice_can_be_joined():
    sounder = (tone(5), tone(7, 2), AudioEnd(12, 1))
    async with scripted(sounder=sounder) as (app, _):
        chunks = chunks_of(await chat(app, SPOKEN, n=2, stream=True))
    for index in (0, 1):
        data = [c["delta"].get("audio", {}).get("data", "") for c in choices_at(chunks, index)]
        sound = base64.b64decode("".join(data), validate=True)
        assert sound == b"".join(c.samples.tobytes() for c in sounder[:2])
