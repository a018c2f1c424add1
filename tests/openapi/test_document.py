"""`openapi.json` is up to date, and describes streams and errors."""

import json

import pytest

from openapi.speech import SpeechDelta, SpeechDone, SpeechRequest
from server.document.openapi import STORED, main, text
from tests.server.asgi import events


@pytest.fixture(scope="module")
def document():
    return json.loads(text())


def test_the_stored_document_is_up_to_date(monkeypatch):
    monkeypatch.setattr("sys.argv", ["spec", "--check"])
    assert main() == 0


def test_a_difference_fails_the_check(monkeypatch, tmp_path, capsys):
    other = tmp_path / "openapi.json"
    other.write_text(STORED.read_text() + " ")
    monkeypatch.setattr("server.document.openapi.STORED", other)
    monkeypatch.setattr("sys.argv", ["spec", "--check"])
    assert main() == 1
    assert "openapi.json" in capsys.readouterr().err


def test_streams_are_described(document):
    speech = document["paths"]["/v1/audio/speech"]["post"]["responses"]["200"]["content"]
    files = {f"audio/{name}" for name in ("mpeg", "opus", "aac", "flac", "wav", "pcm")}
    assert set(speech) == {*files, "text/event-stream"}
    data = speech["text/event-stream"]["itemSchema"]["properties"]["data"]
    assert [kind["$ref"].split("/")[-1] for kind in data["anyOf"][1]["contentSchema"]["oneOf"]] == [
        "SpeechDelta",
        "SpeechDone",
        "ErrorEnvelope",
    ]
    chat = document["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]["content"]
    assert set(chat) == {"application/json", "text/event-stream"}


def test_every_error_has_the_envelope(document):
    for operations in document["paths"].values():
        for operation in operations.values():
            responses = operation["responses"]
            assert "422" not in responses
            for status in ("4XX", "5XX"):
                schema = responses[status]["content"]["application/json"]["schema"]
                assert schema["$ref"].endswith("/ErrorEnvelope")
                assert responses[status]["headers"].keys() == {"x-request-id", "Retry-After"}
    for example in document["components"]["examples"].values():
        assert set(example["value"]["error"]) == {"message", "type", "param", "code"}
    detail = document["components"]["schemas"]["ErrorDetail"]
    assert detail["required"] == ["message", "type", "param", "code"]


def test_every_reference_exists(document):
    components = {
        f"#/components/{kind}/{name}"
        for kind, members in document["components"].items()
        for name in members
    }
    assert {line.split('"')[3] for line in text().splitlines() if '"$ref"' in line} <= components


def test_the_examples_match_their_schemas(document):
    body = document["components"]["schemas"]["SpeechRequest"]["examples"][0]
    assert SpeechRequest.model_validate(body).input == body["input"]
    speech = document["paths"]["/v1/audio/speech"]["post"]["responses"]["200"]["content"]
    delta, done, last = events(speech["text/event-stream"]["example"].encode())
    SpeechDelta.model_validate_json(delta)
    SpeechDone.model_validate_json(done)
    assert last == "[DONE]"


def test_only_health_never_needs_a_key(document):
    without = {
        path
        for path, operations in document["paths"].items()
        for operation in operations.values()
        if operation["security"] == [{}]
    }
    assert without == {"/health", "/health/live", "/health/ready"}
