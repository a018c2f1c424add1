"""The official client on chat, completions and responses, against a real server of fakes."""

import base64
import io
import time
import wave

import openai
import pytest
from pydantic import BaseModel

from tests.server.clients.official import lenient

BODY = {"model": "fake-chat", "messages": [{"role": "user", "content": "hello big world"}]}
REPLY = "You said: hello big world"
PCM = {"voice": "alloy", "format": "pcm16"}
SPOKEN = {**BODY, "model": "gpt-audio", "modalities": ["text", "audio"], "audio": PCM}
USAGE = {"stream_options": {"include_usage": True}}


@pytest.fixture(scope="module")
def chat(client):
    return client.chat.completions


def audio_of(message):
    return base64.b64decode(message.audio.data, validate=True)


# Text.


def test_a_whole_reply_has_its_keys(chat):
    reply = chat.create(**BODY)
    message = reply.choices[0].message
    assert {"content", "refusal", "role", "annotations"} <= message.model_fields_set
    assert (message.content, message.refusal) == (REPLY, None)
    assert reply.choices[0].logprobs is None
    assert reply.id.startswith("chatcmpl-")


def test_a_stream_adds_up_to_the_whole_reply(chat):
    chunks = list(chat.create(**BODY, stream=True, temperature=0))
    choices = [chunk.choices[0] for chunk in chunks]
    assert "".join(choice.delta.content or "" for choice in choices) == REPLY
    assert [choice.delta.role for choice in choices] == ["assistant"] + [None] * (len(choices) - 1)
    assert [choice.finish_reason for choice in choices] == [None] * (len(choices) - 1) + ["stop"]
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1


def test_usage_comes_last_and_only_if_requested(chat):
    *chunks, last = chat.create(**BODY, stream=True, **USAGE)
    assert all(chunk.usage is None and "usage" in chunk.model_fields_set for chunk in chunks)
    assert last.choices == []
    assert last.usage == chat.create(**BODY).usage
    assert not any("usage" in chunk.model_fields_set for chunk in chat.create(**BODY, stream=True))


@pytest.mark.parametrize("name", ["max_completion_tokens", "max_tokens"])
def test_the_finish_reason_at_the_token_limit_is_length(chat, name):
    reply = chat.create(**BODY, **{name: 1})
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 1


def test_a_stop_string_is_not_sent(chat):
    whole = chat.create(**BODY, stop=["big", "never"])
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == (
        "You said: hello ",
        "stop",
    )
    pieces = [
        c.choices[0].delta.content or "" for c in chat.create(**BODY, stop="big", stream=True)
    ]
    assert "".join(pieces) == "You said: hello "


@pytest.mark.parametrize("kind", [BODY, SPOKEN])
def test_two_choices_whole_and_streamed(chat, kind):
    whole = chat.create(**kind, n=2, seed=1)
    assert [choice.index for choice in whole.choices] == [0, 1]
    with chat.stream(**kind, n=2, seed=1, **USAGE) as stream:
        final = stream.get_final_completion()
    assert final.usage == whole.usage
    assert whole.usage.prompt_tokens == len(BODY["messages"][0]["content"])
    for streamed, choice in zip(final.choices, whole.choices, strict=True):
        assert streamed.finish_reason == choice.finish_reason == "stop"
        assert streamed.message.role == "assistant"
        assert streamed.message.content == choice.message.content
        if kind is SPOKEN:
            assert streamed.message.audio.transcript == choice.message.audio.transcript == REPLY
            assert streamed.message.audio.data == choice.message.audio.data


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"top_p": 1.1}, "top_p"),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"stop": list("abcde")}, "stop"),
        ({"messages": []}, "messages"),
        ({"logit_bias": {"5": 101}}, "logit_bias.5"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
    ],
)
def test_a_refusal_names_the_field(chat, wrong, param):
    with pytest.raises(openai.BadRequestError) as refused:
        chat.create(**{**BODY, **wrong})
    assert refused.value.param == param
    assert refused.value.type == "invalid_request_error"


def test_log_probabilities_whole_and_streamed(chat):
    whole = chat.create(**BODY, logprobs=True, top_logprobs=3).choices[0].logprobs
    assert "".join(token.token for token in whole.content) == REPLY
    assert [len(token.top_logprobs) for token in whole.content] == [3] * 5
    for token in whole.content:
        assert bytes(token.bytes).decode() == token.token
        assert token.top_logprobs[0].logprob == token.logprob
    with chat.stream(**BODY, logprobs=True, top_logprobs=3) as stream:
        streamed = stream.get_final_completion().choices[0].logprobs
    assert [t.model_dump() for t in streamed.content] == [t.model_dump() for t in whole.content]


