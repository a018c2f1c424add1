"""Completions over HTTP: whole and streamed."""

import pytest

from openapi.completions.response import Completion
from stages.contract.messages import Candidate, RawPrompt, TextChunk, TextEnd, TokenScore
from tests.server.asgi import post
from tests.server.bench import HELLO, fake, scripted
from tests.server.operations.replies import chunks_of

URL = "/v1/completions"
BODY = {"model": "chatter", "prompt": "Once"}


async def complete(app, **changes):
    return await post(URL, {**BODY, **changes}).run(app)


async def test_a_whole_completion():
    async with scripted() as (app, deployment):
        reply = await complete(app)
        thinker = deployment.chat[0].submitted[0][1].params[0]
        assert deployment.chat[1].submitted == []
    assert thinker.prompt == RawPrompt("Once")
    assert (thinker.max_tokens, thinker.num_top) == (16, None)
    body = reply.json
    assert body["object"] == "text_completion"
    assert body["id"].startswith("cmpl-")
    assert body["choices"] == [
        {"text": "Hi there", "index": 0, "logprobs": None, "finish_reason": "stop"}
    ]
    assert body["usage"]["total_tokens"] == 7


async def test_a_streamed_completion():
    async with scripted() as (app, _):
        reply = await complete(app, stream=True, stream_options={"include_usage": True})
        whole = (await complete(app)).json
    *chunks, last = chunks_of(reply)
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["Hi", " there", ""]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None, None, "stop"]
    assert [chunk["usage"] for chunk in chunks] == [None] * 3
    assert (last["choices"], last["usage"]) == ([], whole["usage"])
    for chunk in chunks:
        Completion.model_validate(chunk)


@pytest.mark.parametrize(
    ("prompt", "texts"),
    [
        ("ab", ["ab"]),
        (["ab", "c"], ["ab", "c"]),
        ([97, 98], ["ab"]),
        ([[97, 98], [99]], ["ab", "c"]),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_every_form_of_a_prompt(prompt, texts, stream):
    async with fake() as app:
        reply = await complete(app, model="fake-chat", prompt=prompt, n=2, echo=True, stream=stream)
    pieces = chunks_of(reply) if stream else [reply.json]
    replies = [""] * 2 * len(texts)
    for choice in (choice for piece in pieces for choice in piece["choices"]):
        replies[choice["index"]] += choice["text"]
    assert replies == [f"{text}You said: {text}" for text in texts for _ in range(2)]
    if not stream:
        assert reply.json["usage"]["prompt_tokens"] == len("".join(texts))


async def test_texts_and_token_ids_reach_the_thinker_as_they_are():
    async with scripted() as (app, deployment):
        await complete(app, prompt=["ab", "c"])
        await complete(app, prompt=[[97, 98], [99]])
        prompts = [i.params[0].prompt for _, i in deployment.chat[0].submitted]
    assert prompts == [RawPrompt("ab"), RawPrompt("c"), RawPrompt((97, 98)), RawPrompt((99,))]


async def test_each_prompt_starts_from_the_same_seed():
    async with scripted() as (app, deployment):
        await complete(app, prompt=["a", "b"], n=2, seed=5)
        seeds = [i.params[0].sampling.seed for _, i in deployment.chat[0].submitted]
    assert seeds == [5, 6, 5, 6]


def scored(name, text_bytes, logprob, *top):
    candidate = Candidate(name, text_bytes, logprob)
    return TokenScore(candidate, (candidate, *top))


END = Candidate("<|im_end|>", None, -4.0)
SCORES = (
    scored("Hé", "Hé".encode(), -0.5),
    scored("\ufffd", b"\xe2\x80", -1.0),
    scored("\ufffd", b"\x99", -0.1, END),
    scored("s", b"s", -0.2),
)


@pytest.mark.parametrize("stream", [True, False])
async def test_log_probabilities_are_parallel_lists(stream):
    thinker = (
        TextChunk("Hé", 1, SCORES[:1]),
        TextChunk("\u2019", 2, SCORES[1:3]),
        TextChunk("s", 1, SCORES[3:]),
        TextEnd("stop", 5, 4),
    )
    async with scripted(thinker=thinker) as (app, deployment):
        reply = await complete(app, logprobs=2, stream=stream)
        assert deployment.chat[0].submitted[0][1].params[0].num_top == 2
    pieces = chunks_of(reply) if stream else [reply.json]
    found = [piece["choices"][0]["logprobs"] for piece in pieces]
    found = [logprobs for logprobs in found if logprobs]
    tokens, numbers, offsets, top = (
        [item for logprobs in found for item in logprobs[key]]
        for key in ("tokens", "token_logprobs", "text_offset", "top_logprobs")
    )
    assert tokens == ["Hé", r"bytes:\xe2\x80", r"bytes:\x99", "s"]
    assert numbers == [-0.5, -1.0, -0.1, -0.2]
    assert offsets == [0, 2, 2, 3]
    assert top[2] == {r"bytes:\x99": -0.1, "<|im_end|>": -4.0}


async def test_log_probabilities_without_alternatives():
    thinker = (
        TextChunk("Hi", 1, (TokenScore(Candidate("Hi", b"Hi", -1.0)),)),
        TextEnd("stop", 1, 1),
    )
    async with scripted(thinker=thinker) as (app, _):
        logprobs = (await complete(app, logprobs=0)).json["choices"][0]["logprobs"]
    assert logprobs["top_logprobs"] is None
    assert logprobs["tokens"] == ["Hi"]


async def test_a_stop_string_and_the_limit_end_a_text():
    async with fake() as app:
        body = {"model": "fake-chat", "prompt": "one two three"}
        stopped = await complete(app, **body, stop="two")
        limited = await complete(app, **body, max_tokens=3)
    assert stopped.json["choices"][0]["text"] == "You said: one "
    assert stopped.json["choices"][0]["finish_reason"] == "stop"
    assert limited.json["choices"][0]["text"] == "You said: one"
    assert limited.json["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": ["a", 5]}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": [1.5]}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": [0x110000]}, "prompt"),
        ({"prompt": [10**30]}, "prompt"),
        ({"prompt": "x" * 8192}, "prompt"),
        ({"prompt": ["a"] * 9, "n": 2}, "prompt"),
        ({"n": 17}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"logprobs": 6}, "logprobs"),
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": 0, "echo": True}, "echo"),
        ({"best_of": 2}, "best_of"),
        ({"best_of": 3, "n": 2}, "best_of"),
        ({"suffix": "end"}, "suffix"),
        ({"stop": list("abcde")}, "stop"),
        ({"stop": [""]}, "stop"),
        ({"stream_options": {}}, "stream_options"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"temperature": 2.1}, "temperature"),
        ({"model": "speaker"}, "model"),
    ],
)
async def test_a_refusal_names_the_field(changes, param):
    async with scripted() as (app, deployment):
        reply = await complete(app, **changes)
        assert deployment.chat[0].submitted == []
    assert reply.status == 400, reply.content
    assert reply.error["param"] == param
    assert param in reply.error["message"] or param == "model"


async def test_nulls_and_unknown_fields_are_ignored():
    names = (
        "max_tokens n stream stream_options echo logprobs temperature top_p stop seed best_of "
        "frequency_penalty presence_penalty logit_bias suffix user"
    )
    async with scripted(thinker=HELLO) as (app, _):
        nulls = await complete(app, **dict.fromkeys(names.split()))
        assert nulls.status == 200
        assert (await complete(app, suffix="", best_of=1, foo={})).status == 200
        assert (await complete(app, n=2, best_of=2)).status == 200
