"""CORS: off by default; allowed origins can also read errors."""

import pytest

from tests.server.asgi import Exchange, get, post
from tests.server.bench import SPEECH, scripted

ORIGIN = "https://page.example"
ASKS = {
    "origin": ORIGIN,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,openai-beta,x-stainless-lang",
}


async def preflight(app, **changes):
    headers = {**ASKS, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return await Exchange("OPTIONS", "/v1/audio/speech", headers=headers).run(app)


@pytest.mark.parametrize("origins", [ORIGIN, "*", f"http://a.example {ORIGIN}"])
async def test_a_preflight_request_needs_no_key(origins):
    async with scripted(cors_origins=origins, api_keys="k") as (app, _):
        reply = await preflight(app)
    assert reply.status == 200
    assert reply.reply_headers["access-control-allow-origin"] in (ORIGIN, "*")
    assert "POST" in reply.reply_headers["access-control-allow-methods"]
    assert "x-stainless-lang" in reply.reply_headers["access-control-allow-headers"]
    assert reply.reply_headers["x-request-id"]


async def test_another_origin_is_refused_with_an_error_envelope():
    async with scripted(cors_origins=ORIGIN) as (app, _):
        reply = await preflight(app, origin="https://other.example")
    assert reply.status == 400
    assert reply.error["message"] == "Disallowed CORS origin."
    assert "access-control-allow-origin" not in reply.reply_headers


async def test_by_default_no_origin_is_allowed():
    async with scripted() as (app, _):
        asked = await preflight(app)
        spoken = await post("/v1/audio/speech", SPEECH, headers={"origin": ORIGIN}).run(app)
    for reply in (asked, spoken):
        assert reply.status in (200, 204)
        assert not [name for name in reply.reply_headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/models", "/v1/audio/speech"])
async def test_a_page_can_read_errors_and_request_ids(path):
    async with scripted(cors_origins=ORIGIN, api_keys="k") as (app, _):
        reply = await get(path, headers={"origin": ORIGIN}).run(app)
    assert reply.status == 401
    assert reply.reply_headers["access-control-allow-origin"] == ORIGIN
    exposed = reply.reply_headers["access-control-expose-headers"]
    assert {"x-request-id", "retry-after"} <= set(exposed.split(", "))
    assert reply.reply_headers["vary"] == "Origin"


async def test_a_page_can_read_a_500():
    async with scripted(cors_origins="*") as (app, deployment):
        deployment.models[1].prompts.tokenize = lambda _: 1 / 0
        body = {"model": "chatter", "messages": [{"role": "user", "content": "hi"}]}
        request = post("/v1/chat/completions", body, headers={"origin": ORIGIN})
        with pytest.raises(ZeroDivisionError):
            await request.run(app)
    assert request.status == 500
    assert request.reply_headers["access-control-allow-origin"] == "*"