def test_tools_are_accepted_with_tool_choice_none(chat):
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    reply = chat.create(**BODY, tools=tools, tool_choice="none")
    assert reply.choices[0].message.content == REPLY


def test_all_roles_and_parts(chat):
    part = {"type": "text", "text": "a"}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "developer", "content": "a"},
        {"role": "system", "content": [part]},
        {"role": "user", "content": [part, part]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "a", "tool_call_id": "c"},
        {"role": "user", "content": [part], "name": "me"},
    ]
    reply = chat.create(model="fake-chat", messages=messages)
    assert reply.choices[0].message.content == "You said: a"


class City(BaseModel):
    name: str
    people: int


def test_a_reply_matches_the_schema(chat):
    message = {"role": "user", "content": '{"name": "Paris", "people": 2102650}'}
    reply = chat.parse(model="fake-chat", messages=[message], response_format=City)
    assert reply.choices[0].message.parsed == City(name="Paris", people=2102650)
    plain = chat.create(
        model="fake-chat", messages=[message], response_format={"type": "json_object"}
    )
    assert plain.choices[0].message.content == message["content"]


# Audio.


def test_a_spoken_reply_as_wav(chat):
    reply = chat.create(**{**SPOKEN, "audio": {"voice": "alloy", "format": "wav"}})
    message = reply.choices[0].message
    assert message.content is None
    assert message.audio.transcript == REPLY
    assert message.audio.expires_at > time.time()
    with wave.open(io.BytesIO(audio_of(message))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        pcm = file.readframes(file.getnframes())
    assert pcm == audio_of(chat.create(**SPOKEN).choices[0].message)


def test_a_refused_audio_option_is_named(chat):
    for wrong, param in (({"audio": None}, "audio"), ({"audio": {**PCM, "format": "x"}}, None)):
        with pytest.raises(openai.BadRequestError) as refused:
            chat.create(**{**SPOKEN, **wrong})
        assert refused.value.param == (param or "audio.format")
    with pytest.raises(openai.BadRequestError) as refused:
        chat.create(**{**SPOKEN, "audio": {**PCM, "format": "wav"}, "stream": True})
    assert (refused.value.param, refused.value.code) == ("audio.format", "unsupported_value")


@pytest.mark.parametrize("options", [{}, {"n": 2}, {"logprobs": True, "top_logprobs": 2}])
@pytest.mark.parametrize("modalities", [["text", "audio"], ["audio"]])
def test_the_client_accumulates_a_spoken_stream(chat, options, modalities):
    """Transcript, audio, finish reason and usage each arrive once."""
    body = {**SPOKEN, **options, "modalities": modalities}
    whole = chat.create(**body)
    with chat.stream(**body, **USAGE) as stream:
        final = stream.get_final_completion()
    assert final.usage == whole.usage
    for streamed, choice in zip(final.choices, whole.choices, strict=True):
        audio = streamed.message.audio
        assert audio.id.startswith("audio_")
        assert audio.id.count("audio_") == 1
        assert audio.expires_at - final.created == 3600
        assert audio.transcript == choice.message.audio.transcript == REPLY
        sound = audio_of(streamed.message)
        assert sound == audio_of(choice.message)
        assert len(sound) % 2 == 0
        assert not sound.startswith(b"RIFF")
        assert streamed.message.content is None
        assert streamed.message.role == "assistant"
        assert streamed.finish_reason == "stop"
        assert (streamed.logprobs is not None) == ("logprobs" in options)
    usage, num = final.usage, len(final.choices)
    details = usage.completion_tokens_details
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert details.text_tokens + details.audio_tokens == usage.completion_tokens
    assert (details.text_tokens, usage.prompt_tokens) == (5 * num, 15)


def test_a_later_request_can_refer_to_a_spoken_reply(chat):
    first = chat.create(**SPOKEN)
    history = [*BODY["messages"], first.choices[0].message, {"role": "user", "content": "And?"}]
    reply = chat.create(model="fake-chat", messages=history)
    assert reply.usage.prompt_tokens == len("hello big world" + REPLY + "And?")
    unknown = [{"role": "assistant", "audio": {"id": "audio_0"}}, *BODY["messages"]]
    with pytest.raises(openai.BadRequestError) as refused:
        chat.create(model="fake-chat", messages=unknown)
    assert refused.value.param == "messages[0].audio.id"


# Completions.


def test_completions_in_every_form(client):
    reply = client.completions.create(
        model="fake-chat", prompt=["one", "two"], n=2, echo=True, max_tokens=9
    )
    assert [choice.text for choice in reply.choices] == [
        *["oneYou said: one"] * 2,
        *["twoYou said: two"] * 2,
    ]
    assert reply.usage.prompt_tokens == 6
    tokens = client.completions.create(model="fake-chat", prompt=[111, 110, 101])
    assert tokens.choices[0].text == "You said: one"
    scores = client.completions.create(model="fake-chat", prompt="one", logprobs=2)
    logprobs = scores.choices[0].logprobs
    assert "".join(logprobs.tokens) == scores.choices[0].text
    assert logprobs.text_offset == [0, 3, 9]
    assert [len(top) for top in logprobs.top_logprobs] == [2, 2, 2]
    for wrong in ({"suffix": "x"}, {"best_of": 5}):
        with pytest.raises(openai.BadRequestError) as refused:
            client.completions.create(model="fake-chat", prompt="one", **wrong)
        assert refused.value.param in wrong


def test_a_streamed_completion(address):
    with lenient(address) as client:
        *chunks, last = client.completions.create(
            model="fake-chat", prompt="one", stream=True, **USAGE
        )
    assert "".join(chunk.choices[0].text for chunk in chunks) == "You said: one"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert last.usage.total_tokens == 6


# Responses.


def test_a_response_whole_and_streamed(client):
    whole = client.responses.create(model="fake-chat", input="hello big world")
    assert (whole.output_text, whole.status, whole.error) == (REPLY, "completed", None)
    with client.responses.stream(model="fake-chat", input="hello big world") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_text == REPLY
    assert final.usage == whole.usage
    assert [event.sequence_number for event in events] == list(range(len(events)))
    raw = list(client.responses.create(model="fake-chat", input="hello big world", stream=True))
    assert [event.type for event in raw] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        *["response.output_text.delta"] * 5,
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_a_response_can_be_continued_and_retrieved(client):
    first = client.responses.create(model="fake-chat", input="hello", instructions="Be kind.")
    second = client.responses.create(model="fake-chat", input="And?", previous_response_id=first.id)
    assert second.usage.input_tokens == len("helloYou said: helloAnd?")
    assert client.responses.retrieve(second.id) == second
    client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second.id)
    echoed = [{"role": "user", "content": "hello"}, *first.output]
    again = client.responses.create(
        model="fake-chat", input=[*echoed, {"role": "user", "content": "And?"}]
    )
    assert again.usage == second.usage


