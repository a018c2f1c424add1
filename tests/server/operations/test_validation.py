"""Requests that are refused before anything starts: the status, the field, and the code."""

import json

import pytest

from tests.server.asgi import post
from tests.server.bench import CHAT, SPEECH, SPOKEN, scripted

SPEECH_URL = "/v1/audio/speech"
CHAT_URL = "/v1/chat/completions"
BOTH = {"input": "Hello", "voice": "low", "messages": CHAT["messages"]}


def json_schema(schema):
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}


async def refusal_of(url, body):
    """The error of a 400. Checks that nothing was submitted."""
    async with scripted() as (app, deployment):
        reply = await post(url, body).run(app)
        stages = (*deployment.speech, *deployment.chat, *deployment.writer)
        assert [stage.submitted for stage in stages] == [[]] * len(stages)
    assert reply.status == 400, reply.content
    assert reply.error["type"] == "invalid_request_error"
    return reply.error


@pytest.mark.parametrize(
    ("changes", "param", "code"),
    [
        ({"speed": 0}, "speed", "number_below_min_value"),
        ({"speed": -1}, "speed", "number_below_min_value"),
        ({"speed": 0.24}, "speed", "number_below_min_value"),
        ({"speed": 4.01}, "speed", "number_above_max_value"),
        ({"speed": 100}, "speed", "number_above_max_value"),
        ({"speed": "fast"}, "speed", "invalid_type"),
        ({"speed": "1.0"}, "speed", "invalid_type"),
        ({"speed": True}, "speed", "invalid_type"),
        ({"speed": float("nan")}, "speed", "invalid_value"),
        ({"speed": float("inf")}, "speed", None),
        ({"input": ""}, "input", "invalid_value"),
        ({"input": "  \n\t "}, "input", "invalid_value"),
        ({"input": "😀🎉👍"}, "input", "invalid_value"),
        ({"input": "... !!! ---"}, "input", "invalid_value"),
        ({"input": "x" * 4097}, "input", "string_above_max_length"),
        ({"input": 5}, "input", "invalid_type"),
        ({"input": None}, "input", "invalid_type"),
        ({"instructions": "x" * 4097}, "instructions", "string_above_max_length"),
        ({"response_format": "mpeg"}, "response_format", "invalid_value"),
        ({"stream_format": "x"}, "stream_format", "invalid_value"),
        ({"voice": "no_such_voice"}, "voice", "voice_not_found"),
        ({"voice": {"id": "no_such_voice"}}, "voice", "voice_not_found"),
        ({"voice": ""}, "voice", "voice_not_found"),
        ({"voice": {}}, "voice", "invalid_type"),
        ({"voice": {"id": 5}}, "voice", "invalid_type"),
        ({"voice": ["low"]}, "voice", "invalid_type"),
        ({"seed": 1.5}, "seed", "invalid_type"),
        ({"seed": 2**63}, "seed", "number_above_max_value"),
        ({"seed": True}, "seed", "invalid_type"),
        ({"language": "de"}, "language", "unsupported_value"),
        ({"noise_scale": -0.1}, "noise_scale", "number_below_min_value"),
        ({"noise_w": 3}, "noise_w", "number_above_max_value"),
        ({"timeout_s": 0}, "timeout_s", "number_below_min_value"),
    ],
)
async def test_a_refused_speech_names_the_field(changes, param, code):
    error = await refusal_of(SPEECH_URL, {**SPEECH, **changes})
    assert error["param"] == param
    assert code is None or error["code"] == code
    assert param in error["message"] or param == "voice"


@pytest.mark.parametrize("field", ["model", "input", "voice"])
async def test_a_missing_field_of_speech_is_named(field):
    error = await refusal_of(SPEECH_URL, {k: v for k, v in SPEECH.items() if k != field})
    assert error["message"] == f"Missing required parameter: '{field}'."
    assert (error["param"], error["code"]) == (field, "missing_required_parameter")


async def test_an_unknown_voice_and_a_path_get_the_same_error():
    unknown = await refusal_of(SPEECH_URL, {**SPEECH, "voice": "no_such_voice"})
    path = await refusal_of(SPEECH_URL, {**SPEECH, "voice": "../../etc/passwd"})
    assert unknown == path
    for name in ("'low'", "'high'", "'alloy'", "'marin'"):
        assert name in unknown["message"]


async def test_the_setting_does_not_raise_the_text_limit_of_openais_model_names():
    text = "x" * 4097
    async with scripted(max_input_chars=5000) as (app, _):
        ours = await post(SPEECH_URL, {**SPEECH, "input": text}).run(app)
        theirs = await post(SPEECH_URL, {**SPEECH, "model": "tts-1", "input": text}).run(app)
        beyond = await post(SPEECH_URL, {**SPEECH, "input": "x" * 5001}).run(app)
    assert [reply.status for reply in (ours, theirs, beyond)] == [200, 400, 400]
    assert "maximum length 4096" in theirs.error["message"]
    assert "maximum length 5000" in beyond.error["message"]


@pytest.mark.parametrize("text", ["x" * 4096, "😀" * 4095 + "a"])
async def test_length_is_counted_in_code_points(text):
    async with scripted() as (app, _):
        reply = await post(SPEECH_URL, {**SPEECH, "input": text}).run(app)
    assert reply.status == 200


