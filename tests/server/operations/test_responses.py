"""Responses over HTTP: whole, streamed, continued, and stored."""

import json

import pytest

from openapi.responses.events import (
    ContentPartEvent,
    OutputItemEvent,
    OutputTextDelta,
    OutputTextDone,
    ResponseErrorEvent,
    ResponseStateEvent,
)
from openapi.responses.response import ResponseObject
from server.errors import BrokenStreamError
from stages.contract.errors import RequestError
from stages.contract.messages import (
    Candidate,
    ChatPrompt,
    Message,
    TextChunk,
    TextEnd,
    TokenScore,
)
from tests.server.asgi import Exchange, get, post
from tests.server.bench import HELLO, fake, scripted

URL = "/v1/responses"
BODY = {"model": "chatter", "input": "Hello"}
MODELS = {
    "response.created": ResponseStateEvent,
    "response.in_progress": ResponseStateEvent,
    "response.output_item.added": OutputItemEvent,
    "response.content_part.added": ContentPartEvent,
    "response.output_text.delta": OutputTextDelta,
    "response.output_text.done": OutputTextDone,
    "response.content_part.done": ContentPartEvent,
    "response.output_item.done": OutputItemEvent,
    "response.completed": ResponseStateEvent,
    "response.incomplete": ResponseStateEvent,
    "error": ResponseErrorEvent,
}
ORDER = [*list(MODELS)[:5], *list(MODELS)[4:9]]


async def respond(app, **changes):
    return await post(URL, {**BODY, **changes}).run(app)


def events_of(content):
    """The events. Checks the name, the number and the schema of each one."""
    found = []
    for block in content.decode().removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        assert event["sequence_number"] == len(found)
        MODELS[event["type"]].model_validate(event)
        found.append(event)
    return found


async def test_a_whole_response():
    async with scripted() as (app, deployment):
        reply = await respond(app, metadata={"a": "b"}, temperature=0)
        assert deployment.chat[1].submitted == []
    body = reply.json
    ResponseObject.model_validate(body)
    assert (body["object"], body["status"], body["model"]) == ("response", "completed", "chatter")
    [message] = body["output"]
    assert message["id"].startswith("msg_")
    assert (message["role"], message["status"]) == ("assistant", "completed")
    assert message["content"] == [
        {"type": "output_text", "text": "Hi there", "annotations": [], "logprobs": []}
    ]
    usage = body["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (5, 2, 7)
    assert (body["metadata"], body["temperature"], body["error"]) == ({"a": "b"}, 0.0, None)
    assert body["completed_at"] >= body["created_at"]


async def test_the_events_of_a_stream_are_in_the_documented_order():
    async with scripted() as (app, _):
        reply = await respond(app, stream=True)
        whole = (await respond(app)).json
    assert reply.reply_headers["content-type"].startswith("text/event-stream")
    assert b"[DONE]" not in reply.content
    events = events_of(reply.content)
    assert [event["type"] for event in events] == ORDER
    assert [e["delta"] for e in events if e["type"].endswith("text.delta")] == ["Hi", " there"]
    created, _, added, part, *_, done, last = events
    assert (created["response"]["status"], created["response"]["output"]) == ("in_progress", [])
    assert added["item"]["content"] == []
    assert part["part"]["text"] == ""
    assert done["item"] == last["response"]["output"][0]
    assert {e.get("item_id", done["item"]["id"]) for e in events} == {done["item"]["id"]}
    assert last["response"]["usage"] == whole["usage"]
    assert last["response"]["id"] == created["response"]["id"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_response_that_reaches_its_limit_is_incomplete(stream):
    async with scripted(thinker=(HELLO[0], TextEnd("length", 5, 1))) as (app, deployment):
        reply = await respond(app, stream=stream, max_output_tokens=1)
        assert deployment.chat[0].submitted[0][1].params[0].max_tokens == 1
    if stream:
        last = events_of(reply.content)[-1]
        assert last["type"] == "response.incomplete"
    body = last["response"] if stream else reply.json
    assert body["status"] == body["output"][0]["status"] == "incomplete"
    assert body["incomplete_details"] == {"reason": "max_output_tokens"}
    assert (body["completed_at"], body["max_output_tokens"]) == (None, 1)


async def test_a_failure_before_the_first_output_is_a_500():
    async with scripted(thinker=(RequestError("r", "no"),)) as (app, _):
        reply = await respond(app, stream=True)
    assert (reply.status, reply.error["code"]) == (500, "generation_failed")


async def test_a_failure_in_a_stream_is_an_error_event_and_nothing_is_stored():
    async with scripted(thinker=(HELLO[0], RequestError("r", "no"))) as (app, _):
        request = post(URL, {**BODY, "stream": True})
        with pytest.raises(BrokenStreamError):
            await request.run(app)
        events = events_of(request.content)
        retrieved = await get(f"{URL}/{events[0]['response']['id']}").run(app)
    assert not request.complete
    assert (events[-1]["type"], events[-1]["code"]) == ("error", "generation_failed")
    assert retrieved.status == 404


async def test_messages_parts_and_instructions_reach_the_thinker():
    async with scripted() as (app, deployment):
        part = {"type": "input_text", "text": "b"}
        messages = [
            {"role": "developer", "content": "a"},
            {"type": "message", "role": "user", "content": [part, part], "id": "x"},
            {
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "c", "annotations": []}],
            },
            {"role": "user", "content": "d"},
        ]
        reply = await respond(app, input=messages, instructions="Be brief.")
        follow_up = {"input": "e", "previous_response_id": reply.json["id"]}
        await respond(app, **follow_up, instructions="Be long.")
        first, second = (i.params[0].prompt for _, i in deployment.chat[0].submitted)
    assert reply.json["instructions"] == "Be brief."
    turns = (
        Message("system", "a"),
        Message("user", "bb"),
        Message("assistant", "c"),
        Message("user", "d"),
    )
    assert first == ChatPrompt((Message("system", "Be brief."), *turns))
    added = (Message("assistant", "Hi there"), Message("user", "e"))
    assert second == ChatPrompt((Message("system", "Be long."), *turns, *added))


