"""Sends a short load to a server and measures what a listener hears.

It is simple and works with any server. To compare servers to the millisecond, use `benchmarks/`:
its clients are raw sockets in a process of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle, islice
from time import perf_counter
from typing import TYPE_CHECKING

import anyio
import httpx2

from server.cli.client.api import TIMEOUT
from server.encoding.pcm import BYTES_PER_S, SAMPLE_BYTES
from server.observe.player import BUFFER_S, ReceivedAudio, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from server.cli.client.api import ServerAddress
    from server.observe.player import Listening

PATH = "/v1/audio/speech"
TEXTS = (
    "The kettle is on, and the rain has nearly stopped.",
    "She counted the steps twice, and both times there were forty one.",
    "A train that is late by an hour is early for the next one.",
    "Nobody had told the gardener that the roses were meant to be yellow.",
)


@dataclass(slots=True)
class SpeechResult:
    """The outcome of one request: its error (empty: none), its time, and when its audio arrived.

    Times count from the start of the request.
    """

    error: str = ""
    took_s: float = 0.0
    arrivals: list[ReceivedAudio] = field(default_factory=list)

    @property
    def audio_s(self) -> float:
        """The length of the audio in seconds."""
        return sum(arrival.audio_s for arrival in self.arrivals)

    @property
    def playback(self) -> Listening:
        """How a player with a small buffer plays the audio as it arrives."""
        return listen(self.arrivals, BUFFER_S)


@dataclass(frozen=True, slots=True)
class Load:
    """`num_clients` concurrent clients that share `num_requests` requests."""

    server: ServerAddress
    model: str
    voice: str
    num_clients: int
    num_requests: int


async def run_load(
    load: Load, on_request_done: Callable[[], object]
) -> tuple[list[SpeechResult], float]:
    """Send all requests. Return their results and the total time in seconds.

    `on_request_done` is called after each request.
    """
    texts = islice(cycle(TEXTS), load.num_requests)
    results: list[SpeechResult] = []
    limits = httpx2.Limits(max_connections=load.num_clients)
    headers = load.server.headers
    async with httpx2.AsyncClient(
        base_url=load.server.base_url, headers=headers, timeout=TIMEOUT, limits=limits
    ) as client:

        async def run_client(texts: Iterator[str]) -> None:
            for text in texts:  # the iterator is shared: a free client takes the next text
                results.append(await _request_speech(client, load, text))
                on_request_done()

        began_s = perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(load.num_clients):
                tasks.start_soon(run_client, texts)
    return results, perf_counter() - began_s


async def _request_speech(client: httpx2.AsyncClient, load: Load, text: str) -> SpeechResult:
    result = SpeechResult()
    body = {"model": load.model, "voice": load.voice, "input": text, "response_format": "pcm"}
    began_s = perf_counter()
    rest_bytes = 0  # of a sample that is not complete yet
    try:
        async with client.stream("POST", PATH, json=body) as response:
            if not response.is_success:
                result.error = f"HTTP {response.status_code}"
                return result
            async for raw in response.aiter_bytes():
                num_bytes = rest_bytes + len(raw)
                rest_bytes = num_bytes % SAMPLE_BYTES
                at_s = perf_counter() - began_s
                audio_s = (num_bytes - rest_bytes) / BYTES_PER_S
                result.arrivals.append(ReceivedAudio(at_s, audio_s))
    except httpx2.HTTPError as error:
        result.error = type(error).__name__
    result.took_s = perf_counter() - began_s
    if not result.arrivals and not result.error:
        result.error = "no audio"
    return result
