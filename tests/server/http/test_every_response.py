"""The headers of every response, and the answers where there is no route."""

import pytest

from server.errors import TABLE
from server.http.request_log import request_id
from tests.server.asgi import Exchange, get, post
from tests.server.bench import SPEECH, fake, scripted


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"),
        ("GET", "/v1/nothing"),
        ("DELETE", "/v1/models"),
        ("POST", "/v1/audio/speech"),
        ("GET", "/health"),
    ],
)
async def test_every_response_has_an_id_and_its_time(method, path):
    async with scripted() as (app, _):
        replies = [await Exchange(method, path).run(app) for _ in range(2)]
    ids = {reply.reply_headers["x-request-id"] for reply in replies}
    assert len(ids) == 2
    assert all(name.startswith("req_") for name in ids)
    assert all(int(reply.reply_headers["openai-processing-ms"]) >= 0 for reply in replies)


async def test_a_valid_id_of_the_client_is_echoed_and_may_be_repeated():
    async with scripted() as (app, _):
        headers = {"x-request-id": "my.id-1"}
        replies = [await post("/v1/audio/speech", SPEECH, headers=headers).run(app) for _ in "ab"]
    assert [reply.status for reply in replies] == [200, 200]
    assert {reply.reply_headers["x-request-id"] for reply in replies} == {"my.id-1"}


@pytest.mark.parametrize("sent", ["", "x" * 129, "a b", "a\nb", "<b>", "é"])
def test_an_invalid_id_is_replaced(sent):
    assert request_id(sent).startswith("req_")


@pytest.mark.parametrize("path", ["/v1/foo", "/index.html", "/v1/models2", "/v1/audio/speech/"])
async def test_the_404_of_an_unknown_url_names_it(path):
    async with scripted() as (app, _):
        reply = await post(path, {}).run(app)
    assert reply.status == 404
    assert reply.error == {
        "message": f"Invalid URL (POST {path})",
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/audio/speech", "POST, OPTIONS"),
        ("HEAD", "/v1/chat/completions", "POST, OPTIONS"),
        ("POST", "/v1/models", "GET, HEAD, OPTIONS"),
        ("DELETE", "/v1/models/tts-1", "GET, HEAD, OPTIONS"),
        ("TRACE", "/health", "GET, HEAD, OPTIONS"),
    ],
)
async def test_the_405_of_a_wrong_method_lists_the_allowed_ones(method, path, allowed):
    async with scripted() as (app, _):
        reply = await Exchange(method, path).run(app)
    assert reply.status == 405
    assert reply.reply_headers["allow"] == allowed
    assert reply.error["message"] == f"Invalid method for URL ({method} {path})"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/audio/speech", "POST, OPTIONS"), ("/v1/models/org/writer", "GET, HEAD, OPTIONS")],
)
async def test_options_lists_the_allowed_methods(path, allowed):
    async with scripted() as (app, _):
        reply = await Exchange("OPTIONS", path).run(app)
    assert (reply.status, reply.content) == (204, b"")
    assert reply.reply_headers["allow"] == allowed


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/tts-1", "/v1/audio/voices", "/health"])
async def test_head_is_get_without_the_body(path):
    async with scripted() as (app, _):
        head = await Exchange("HEAD", path).run(app)
        full = await get(path).run(app)
    assert (head.status, head.content) == (200, b"")
    for name in ("content-type", "content-length"):
        assert head.reply_headers[name] == full.reply_headers[name]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/audio/transcriptions",
        "/v1/audio/translations",
        "/v1/images/generations",
        "/v1/embeddings",
        "/v1/realtime",
        "/v1/files",
        "/v1/chat/completions/",
        "//v1/chat/completions",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "HEAD", "DELETE"])
async def test_an_unknown_path_is_a_404_with_an_error_envelope(method, path):
    async with scripted() as (app, _):
        reply = await Exchange(method, path).run(app)
    assert reply.status == 404
    assert reply.error["message"] == f"Invalid URL ({method} {path})"


async def test_a_500_has_a_request_id():
    async with scripted() as (app, deployment):
        deployment.models[1].prompts.tokenize = lambda _: 1 / 0
        messages = [{"role": "user", "content": "hi"}]
        request = post("/v1/chat/completions", {"model": "chatter", "messages": messages})
        with pytest.raises(ZeroDivisionError):
            await request.run(app)
    assert request.status == 500
    assert "division" not in request.error["message"]
    assert request.reply_headers["x-request-id"]


async def test_ready_says_how_many_workers_run():
    async with fake() as app:
        ready = await get("/health/ready").run(app)
    one = {"workers": 1, "up": 1}
    assert ready.json == {
        "status": "ready",
        "stages": {"thinker": one, "talker": one, "code2wav": one},
    }


async def test_health_says_alive_and_ready():
    async with scripted() as (app, deployment):
        for path in ("/health", "/health/ready", "/health/live"):
            assert (await get(path).run(app)).status == 200
            assert (await Exchange("HEAD", path).run(app)).status == 200
        deployment.is_up = False
        ready = await get("/health/ready").run(app)
        live = await get("/health/live").run(app)
    assert ready.status == 503
    assert int(ready.reply_headers["retry-after"]) >= 1
    assert ready.error["type"] == "service_unavailable_error"
    assert live.json == {"status": "live"}


def test_every_429_and_503_has_retry_after():
    told = {
        row.status: row.headers["Retry-After"] for row in TABLE.values() if row.status in (429, 503)
    }
    assert set(told) == {429, 503}
    assert all(1 <= int(seconds) <= 60 for seconds in told.values())
