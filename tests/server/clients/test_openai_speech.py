"""The official client on speech, models and connections, against a real server of fakes."""

import base64
import json
import socket
import wave
from contextlib import suppress

import openai
import pytest

from server.config.settings import Settings
from server.serving.service import Service
from stages.contract.messages import AudioEnd, SpeechEnd
from tests.server.bench import HELLO, SOUND, ScriptedDeployment, ScriptedStage, tone
from tests.server.clients.official import client_of
from tests.server.loopback import serving

HELLO_MESSAGES = [{"role": "user", "content": "hello big world"}]
AUDIO = {"voice": "alloy", "format": "pcm16"}
SPOKEN = {"modalities": ["text", "audio"], "audio": AUDIO}


def test_models_are_listed_and_found(client):
    listed = [model.id for model in client.models.list()]
    assert {"fake-speech", "fake-chat", "tts-1"} <= set(listed)
    for name in listed:
        assert client.models.retrieve(name).id == name
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("org/no such model")
    assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
    assert refused.value.request_id.startswith("req_")


def test_whole_and_streamed_speech_are_the_same(client):
    body = {"model": "tts-1", "voice": "nova", "input": "One two three."}
    whole = client.audio.speech.create(response_format="pcm", **body)
    assert len(whole.content) == 2 * 480 * len("Onetwothree.")
    with client.audio.speech.with_streaming_response.create(response_format="wav", **body) as reply:
        assert reply.headers["content-type"] == "audio/wav"
        assert reply.headers["transfer-encoding"] == "chunked"
        streamed = b"".join(reply.iter_bytes(1024))
    assert streamed[44:] == whole.content
    with client.audio.speech.with_streaming_response.create(
        response_format="wav", stream_format="sse", **body
    ) as reply:
        lines = [line.removeprefix("data: ") for line in reply.iter_lines() if line]
    *deltas, done, last = lines
    assert b"".join(base64.b64decode(json.loads(d)["audio"]) for d in deltas) == streamed
    assert json.loads(done)["usage"]["input_tokens"] == len(body["input"])
    assert last == "[DONE]"


