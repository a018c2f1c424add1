"""Request models: what is accepted, what is ignored, and the message of an error."""

import json

import pytest
from pydantic import ValidationError

from openapi.chat.request import ChatRequest
from openapi.problems import param_of, problem_of
from openapi.speech import SpeechRequest
from openapi.voice import VoiceUpload

SPEECH = {"model": "m", "input": "hi", "voice": "v"}
NOT_A_FORMAT = (
    "Invalid value for 'response_format': 'mpeg'. Supported values are: 'mp3', 'opus', 'aac', "
    "'flac', 'wav', 'pcm'."
)
TOO_LONG = (
    "Invalid 'instructions': string too long. Expected a string with maximum length 4096, "
    "but got a string with length 4097 instead."
)
SEED_TOO_LARGE = (
    "Invalid 'seed': number too large. Expected a value <= 9223372036854775807, "
    "but got 9223372036854775808 instead."
)
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def problem(model, body):
    """The problem of a body that the model refuses."""
    with pytest.raises(ValidationError) as refused:
        model.model_validate_json(json.dumps(body))
    return problem_of(refused.value)


@pytest.mark.parametrize(("model", "body"), [(SpeechRequest, SPEECH), (ChatRequest, CHAT)])
def test_every_optional_field_may_be_null(model, body):
    optional = {name: None for name in model.model_fields if name not in body}
    model.model_validate_json(json.dumps({**optional, **body}))


def test_a_voice_may_be_an_object():
    assert SpeechRequest.model_validate({**SPEECH, "voice": {"id": "v", "x": 1}}).voice == "v"


def test_text_and_parts_are_the_same():
    parts = [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]
    whole = ChatRequest.model_validate({**CHAT, "messages": [{"role": "user", "content": parts}]})
    assert whole.messages[0].text == ChatRequest.model_validate(CHAT).messages[0].text == "hi"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"speed": 9},
            "Invalid 'speed': number too large. Expected a value <= 4, but got 9 instead.",
        ),
        (
            {"speed": "fast"},
            "Invalid type for 'speed': expected a number, but got a string instead.",
        ),
        (
            {"response_format": "mpeg"},
            NOT_A_FORMAT,
        ),
        (
            {"instructions": "x" * 4097},
            TOO_LONG,
        ),
        ({"input": None}, "Invalid type for 'input': expected a string, but got null instead."),
        (
            {"seed": 2**63},
            SEED_TOO_LARGE,
        ),
    ],
)
def test_errors_have_the_messages_of_openai(changes, message):
    assert problem(SpeechRequest, {**SPEECH, **changes}).message == message


def test_a_long_value_is_cut_short_in_the_message():
    assert len(problem(SpeechRequest, {**SPEECH, "stream_format": "x" * 9999}).message) < 200


def test_a_field_is_named_by_its_path():
    assert param_of(("messages", 0, "content", 1, "text")) == "messages[0].content[1].text"


@pytest.mark.parametrize("body", [[], 5, "x", None])
def test_a_body_must_be_an_object(body):
    assert "JSON object" in problem(SpeechRequest, body).message


def test_a_field_of_a_union_is_named_without_the_branch():
    body = '{"model":"x","messages":[{"role":"user","content":"a"}],"tool_choice":5}'
    with pytest.raises(ValidationError) as refused:
        ChatRequest.model_validate_json(body)
    assert problem_of(refused.value).param == "tool_choice"


def test_a_length_error_says_what_is_too_long():
    bias = {str(i): 1.0 for i in range(2049)}
    assert problem(ChatRequest, {**CHAT, "logit_bias": bias}).message == (
        "Invalid 'logit_bias': object too long. Expected an object with maximum length 2048, "
        "but got an object with length 2049 instead."
    )
    assert problem(ChatRequest, {**CHAT, "messages": []}).message == (
        "Invalid 'messages': array too short. Expected an array with minimum length 1, "
        "but got an array with length 0 instead."
    )


def test_a_name_that_does_not_match_is_told_the_pattern():
    message = problem(VoiceUpload, {"name": "../ann"}).message
    assert message.startswith("Invalid value for 'name': it must match the regular expression ^")
