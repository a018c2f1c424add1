"""The table of chat parameters matches the server and the docs."""

from pathlib import Path

import pytest

from openapi.chat.parameters import CHAT_PARAMETERS, TREATMENTS, markdown
from openapi.chat.request import ChatRequest
from tests.server.asgi import post
from tests.server.bench import CHAT, scripted

DOCS = Path(__file__).parents[2] / "docs" / "chat-parameters.md"
URL = "/v1/chat/completions"
ACCEPTED = [p for p in CHAT_PARAMETERS if p.treatment != "refused" and p.example is not None]
REFUSED = [p for p in CHAT_PARAMETERS if p.treatment == "refused"]
# The fields of CreateChatCompletionRequest in OpenAI's API document 2.3.0.
OPENAI = set(
    """
    model messages modalities audio stream stream_options n temperature top_p max_completion_tokens
    max_tokens stop frequency_penalty presence_penalty logprobs top_logprobs logit_bias seed tools
    tool_choice parallel_tool_calls response_format metadata store service_tier user
    safety_identifier prompt_cache_key prompt_cache_retention prediction web_search_options
    reasoning_effort verbosity moderation functions function_call
""".split()  # noqa: SIM905 - easier to read
)


def test_the_docs_show_the_table():
    assert DOCS.read_text("utf-8") == markdown()


def test_every_parameter_is_listed_once():
    names = [parameter.name for parameter in CHAT_PARAMETERS]
    assert len(names) == len(set(names))
    assert set(names) >= OPENAI
    listed = {p.name for p in CHAT_PARAMETERS if p.treatment != "accepted without effect"}
    assert listed == set(ChatRequest.model_fields)
    assert {parameter.treatment for parameter in CHAT_PARAMETERS} == set(TREATMENTS)


@pytest.mark.parametrize("parameter", ACCEPTED, ids=lambda p: p.name)
async def test_accepted_parameters_are_accepted(parameter):
    async with scripted() as (app, _):
        reply = await post(URL, {**CHAT, parameter.name: parameter.example}).run(app)
    assert reply.status == 200, reply.content


@pytest.mark.parametrize("parameter", REFUSED, ids=lambda p: p.name)
async def test_refused_parameters_are_named(parameter):
    async with scripted() as (app, _):
        reply = await post(URL, {**CHAT, parameter.name: parameter.example}).run(app)
    assert (reply.status, reply.error["param"]) == (400, parameter.name)
    assert parameter.name in reply.error["message"]
