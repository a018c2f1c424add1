"""Requests that arrive slowly or never end, on a real connection."""

import json
import re
import socket

import pytest

from server.config.settings import Settings
from server.serving.service import Service
from stages.contract.messages import SpeechEnd
from tests.server.bench import SOUND, SPEECH, ScriptedDeployment, ScriptedStage, fake_service
from tests.server.loopback import serving

SLOW_S = 0.5  # a request that is sent at once must come sooner, however busy the machine is


@pytest.fixture(scope="module")
def address():
    with serving(fake_service(port=0, max_header_bytes=4096)) as found:
        yield found


@pytest.fixture(scope="module")
def port(address):
    return address.port


@pytest.fixture(scope="module")
def impatient():
    """The port of a server that waits only `SLOW_S` for a request."""
    with serving(fake_service(port=0, header_s=SLOW_S, body_s=SLOW_S)) as found:
        yield found.port


def read_until_closed(port, *sent):
    """Send bytes; return all that comes back until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(b"".join(sent))
        pieces = []
        while piece := connection.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


def read_until(connection, end):
    """Read up to `end`."""
    reply = b""
    while not reply.endswith(end):
        piece = connection.recv(65536)
        assert piece, reply
        reply += piece
    return reply


def refusal(reply):
    """The status and the message of the only response, which must have all its headers."""
    head, _, body = reply.partition(b"\r\n\r\n")
    assert re.search(rb"\r\nx-request-id: req_[0-9a-f]{32}", head)
    assert b"\r\ncontent-type: application/json" in head
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return int(head.split()[1]), error["message"]


HEAD = b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize("sent", [b"", b"POST /v1", HEAD, HEAD + b"Content-Length: 9\r\n"])
def test_an_incomplete_head_gets_one_408(impatient, sent):
    assert refusal(read_until_closed(impatient, sent)) == (
        408,
        "The request did not arrive in time.",
    )


def test_an_incomplete_body_gets_a_408(impatient):
    reply = read_until_closed(impatient, HEAD, b"Content-Length: 9\r\n\r\n", b'{"inp')
    assert refusal(reply)[0] == 408


def test_a_head_over_the_limit_gets_a_431(port):
    status, message = refusal(read_until_closed(port, HEAD, b"x-long: ", b"y" * 5000))
    assert (status, "4096 bytes" in message) == (431, True)


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"SPAM / HTTP/9\r\n\r\n"]
)
def test_bytes_that_are_not_http_get_a_400(port, sent):
    assert refusal(read_until_closed(port, sent))[0] == 400


def test_a_stream_may_take_longer_than_a_request():
    sounder = ScriptedStage(SOUND[0])

    def deploy():
        return ScriptedDeployment(ScriptedStage(), ScriptedStage(SpeechEnd(1)), sounder)

    service = Service(Settings(port=0, header_s=SLOW_S, body_s=SLOW_S), deploy)
    body = json.dumps(SPEECH).encode()
    with (
        serving(service) as found,
        socket.create_connection(("127.0.0.1", found.port), 20) as connection,
    ):
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        read_until(connection, SOUND[0].samples.tobytes() + b"\r\n")
        assert b" 408 " in read_until_closed(found.port, b"GET")  # it began later, and is late
        for item in SOUND[1:]:
            found.call(sounder.report, item)
        read_until(connection, b"0\r\n\r\n")


def test_small_writes_are_sent_at_once(address):
    with socket.create_connection(("127.0.0.1", address.port), 20) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        read_until(connection, b'"live"}')
        here = connection.getsockname()
        (served,) = (c for c in address.server.server_state.connections if c.client == here)
        own = served.transport.get_extra_info("socket")
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_after_a_response_the_connection_waits_for_the_next_request(impatient):
    ask = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", impatient), 20) as connection:
        for _ in range(2):
            connection.sendall(ask)
            assert read_until(connection, b'"live"}').startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET /hea")
        assert b" 408 " in read_until(connection, b"}}")
        assert connection.recv(65536) == b""
