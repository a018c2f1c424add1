"""Reads streamed replies."""

import json

from tests.server.asgi import events


def chunks_of(reply):
    """The chunks of a complete stream, without `[DONE]`."""
    *chunks, done = events(reply.content)
    assert done == "[DONE]"
    return [json.loads(chunk) for chunk in chunks]
