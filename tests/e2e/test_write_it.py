"""Text of the embedded model through the official client: choices, scores, schemas, responses."""

import json
import math

import pytest

pytestmark = pytest.mark.model

ASK = {
    "model": "smollm2-joe",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "max_completion_tokens": 24,
}


def test_choices_equal_single_requests_with_their_seeds(client):
    both = client.chat.completions.create(**ASK, n=2, seed=3, temperature=1)
    alone = [client.chat.completions.create(**ASK, seed=seed, temperature=1) for seed in (3, 4)]
    assert [c.message.content for c in both.choices] == [
        reply.choices[0].message.content for reply in alone
    ]
    assert both.usage.prompt_tokens == alone[0].usage.prompt_tokens
    assert both.usage.completion_tokens == sum(r.usage.completion_tokens for r in alone)


def test_logprobs_are_probabilities(client):
    reply = client.chat.completions.create(**ASK, logprobs=True, top_logprobs=20, temperature=0)
    tokens = reply.choices[0].logprobs.content
    assert bytes(b for token in tokens for b in token.bytes).decode() == "".join(
        token.token for token in tokens
    )
    assert "".join(token.token for token in tokens) == reply.choices[0].message.content
    assert len(tokens) == reply.usage.completion_tokens
    for token in tokens:
        assert token.top_logprobs[0].token == token.token
        assert 0.3 < sum(math.exp(top.logprob) for top in token.top_logprobs) <= 1.0001


def test_a_reply_follows_its_json_schema(client):
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 30},
            "country": {"enum": ["France", "Spain"]},
        },
        "required": ["city", "country"],
        "additionalProperties": False,
    }
    shape = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
    ask = {**ASK, "max_completion_tokens": 100}
    reply = client.chat.completions.create(**ask, response_format=shape, temperature=0)
    found = json.loads(reply.choices[0].message.content)
    assert set(found) == {"city", "country"}
    assert found["country"] in ("France", "Spain")


def test_a_completion_continues_its_prompt(client):
    reply = client.completions.create(
        model="smollm2-joe", prompt="The capital of France is", max_tokens=3, temperature=0
    )
    assert "Paris" in reply.choices[0].text
    assert reply.choices[0].finish_reason == "length"


def test_a_previous_response_id_equals_sending_its_messages(client):
    ask = {"model": "smollm2-joe", "temperature": 0, "max_output_tokens": 20}
    first = client.responses.create(**ask, input="My name is Alice.")
    second = client.responses.create(**ask, input="Who am I?", previous_response_id=first.id)
    messages = [
        {"role": "user", "content": "My name is Alice."},
        {"role": "assistant", "content": first.output_text},
        {"role": "user", "content": "Who am I?"},
    ]
    spelled_out = client.responses.create(**ask, input=messages)
    assert second.output_text == spelled_out.output_text
    assert second.usage.input_tokens == spelled_out.usage.input_tokens
    assert second.usage.output_tokens == spelled_out.usage.output_tokens
    assert spelled_out.usage.input_tokens_details.cached_tokens > 0
