"""The official client, with strict validation, on everything that writes: the checklist of the
wire contract, 45 to 66, and case C19."""

import base64
import io
import time
import wave

import openai
import pytest
from pydantic import BaseModel

from server.config.settings import Settings
from server.serving.service import Service
from stages.contract.errors import RequestError
from stages.contract.messages import SpeechEnd
from tests.server.bench import HELLO, ScriptedDeployment, ScriptedStage, fake_service, tone
from tests.server.loopback import serving

ASK = {"model": "fake-chat", "messages": [{"role": "user", "content": "hello big world"}]}
SAID = "You said: hello big world"
PCM = {"voice": "alloy", "format": "pcm16"}
SPOKEN = {**ASK, "model": "gpt-audio", "modalities": ["text", "audio"], "audio": PCM}
USAGE = {"stream_options": {"include_usage": True}}


@pytest.fixture(scope="module")
def address():
    with serving(fake_service(port=0)) as found:
        yield found


@pytest.fixture(scope="module")
def client(address):
    with client_of(address) as made:
        yield made


def lenient(address):
    """For streamed completions: the client's own type has no null for `finish_reason`, which the
    service sends before the end."""
    return client_of(address, _strict_response_validation=False)


def client_of(address, **options):
    strict = {"max_retries": 0, "timeout": 20, "_strict_response_validation": True}
    return openai.OpenAI(base_url=f"{address.url}/v1", api_key="k", **{**strict, **options})


@pytest.fixture(scope="module")
def chat(client):
    return client.chat.completions


def sound_of(message):
    return base64.b64decode(message.audio.data, validate=True)


# Text.


def test_45_a_whole_reply_has_its_keys(chat):
    reply = chat.create(**ASK)
    message = reply.choices[0].message
    assert {"content", "refusal", "role", "annotations"} <= message.model_fields_set
    assert (message.content, message.refusal) == (SAID, None)
    assert reply.choices[0].logprobs is None
    assert reply.id.startswith("chatcmpl-")


def test_46_47_a_stream_is_the_whole(chat):
    chunks = list(chat.create(**ASK, stream=True, temperature=0))
    choices = [chunk.choices[0] for chunk in chunks]
    assert "".join(choice.delta.content or "" for choice in choices) == SAID
    assert [choice.delta.role for choice in choices] == ["assistant"] + [None] * (len(choices) - 1)
    assert [choice.finish_reason for choice in choices] == [None] * (len(choices) - 1) + ["stop"]
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1


def test_48_usage_comes_last_and_only_if_it_is_asked_for(chat):
    *chunks, last = chat.create(**ASK, stream=True, **USAGE)
    assert all(chunk.usage is None and "usage" in chunk.model_fields_set for chunk in chunks)
    assert last.choices == []
    assert last.usage == chat.create(**ASK).usage
    assert not any("usage" in chunk.model_fields_set for chunk in chat.create(**ASK, stream=True))


@pytest.mark.parametrize("name", ["max_completion_tokens", "max_tokens"])
def test_49_the_limit_ends_with_length(chat, name):
    reply = chat.create(**ASK, **{name: 1})
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 1


def test_50_a_stop_string_is_not_seen(chat):
    whole = chat.create(**ASK, stop=["big", "never"])
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == (
        "You said: hello ",
        "stop",
    )
    pieces = [c.choices[0].delta.content or "" for c in chat.create(**ASK, stop="big", stream=True)]
    assert "".join(pieces) == "You said: hello "


@pytest.mark.parametrize("kind", [ASK, SPOKEN])
def test_51_two_choices_in_both_modes(chat, kind):
    whole = chat.create(**kind, n=2, seed=1)
    assert [choice.index for choice in whole.choices] == [0, 1]
    with chat.stream(**kind, n=2, seed=1, **USAGE) as stream:
        final = stream.get_final_completion()
    assert final.usage == whole.usage
    assert whole.usage.prompt_tokens == len(ASK["messages"][0]["content"])
    for streamed, choice in zip(final.choices, whole.choices, strict=True):
        assert streamed.finish_reason == choice.finish_reason == "stop"
        assert streamed.message.role == "assistant"
        assert streamed.message.content == choice.message.content
        if kind is SPOKEN:
            assert streamed.message.audio.transcript == choice.message.audio.transcript == SAID
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
def test_52_54_55_what_is_wrong_is_named(chat, wrong, param):
    with pytest.raises(openai.BadRequestError) as refused:
        chat.create(**{**ASK, **wrong})
    assert refused.value.param == param
    assert refused.value.type == "invalid_request_error"


def test_53_scores_whole_and_through_the_accumulator(chat):
    whole = chat.create(**ASK, logprobs=True, top_logprobs=3).choices[0].logprobs
    assert "".join(token.token for token in whole.content) == SAID
    assert [len(token.top_logprobs) for token in whole.content] == [3] * 5
    for token in whole.content:
        assert bytes(token.bytes).decode() == token.token
        assert token.top_logprobs[0].logprob == token.logprob
    with chat.stream(**ASK, logprobs=True, top_logprobs=3) as stream:
        streamed = stream.get_final_completion().choices[0].logprobs
    assert [t.model_dump() for t in streamed.content] == [t.model_dump() for t in whole.content]