def test_a_refusal_is_a_bad_request_error(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.speech.create(model="tts-1", voice="x", input="hi", response_format="pcm")
    assert refused.value.param == "voice"
    assert "fake-low" in str(refused.value)


def test_a_whole_and_a_streamed_chat_are_the_same(client):
    whole = client.chat.completions.create(model="fake-chat", messages=HELLO_MESSAGES)
    assert whole.choices[0].message.content == "You said: hello big world"
    chunks = list(
        client.chat.completions.create(model="fake-chat", messages=HELLO_MESSAGES, stream=True)
    )
    written = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert written == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_the_finish_reason_at_the_token_limit_is_length(client):
    reply = client.chat.completions.create(
        model="fake-chat", messages=HELLO_MESSAGES, max_completion_tokens=2
    )
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 2


def test_a_spoken_chat_whole(client):
    reply = client.chat.completions.create(model="gpt-audio", messages=HELLO_MESSAGES, **SPOKEN)
    message = reply.choices[0].message
    assert message.content is None
    assert message.audio.transcript == "You said: hello big world"
    assert len(base64.b64decode(message.audio.data)) == 2 * 480 * len("Yousaid:hellobigworld")
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_the_client_accumulates_a_spoken_chat(client):
    whole = client.chat.completions.create(model="gpt-audio", messages=HELLO_MESSAGES, **SPOKEN)
    with client.chat.completions.stream(
        model="gpt-audio",
        messages=HELLO_MESSAGES,
        stream_options={"include_usage": True},
        **SPOKEN,
    ) as stream:
        final = stream.get_final_completion()
    message = final.choices[0].message
    assert message.role == "assistant"
    assert final.choices[0].finish_reason == "stop"
    assert final.usage == whole.usage
    audio = dict(message.audio)
    assert audio["id"].startswith("audio_")
    assert audio["id"].count("audio_") == 1
    assert audio["transcript"] == whole.choices[0].message.audio.transcript
    assert audio["data"] == whole.choices[0].message.audio.data


def test_the_client_can_send_extension_fields(client):
    reply = client.audio.speech.create(
        model="tts-1",
        voice="alloy",
        input="hi",
        response_format="pcm",
        extra_body={"seed": 4, "timeout_s": 10},
    )
    assert reply.content


def test_a_failure_in_a_chat_stream_is_an_api_error(failing):
    with client_of(failing) as client:
        stream = client.chat.completions.create(
            model="chatter", messages=HELLO_MESSAGES, stream=True
        )
        with pytest.raises(openai.APIError) as failed:
            list(stream)
    assert failed.value.code == "generation_failed"


def test_a_failure_in_an_audio_file_breaks_the_connection(failing):
    with client_of(failing) as client:
        with pytest.raises(openai.APIConnectionError):
            client.audio.speech.create(
                model="speaker", voice="low", input="hi", response_format="pcm"
            )


def exchange(port, *requests):
    """Send the requests on one connection. Returns all bytes that the server sends."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(b"".join(requests))
        pieces = []
        while piece := connection.recv(65536):
            pieces.append(piece)
        return b"".join(pieces)


def http_request(method, path, body=b"", close=True):
    last = b"Connection: close\r\n" if close else b""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n".encode()
    return head + last + b"\r\n" + body


def test_a_broken_off_body_has_no_last_chunk(failing):
    body = {"model": "speaker", "voice": "low", "input": "hi", "response_format": "pcm"}
    for stream_format in ("audio", "sse"):
        sent = json.dumps({**body, "stream_format": stream_format}).encode()
        reply = exchange(failing.port, http_request("POST", "/v1/audio/speech", sent, close=False))
        assert reply.startswith(b"HTTP/1.1 200 OK\r\n")
        assert not reply.endswith(b"0\r\n\r\n")
        assert b"[DONE]" not in reply


def test_a_connection_stays_open_after_streams_and_errors(address):
    chat = json.dumps({"model": "fake-chat", "messages": HELLO_MESSAGES, "stream": True}).encode()
    requests = [
        http_request("POST", "/v1/chat/completions", chat, close=False),
        http_request("POST", "/v1/audio/speech", b"{", close=False),
        http_request("GET", "/v1/models/org%2Fnone", close=False),
        http_request("HEAD", "/health"),
    ]
    with socket.create_connection(("127.0.0.1", address.port), 20) as connection:
        replies = []
        for request, end in zip(requests, (b"0\r\n\r\n", b"}}", b"}}", b"\r\n\r\n"), strict=True):
            connection.sendall(request)
            reply = b""
            while not reply.endswith(end):
                reply += connection.recv(65536)
            replies.append(reply)
    assert [reply.split(b" ", 2)[1] for reply in replies] == [b"200", b"400", b"404", b"200"]
    stream = replies[0]
    assert b"data: [DONE]\n\n" in stream
    for forbidden in (b"\nid:", b"\nevent:", b"\nretry:", b"\r\ndata: \r\n", b"\xef\xbb\xbf"):
        assert forbidden not in stream
    assert b"The model 'org/none' does not exist" in replies[2]


def test_a_large_body_without_a_length_is_refused(address):
    chunk = b"%x\r\n" % 65536 + b" " * 65536 + b"\r\n"
    head = b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", address.port), 20) as connection:
        connection.sendall(head)
        for _ in range(8 * 2**20 // 65536 + 1):
            connection.sendall(chunk)
        assert b" 413 " in connection.recv(65536).split(b"\r\n")[0]


def test_a_wav_file_can_be_read(client, tmp_path):
    reply = client.audio.speech.create(
        model="tts-1", voice="alloy", input="Hello.", response_format="wav"
    )
    path = tmp_path / "a.wav"
    reply.write_to_file(path)
    with wave.open(str(path)) as file:
        assert len(file.readframes(10**6)) == 2 * 480 * len("Hello.")


def test_samples_arrive_unchanged():
    def deploy():
        stages = ScriptedStage(*HELLO), ScriptedStage(SpeechEnd(1)), ScriptedStage(*SOUND)
        return ScriptedDeployment(*stages)

    with serving(Service(Settings(port=0), deploy)) as server, client_of(server) as client:
        reply = client.audio.speech.create(
            model="speaker", voice="low", input="hi", response_format="pcm"
        )
    assert reply.content == b"".join(chunk.samples.tobytes() for chunk in SOUND[:2])


def test_a_running_stream_finishes_while_the_server_shuts_down():
    sounder = ScriptedStage(tone(2400))

    def deploy():
        return ScriptedDeployment(ScriptedStage(*HELLO), ScriptedStage(SpeechEnd(1)), sounder)

    body = {"model": "speaker", "voice": "low", "input": "hi", "response_format": "pcm"}
    with serving(Service(Settings(port=0), deploy)) as server, client_of(server) as client:
        with client.audio.speech.with_streaming_response.create(
            stream_format="sse", **body
        ) as reply:
            lines = (line for line in reply.iter_lines() if line)
            next(lines)
            server.server.should_exit = True
            with pytest.raises(OSError, match=r"refused|reset"):
                connect_until_refused(server.port)
            for item in (tone(2400), AudioEnd(4800, 4)):
                server.call(sounder.report, item)
            rest = list(lines)
    assert rest[-1] == "data: [DONE]"
    assert len(rest) == 3


def connect_until_refused(port):
    """Connect in a loop. Raises OSError once the server has closed its socket.

    Each connection is closed before the next, so that they do not pile up on a busy server.
    """
    while True:
        with socket.create_connection(("127.0.0.1", port), 20) as connection:
            with suppress(OSError):  # the server never accepted it
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