@pytest.mark.parametrize("speed", [0.25, 4, 4.0, None])
async def test_the_limits_of_a_range_are_allowed(speed):
    async with scripted() as (app, _):
        reply = await post(SPEECH_URL, {**SPEECH, "speed": speed}).run(app)
    assert reply.status == 200


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "robot", "content": "hi"}]}, "messages[0].role"),
        ({"messages": ["hi"]}, "messages[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "messages[0].content[0].text",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            "messages[0].content[0].type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content[0].type",
        ),
        (
            {"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}]},
            "messages[0].audio.id",
        ),
        ({"n": 17}, "n"),
        ({"n": 129}, "n"),
        ({"n": 0}, "n"),
        ({"n": True}, "n"),
        ({"n": "1"}, "n"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"stop": list("abcde")}, "stop"),
        ({"stop": ""}, "stop"),
        ({"stop": [1]}, "stop[0]"),
        ({"frequency_penalty": 2.1}, "frequency_penalty"),
        ({"top_logprobs": 21, "logprobs": True}, "top_logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logit_bias": {"5": 101}}, "logit_bias.5"),
        ({"logit_bias": {"five": 1}}, "logit_bias"),
        ({"logit_bias": {"-1": 1}}, "logit_bias"),
        ({"logit_bias": {"²": 1}}, "logit_bias"),
        ({"logit_bias": {"1114112": 1}}, "logit_bias"),
        ({"logit_bias": {"9" * 5000: 1}}, "logit_bias"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"tools": [{"type": "custom"}], "tool_choice": "auto"}, "tools"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": {"name": "f"}}, "function_call"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {}}},
            "response_format.json_schema.name",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
            "response_format.json_schema.schema",
        ),
        (
            {"response_format": json_schema({"enum": ["x" * 70_000]})},
            "response_format.json_schema.schema",
        ),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": "yes"}, "stream"),
        ({"modalities": ["smell"]}, "modalities[0]"),
        ({"modalities": []}, "modalities"),
        ({"modalities": ["text", "audio"]}, "audio"),
        ({"seed": "x"}, "seed"),
    ],
)
async def test_a_refused_chat_names_the_field(changes, param):
    error = await refusal_of(CHAT_URL, {**CHAT, **changes})
    assert error["param"] == param
    assert param in error["message"]


@pytest.mark.parametrize(
    ("audio", "param"),
    [
        ({"voice": "low"}, "audio.format"),
        ({"format": "wav"}, "audio.voice"),
        ({"voice": "low", "format": "pcm"}, "audio.format"),
        ({"voice": "low", "format": "mpeg"}, "audio.format"),
        ({"voice": "nobody", "format": "wav"}, "audio.voice"),
        ({"voice": {"id": "nobody"}, "format": "wav"}, "audio.voice"),
    ],
)
async def test_a_refused_audio_option_names_the_field(audio, param):
    assert (await refusal_of(CHAT_URL, {**SPOKEN, "audio": audio}))["param"] == param


@pytest.mark.parametrize("audio_format", ["wav", "aac", "mp3", "flac", "opus"])
async def test_streamed_chat_audio_is_only_pcm16(audio_format):
    audio = {"voice": "low", "format": audio_format}
    error = await refusal_of(CHAT_URL, {**SPOKEN, "audio": audio, "stream": True})
    assert error["message"] == (
        f"Unsupported value: 'audio.format' does not support '{audio_format}' when stream=true. "
        "Supported values are: 'pcm16'."
    )
    assert (error["param"], error["code"]) == ("audio.format", "unsupported_value")


async def test_audio_from_a_text_model_is_refused():
    error = await refusal_of(CHAT_URL, {**SPOKEN, "model": "org/writer"})
    assert error["param"] == "modalities"


async def test_a_prompt_longer_than_the_context_is_refused():
    messages = [{"role": "user", "content": "x" * 8192}]
    error = await refusal_of(CHAT_URL, {**CHAT, "messages": messages})
    assert (error["param"], error["code"]) == ("messages", "context_length_exceeded")


@pytest.mark.parametrize(("url", "model"), [(SPEECH_URL, "chatter"), (CHAT_URL, "speaker")])
async def test_a_model_of_the_other_kind_is_refused(url, model):
    error = await refusal_of(url, {**BOTH, "model": model})
    assert (error["param"], error["code"]) == ("model", "model_not_supported")


@pytest.mark.parametrize("url", [SPEECH_URL, CHAT_URL])
async def test_an_unknown_model_is_a_404(url):
    async with scripted() as (app, _):
        reply = await post(url, {**BOTH, "model": "nothing"}).run(app)
    assert reply.status == 404
    assert reply.error == {
        "message": "The model 'nothing' does not exist",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }


@pytest.mark.parametrize("url", [SPEECH_URL, CHAT_URL])
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"not json", b'{"input": "\\ud800"}', b"\xff\xfe", b"[" * 100_000, b"[]", b"5"],
)
async def test_a_body_that_is_not_a_json_object_is_a_400(url, body):
    error = await refusal_of(url, body)
    assert (error["param"], error["code"]) == (None, None)


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
async def test_the_content_type_is_ignored(content_type):
    headers = {"content-type": content_type} if content_type else {}
    async with scripted() as (app, _):
        reply = await post(SPEECH_URL, SPEECH, headers=headers).run(app)
    assert reply.status == 200


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_over_the_limit_is_a_413(announced):
    body = json.dumps({**SPEECH, "padding": "x" * 2000}).encode()
    headers = {"content-length": str(len(body))} if announced else {}
    async with scripted(max_body_bytes=1000) as (app, _):
        reply = await post(SPEECH_URL, body, headers=headers, pieces=5).run(app)
    assert reply.status == 413
    assert reply.error["code"] == "request_too_large"
