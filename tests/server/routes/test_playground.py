"""The playground's files: open, closed to everything else, and no part of the API."""

import re

import pytest

from server.routes.playground import FOLDER, PAGE
from tests.server.asgi import Exchange, get
from tests.server.bench import scripted

FILES = sorted(file.name for file in FOLDER.iterdir() if file.name != PAGE)


async def test_the_page_needs_no_key():
    async with scripted(api_keys=["sk-one"]) as (app, _):
        reply = await get("/").run(app)
    assert reply.status == 200
    assert reply.reply_headers["content-type"] == "text/html; charset=utf-8"
    assert b"<title>nano-vllm-omni playground</title>" in reply.content


@pytest.mark.parametrize("name", FILES)
async def test_neither_do_its_files(name):
    async with scripted(api_keys=["sk-one"]) as (app, _):
        reply = await get(f"/playground/{name}").run(app)
    assert reply.status == 200
    assert reply.reply_headers["x-content-type-options"] == "nosniff"
    assert reply.content == FOLDER.joinpath(name).read_bytes()


@pytest.mark.parametrize(
    "path", ["/playground/", "/playground/nothing.js", "/playground/../auth.py"]
)
async def test_nothing_else_is_beside_them(path):
    async with scripted() as (app, _):
        assert (await get(path).run(app)).status == 404


async def test_the_page_may_run_and_ask_only_what_is_here():
    async with scripted() as (app, _):
        policy = (await get("/").run(app)).reply_headers["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == "'none'"
    assert set(rules.values()) == {"'self'", "'none'"}


async def test_it_can_be_asked_for_its_head_and_not_posted_to():
    async with scripted() as (app, _):
        assert (await Exchange("HEAD", "/").run(app)).content == b""
        assert (await Exchange("POST", "/").run(app)).status == 405


async def test_the_document_does_not_list_it():
    async with scripted() as (app, _):
        document = (await get("/openapi.json").run(app)).content
    assert b"playground" not in document
    assert b'"/":' not in document


@pytest.mark.parametrize("name", [PAGE, *FILES])
def test_its_files_name_nothing_outside(name):
    text = FOLDER.joinpath(name).read_text()
    addresses = set(re.findall(r"https?://[^\s\"')]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "https://example.com"}