def test_a_response_is_parsed_into_a_model(client):
    reply = client.responses.parse(
        model="fake-chat", input='{"name": "Paris", "people": 1}', text_format=City
    )
    assert reply.output_parsed == City(name="Paris", people=1)


def test_a_response_has_log_probabilities_and_its_limit(client):
    reply = client.responses.create(
        model="fake-chat",
        input="hello",
        include=["message.output_text.logprobs"],
        top_logprobs=2,
        max_output_tokens=2,
    )
    assert (reply.status, reply.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    tokens = reply.output[0].content[0].logprobs
    assert [token.token for token in tokens] == ["You", " said:"]
    assert [len(token.top_logprobs) for token in tokens] == [2, 2]


# Failures.


@pytest.mark.parametrize("endpoint", ["chat", "completions", "responses"])
def test_a_failure_in_any_stream_is_an_api_error(failing, endpoint):
    seen = []
    with lenient(failing) as client:
        calls = {
            "chat": lambda: client.chat.completions.create(
                **{**BODY, "model": "chatter", "n": 2}, stream=True
            ),
            "completions": lambda: client.completions.create(
                model="chatter", prompt="hi", stream=True
            ),
            "responses": lambda: client.responses.create(model="chatter", input="hi", stream=True),
        }
        with pytest.raises(openai.APIError):
            seen.extend(calls[endpoint]())
    assert not any(getattr(event, "type", "") == "response.completed" for event in seen)
