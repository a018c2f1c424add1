"""The exported document: it is stored, and it describes streams and errors as they are."""

import json

import pytest

from server.spec import STORED, main, text


@pytest.fixture(scope="module")
def document():
    return json.loads(text())


def test_the_stored_document_is_the_servers(monkeypatch):
    monkeypatch.setattr("sys.argv", ["spec", "--check"])
    assert main() == 0


def test_a_difference_fails_the_check(monkeypatch, tmp_path, capsys):
    other = tmp_path / "openapi.json"
    other.write_text(STORED.read_text() + " ")
    monkeypatch.setattr("server.spec.STORED", other)
    monkeypatch.setattr("sys.argv", ["spec", "--check"])
    assert main() == 1
    assert "openapi.json" in capsys.readouterr().err


def test_streams_are_described(document):
    speech = document["paths"]["/v1/audio/speech"]["post"]["responses"]["200"]["content"]
    assert {"audio/wav", "audio/pcm", "text/event-stream"} <= set(speech)
    chat = document["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]["content"]
    assert set(chat) == {"application/json", "text/event-stream"}


def test_every_error_is_the_envelope(document):
    for operations in document["paths"].values():
        for operation in operations.values():
            responses = operation["responses"]
            assert "422" not in responses
            for status in ("4XX", "5XX"):
                schema = responses[status]["content"]["application/json"]["schema"]
                assert schema["$ref"].endswith("/ErrorEnvelope")
    detail = document["components"]["schemas"]["ErrorDetail"]
    assert detail["required"] == ["message", "type", "param", "code"]


def test_every_reference_leads_somewhere(document):
    schemas = document["components"]["schemas"]
    references = {line.split('"')[3] for line in text().splitlines() if '"$ref"' in line}
    assert {reference.removeprefix("#/components/schemas/") for reference in references} <= set(
        schemas
    )
