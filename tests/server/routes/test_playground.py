"""The playground's files: they need no key, load nothing from outside, and are not in the API."""

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
async def test_the_files_need_no_key(name):
    async with scripted(api_keys=["sk-one"]) as (app, _):
        reply = await get(f"/playground/{name}").run(app)
    assert reply.status == 200
    assert reply.reply_headers["x-content-type-options"] == "nosniff"
    assert reply.content == FOLDER.joinpath(name).read_bytes()


@pytest.mark.parametrize(
    "path", ["/playground/", "/playground/nothing.js", "/playground/../auth.py"]
)
async def test_other_paths_are_404s(path):
    async with scripted() as (app, _):
        assert (await get(path).run(app)).status == 404


async def test_the_policy_allows_only_this_server():
    async with scripted() as (app, _):
        policy = (await get("/").run(app)).reply_headers["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == "'none'"
    assert set(rules.values()) == {"'self'", "'none'"}


async def test_head_is_allowed_and_post_is_not():
    async with scripted() as (app, _):
        assert (await Exchange("HEAD", "/").run(app)).content == b""
        assert (await Exchange("POST", "/").run(app)).status == 405


async def test_the_playground_is_not_in_the_document():
    async with scripted() as (app, _):
        document = (await get("/openapi.json").run(app)).content
    assert b"playground" not in document
    assert b'"/":' not in document


@pytest.mark.parametrize("name", [PAGE, *FILES])
def test_the_files_contain_no_outside_addresses(name):
    text = FOLDER.joinpath(name).read_text()
    addresses = set(re.findall(r"https?://[^\s\"')]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "https://example.com"}
