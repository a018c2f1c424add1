"""Clients that offer another protocol, and bodies that would be echoed whole."""

import json
import socket

import pytest

from tests.server.bench import fake_service
from tests.server.loopback import serving

BODY = {"model": "tts-1", "voice": "alloy", "response_format": "pcm", "input": "Hi."}


@pytest.fixture(scope="module")
def port():
    with serving(fake_service(port=0)) as address:
        yield address.port


def talk(port, body, headers=""):
    payload = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        head = f"POST /v1/audio/speech HTTP/1.1\r\nhost: x\r\ncontent-length: {len(payload)}\r\n"
        connection.sendall((head + headers + "connection: close\r\n\r\n").encode() + payload)
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    return answer


def test_an_offer_of_http_2_is_ignored_and_the_request_served(port):
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    assert talk(port, BODY, offer).startswith(b"HTTP/1.1 200")


def test_a_text_that_speaks_of_upgrades_is_left_alone(port):
    text = "One.\r\nUpgrade: h2c\r\n\r\nTwo."
    assert talk(port, BODY | {"input": text}).startswith(b"HTTP/1.1 200")


def test_what_is_wrong_is_repeated_only_in_part(port):
    answer = talk(port, BODY | {"model": "x" * 100_000})
    assert answer.startswith(b"HTTP/1.1 404")
    assert len(answer) < 1000
