"""From recorded bytes to what was heard, however the bytes were cut."""

import json
import struct
from base64 import b64encode

import pytest

from benchmarks.http_body import read_body
from benchmarks.http_client import Trace
from benchmarks.outcome import outcome_of
from benchmarks.sound import decode_body, first_audible
from server.encoding.pcm import wav_header

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
LOUD, SILENT = struct.pack("<h", 9000), struct.pack("<h", 0)


def chunk(body):
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_a_chunked_body_is_the_same_however_it_is_cut(step):
    raw = HEAD + chunk(b"hello") + chunk(b" there") + chunk(b"")
    cut = [(float(k), raw[k : k + step]) for k in range(0, len(raw), step)]

    body = read_body(Trace(0.0, cut))

    assert b"".join(piece for _, piece in body.pieces) == b"hello there"
    assert body.complete


def test_pieces_keep_the_time_at_which_they_came():
    received = [(1.0, HEAD + chunk(b"ab")), (2.0, chunk(b"cd")), (3.0, chunk(b""))]

    assert read_body(Trace(0.0, received)).pieces == [(1.0, b"ab"), (2.0, b"cd")]


def test_a_body_that_breaks_off_is_not_complete():
    assert not read_body(Trace(0.0, [(1.0, HEAD + chunk(b"ab"))])).complete
    short = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"
    assert not read_body(Trace(0.0, [(1.0, short)])).complete


def test_no_response_has_status_0():
    assert read_body(Trace(0.0, refused=True)).status == 0
    assert outcome_of(Trace(1.0, refused=True), 0.5, "pcm", 24_000).began_s == 0.5


def test_first_audio_is_the_first_whole_sample_not_the_header():
    header = wav_header(None)
    received = [
        (1.0, HEAD + chunk(header[:20])),
        (2.0, chunk(header[20:])),
        (3.0, chunk(LOUD[:1])),
        (4.0, chunk(LOUD[1:] + LOUD) + chunk(b"")),
    ]

    outcome = outcome_of(Trace(0.5, received), 0.0, "wav", 0)

    assert outcome.first_audio_s == 3.5
    assert outcome.audio_s == 2 / 24_000
    assert outcome.good


def test_silence_is_first_audio_but_is_not_heard():
    silence, speech = SILENT * 2400, LOUD * 2400  # 100 ms each
    received = [(1.0, HEAD + chunk(silence)), (1.05, chunk(speech)), (1.3, chunk(b""))]

    outcome = outcome_of(Trace(1.0, received), 1.0, "pcm", 24_000)

    assert outcome.first_audio_s == 0.0
    assert outcome.heard_s == pytest.approx(0.1)
    assert outcome.dry == 0


def test_a_sound_that_comes_late_is_heard_when_it_comes():
    received = [(1.0, HEAD + chunk(SILENT * 2400)), (1.5, chunk(SILENT * 240 + LOUD) + chunk(b""))]

    outcome = outcome_of(Trace(1.0, received), 1.0, "pcm", 24_000)

    assert outcome.heard_s == pytest.approx(0.51)
    assert (outcome.dry, outcome.dry_buffered) == (1, 1)
    assert outcome.silent_s == pytest.approx(0.4)


def test_all_silent_is_never_audible():
    assert first_audible(decode_body([(0.0, SILENT * 10)], "pcm")) is None


def test_a_chat_is_heard_and_read():
    def event(delta, usage=None):
        body = {"choices": [{"delta": delta}], "usage": usage}
        return b"data: " + json.dumps(body).encode() + b"\n\n"

    usage = {"completion_tokens": 12, "completion_tokens_details": {"text_tokens": 2}}
    parts = [
        event({"role": "assistant", "content": ""}),
        event({"audio": {"transcript": "Hi"}}),
        event({"audio": {"data": b64encode(LOUD * 4).decode()}}),
        b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n",
        b": ping\n\ndata: [DONE]\n\n",
    ]
    raw = b"".join(parts)
    pieces = [(1.0, raw[:100]), (2.0, raw[100:])]

    decoded = decode_body(pieces, "chat")

    assert [text for _, text in decoded.texts] == ["Hi"]
    assert decoded.samples == [(2.0, LOUD * 4)]
    assert decoded.num_tokens == 2
    assert decoded.ended


def test_events_are_counted():
    decoded = decode_body(
        [(1.0, b"data: {}\n\ndata: {}\n\ndata: [DO"), (2.0, b"NE]\n\n")], "events"
    )

    assert len(decoded.texts) == 3
    assert decoded.ended
