"""A client as an ASGI app sees it. It can disconnect, and it can stop reading."""

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from server.exception_groups import ungrouped


@dataclass
class Exchange:
    """One request and its reply. Set `left` to disconnect; sending waits for `gate`, if any."""

    method: str = "POST"
    path: str = "/"
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    spec_version: str = "2.3"
    query: bytes = b""
    pieces: int = 1

    def __post_init__(self):
        self.left = anyio.Event()
        self.started = anyio.Event()
        self.receiving = anyio.Event()
        self.got_bytes = anyio.Event()
        self.gate = None
        self._more = anyio.Event()
        self.messages = []
        self._unsent = self._cut()

    def _cut(self):
        size = max(1, -(-len(self.body) // self.pieces))
        return [self.body[i : i + size] for i in range(0, len(self.body), size)] or [b""]

    async def receive(self):
        if self._unsent:
            body = self._unsent.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(self._unsent)}
        self.receiving.set()
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if self.left.is_set():
            raise OSError("the client is gone")
        self.messages.append(message)
        self.started.set()
        if message.get("body"):
            self.got_bytes.set()
            self._more.set()
            self._more = anyio.Event()
            if self.gate is not None:
                await self.gate.wait()

    async def holds(self, text):
        """Wait until the reply contains `text`."""
        while text not in self.content:
            await self._more.wait()

    async def run(self, app):
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": self.spec_version},
            "http_version": "1.1",
            "method": self.method,
            "scheme": "http",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": self.query,
            "root_path": "",
            "headers": [(k.lower().encode(), v.encode()) for k, v in self.headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        await app(scope, self.receive, self.send)
        return self

    @property
    def status(self):
        return self.messages[0]["status"]

    @property
    def reply_headers(self):
        return {k.decode(): v.decode() for k, v in self.messages[0]["headers"]}

    @property
    def content(self):
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def complete(self):
        return bool(self.messages) and not self.messages[-1].get("more_body", False)

    @property
    def json(self):
        return json.loads(self.content)

    @property
    def error(self):
        """The error of the reply, whose envelope must have all its keys."""
        error = self.json["error"]
        assert set(self.json) == {"error"}
        assert set(error) == {"message", "type", "param", "code"}
        return error


def post(path, body, **fields):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Exchange("POST", path, raw, **fields)


def get(path, **fields):
    return Exchange("GET", path, **fields)


def events(content):
    """The `data:` of each event. Everything else must be a comment."""
    blocks = content.decode().removesuffix("\n\n").split("\n\n")
    assert all(block.startswith(("data: ", ": ")) and "\n" not in block for block in blocks)
    return [block.removeprefix("data: ") for block in blocks if block.startswith("data: ")]


@asynccontextmanager
async def running(request, app):
    """Run the request in the background; it has ended when the `async with` ends."""
    with ungrouped():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(request.run, app)
            yield