def test_54_tools_are_fine_where_none_is_wanted(chat):
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    reply = chat.create(**ASK, tools=tools, tool_choice="none")
    assert reply.choices[0].message.content == SAID


def test_56_all_roles_and_parts(chat):
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


def test_a_schema_of_the_client_is_kept_to(chat):
    message = {"role": "user", "content": '{"name": "Paris", "people": 2102650}'}
    reply = chat.parse(model="fake-chat", messages=[message], response_format=City)
    assert reply.choices[0].message.parsed == City(name="Paris", people=2102650)
    plain = chat.create(
        model="fake-chat", messages=[message], response_format={"type": "json_object"}
    )
    assert plain.choices[0].message.content == message["content"]


# Sound.


def test_57_59_a_spoken_reply_as_wav(chat):
    reply = chat.create(**{**SPOKEN, "audio": {"voice": "alloy", "format": "wav"}})
    message = reply.choices[0].message
    assert message.content is None
    assert message.audio.transcript == SAID
    assert message.audio.expires_at > time.time()
    with wave.open(io.BytesIO(sound_of(message))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        pcm = file.readframes(file.getnframes())
    assert pcm == sound_of(chat.create(**SPOKEN).choices[0].message)


def test_60_63_what_is_wrong_with_sound_is_named(chat):
    for wrong, param in (({"audio": None}, "audio"), ({"audio": {**PCM, "format": "x"}}, None)):
        with pytest.raises(openai.BadRequestError) as refused:
            chat.create(**{**SPOKEN, **wrong})
        assert refused.value.param == (param or "audio.format")
    with pytest.raises(openai.BadRequestError) as refused:
        chat.create(**{**SPOKEN, "audio": {**PCM, "format": "wav"}, "stream": True})
    assert (refused.value.param, refused.value.code) == ("audio.format", "unsupported_value")


@pytest.mark.parametrize("options", [{}, {"n": 2}, {"logprobs": True, "top_logprobs": 2}])
@pytest.mark.parametrize("modalities", [["text", "audio"], ["audio"]])
def test_61_66_a_spoken_stream_through_the_accumulator(chat, options, modalities):
    """C19: transcript, audio, finish reason and usage are all there, once."""
    ask = {**SPOKEN, **options, "modalities": modalities}
    whole = chat.create(**ask)
    with chat.stream(**ask, **USAGE) as stream:
        final = stream.get_final_completion()
    assert final.usage == whole.usage
    for streamed, choice in zip(final.choices, whole.choices, strict=True):
        audio = streamed.message.audio
        assert audio.id.startswith("audio_")
        assert audio.id.count("audio_") == 1
        assert audio.expires_at - final.created == 3600
        assert audio.transcript == choice.message.audio.transcript == SAID
        sound = sound_of(streamed.message)
        assert sound == sound_of(choice.message)
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


def test_64_an_earlier_voice_is_remembered(chat):
    first = chat.create(**SPOKEN)
    history = [*ASK["messages"], first.choices[0].message, {"role": "user", "content": "And?"}]
    reply = chat.create(model="fake-chat", messages=history)
    assert reply.usage.prompt_tokens == len("hello big world" + SAID + "And?")
    unknown = [{"role": "assistant", "audio": {"id": "audio_0"}}, *ASK["messages"]]
    with pytest.raises(openai.BadRequestError) as refused:
        chat.create(model="fake-chat", messages=unknown)
    assert refused.value.param == "messages[0].audio.id"


# Bare prompts.


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
    assert (whole.output_text, whole.status, whole.error) == (SAID, "completed", None)
    with client.responses.stream(model="fake-chat", input="hello big world") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_text == SAID
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


def test_a_response_is_gone_on_from_and_found(client):
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


def test_a_response_is_parsed(client):
    reply = client.responses.parse(
        model="fake-chat", input='{"name": "Paris", "people": 1}', text_format=City
    )
    assert reply.output_parsed == City(name="Paris", people=1)


def test_a_response_shows_scores_and_its_limit(client):
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


@pytest.fixture(scope="module")
def failing():
    fault = RequestError("r", "no")

    def deploy():
        stages = ScriptedStage(HELLO[0], fault), ScriptedStage(SpeechEnd(1))
        return ScriptedDeployment(*stages, ScriptedStage(tone(2400), fault))

    with serving(Service(Settings(port=0), deploy)) as found:
        yield found


@pytest.mark.parametrize("url", ["chat", "completions", "responses"])
def test_69_a_fault_between_words_is_an_error_of_every_stream(failing, url):
    seen = []
    with lenient(failing) as client:
        ask = {
            "chat": lambda: client.chat.completions.create(
                **{**ASK, "model": "chatter", "n": 2}, stream=True
            ),
            "completions": lambda: client.completions.create(
                model="chatter", prompt="hi", stream=True
            ),
            "responses": lambda: client.responses.create(model="chatter", input="hi", stream=True),
        }
        with pytest.raises(openai.APIError):
            seen.extend(ask[url]())
    assert not any(getattr(event, "type", "") == "response.completed" for event in seen)
