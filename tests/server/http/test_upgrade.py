"""Clients that offer to upgrade to another protocol, and errors that repeat what was sent."""

import fcntl
import json
import re
import socket
import sys
import termios

import pytest

from tests.server.bench import fake_service
from tests.server.loopback import serving

OFFER = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
BODY = {"model": "tts-1", "voice": "alloy", "response_format": "pcm", "input": "Hi."}
PAYLOAD = json.dumps(BODY)


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


def test_an_offer_of_http_2_is_declined_and_the_request_served(port):
    assert talk(port, BODY, OFFER).startswith(b"HTTP/1.1 200")


def request(*headers, framing="content-length: {0}\r\n\r\n{1}"):
    head = f"POST /v1/audio/speech HTTP/1.1\r\nhost: x\r\n{''.join(headers)}"
    return (head + framing.format(len(PAYLOAD), PAYLOAD)).encode()


def statuses(port, *segments):
    """All statuses until the server closes. Each segment is sent after the one before arrived."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for segment in segments:
            connection.sendall(segment)
            while unread(connection):
                pass
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    return re.findall(rb"HTTP/1\.1 (\d+) ", answer)


def unread(connection):
    """How many bytes the other end has not acknowledged yet."""
    return int.from_bytes(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


CHUNKED = "transfer-encoding: chunked\r\n\r\n{0:x}\r\n{1}\r\n0\r\n\r\n"


@pytest.mark.parametrize("framing", ["content-length: {0}\r\n\r\n{1}", CHUNKED])
def test_an_offer_is_declined_wherever_the_request_is_cut(port, framing):
    sent = request(OFFER, "connection: close\r\n", framing=framing)
    for cut in range(sent.index(b"Connection"), len(sent)):
        assert statuses(port, sent[:cut], sent[cut:]) == [b"200"], sent[:cut]


def test_requests_with_offers_can_be_pipelined(port):
    get = (
        b"GET /health/live HTTP/1.1\r\nhost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    )
    last = request(OFFER, "connection: close\r\n")
    assert statuses(port, request() + request(OFFER) + get + request(OFFER) + last) == [b"200"] * 5


def test_a_body_that_contains_an_upgrade_header_is_unchanged(port):
    text = "One.\r\nUpgrade: h2c\r\n\r\nTwo."
    assert talk(port, BODY | {"input": text}).startswith(b"HTTP/1.1 200")


def test_an_error_repeats_only_the_beginning_of_a_bad_value(port):
    answer = talk(port, BODY | {"model": "x" * 100_000})
    assert answer.startswith(b"HTTP/1.1 404")
    assert len(answer) < 1000