async def test_a_stored_response_can_be_continued_retrieved_and_deleted():
    async with fake() as app:
        first = (await respond(app, model="fake-chat", instructions="Long rules.")).json
        follow_up = {"model": "fake-chat", "input": "And?", "previous_response_id": first["id"]}
        second = (await respond(app, **follow_up)).json
        third = (await respond(app, **{**follow_up, "previous_response_id": second["id"]})).json
        retrieved = await get(f"{URL}/{second['id']}").run(app)
        deleted = await Exchange("DELETE", f"{URL}/{second['id']}").run(app)
        gone = await get(f"{URL}/{second['id']}").run(app)
        again = await Exchange("DELETE", f"{URL}/{second['id']}").run(app)
        orphan = await respond(app, **{**follow_up, "previous_response_id": second["id"]})
    history = "HelloYou said: HelloAnd?"
    assert second["usage"]["input_tokens"] == len(history)
    assert third["usage"]["input_tokens"] == len(history + "You said: And?" + "And?")
    assert second["previous_response_id"] == first["id"]
    assert retrieved.json == second
    assert deleted.json == {"id": second["id"], "object": "response", "deleted": True}
    for reply in (gone, again):
        assert (reply.status, reply.error["code"]) == (404, "not_found")
    assert (orphan.status, orphan.error["param"]) == (400, "previous_response_id")
    assert orphan.error["code"] == "previous_response_not_found"


async def test_store_false_stores_nothing():
    async with scripted() as (app, _):
        body = (await respond(app, store=False)).json
        assert body["store"] is False
        assert (await get(f"{URL}/{body['id']}").run(app)).status == 404


async def test_log_probabilities_are_included_if_requested():
    top = Candidate("Ho", b"Ho", -2.0)
    thinker = (
        TextChunk("Hi", 1, (TokenScore(Candidate("Hi", b"Hi", -0.5), (top,)),)),
        TextEnd("stop", 5, 1),
    )
    include = {"include": ["message.output_text.logprobs"], "top_logprobs": 1}
    async with scripted(thinker=thinker) as (app, deployment):
        whole = (await respond(app, **include)).json
        streamed = events_of((await respond(app, **include, stream=True)).content)
        assert deployment.chat[0].submitted[0][1].params[0].num_top == 1
    [token] = whole["output"][0]["content"][0]["logprobs"]
    assert (token["token"], token["logprob"], token["bytes"]) == ("Hi", -0.5, [72, 105])
    assert token["top_logprobs"] == [{"token": "Ho", "logprob": -2.0, "bytes": [72, 111]}]
    [delta] = [event for event in streamed if event["type"].endswith("text.delta")]
    assert delta["logprobs"] == [token]


async def test_a_format_reaches_the_thinker_and_the_response():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema_format = {"type": "json_schema", "name": "n", "schema": schema, "strict": True}
    async with scripted() as (app, deployment):
        body = (await respond(app, text={"format": schema_format})).json
        await respond(app, text={"format": {"type": "json_object"}, "verbosity": "low"})
        first, second = (i.params[0].schema for _, i in deployment.chat[0].submitted)
    assert json.loads(first) == body["text"]["format"]["schema"] == schema
    assert json.loads(second) == {"type": "object"}


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": []}]}, "input[0].content"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0].type",
        ),
        ({"input": [{"type": "function_call_output", "role": "user"}]}, "input[0].type"),
        ({"tools": [{"type": "function", "name": "f"}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"background": True}, "background"),
        ({"previous_response_id": "resp_x"}, "previous_response_id"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"metadata": {"a": 5}}, "metadata.a"),
        ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"input": "x" * 8192}, "input"),
        ({"model": "speaker"}, "model"),
    ],
)
async def test_a_refusal_names_the_field(changes, param):
    async with scripted() as (app, deployment):
        reply = await respond(app, **changes)
        assert deployment.chat[0].submitted == []
    assert reply.status == 400, reply.content
    assert reply.error["param"] == param


async def test_compact_and_unknown_ids_are_404s():
    async with scripted() as (app, _):
        compact = await post(f"{URL}/compact", BODY).run(app)
        unknown = await get(f"{URL}/resp_x").run(app)
    assert (compact.status, unknown.status) == (404, 404)
    assert compact.error["message"] == "Invalid URL (POST /v1/responses/compact)"
    assert unknown.error["param"] == "response_id"
