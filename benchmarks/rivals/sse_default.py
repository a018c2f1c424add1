"""The usual way to stream events: FastAPI, sse-starlette, and a dict for each event.

`python -m benchmarks.rivals.sse_default PORT EVENTS BYTES` answers every POST with EVENTS events of
BYTES bytes of PCM each. The generator suspends once per event, as it would to wait for a stage.
"""

import asyncio
import base64
import json
import sys

import uvicorn
from fastapi import FastAPI
from sse_starlette import EventSourceResponse

NUM_EVENTS, NUM_BYTES = int(sys.argv[2]), int(sys.argv[3])
PCM = bytes(range(256)) * (NUM_BYTES // 256) + bytes(NUM_BYTES % 256)

app = FastAPI()


@app.get("/health")
async def health():
    """Report that the server is ready."""
    return {"status": "ready"}


@app.post("/v1/audio/speech")
async def speech(body: dict):
    """Stream the audio events of a speech."""

    async def events():
        for _ in range(NUM_EVENTS):
            await asyncio.sleep(0)
            audio = base64.b64encode(PCM).decode()
            yield {"data": json.dumps({"type": "speech.audio.delta", "audio": audio})}
        yield {"data": json.dumps({"type": "speech.audio.done"})}
        yield {"data": "[DONE]"}

    return EventSourceResponse(events(), sep="\n")


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        http="httptools",
        loop="asyncio",
        access_log=False,
        log_level="warning",
    )
