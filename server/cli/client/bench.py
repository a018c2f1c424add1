"""A short load on a server, heard as listeners hear it.

Light and for any server. What compares servers to the millisecond is `benchmarks/`, whose clients
are bare sockets in a process of their own.
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

    from server.cli.client.api import Target
    from server.observe.player import Listening

PATH = "/v1/audio/speech"
TEXTS = (
    "The kettle is on, and the rain has nearly stopped.",
    "She counted the steps twice, and both times there were forty one.",
    "A train that is late by an hour is early for the next one.",
    "Nobody had told the gardener that the roses were meant to be yellow.",
)


@dataclass(slots=True)
class HeardSpeech:
    """One request: whether it was complete, and its sound with the times from its beginning."""

    problem: str = ""
    ended_s: float = 0.0
    pieces: list[ReceivedAudio] = field(default_factory=list)

    @property
    def audio_s(self) -> float:
        """How long its sound is."""
        return sum(piece.audio_s for piece in self.pieces)

    @property
    def listening(self) -> Listening:
        """As a player with a small buffer plays it."""
        return listen(self.pieces, BUFFER_S)


@dataclass(frozen=True, slots=True)
class Load:
    """`num_clients` at once, who share `num_requests`."""

    target: Target
    model: str
    voice: str
    num_clients: int
    num_requests: int


async def bench(load: Load, tell: Callable[[], object]) -> tuple[list[HeardSpeech], float]:
    """All requests, and how long all of it took. `tell` is called when one is over."""
    texts = islice(cycle(TEXTS), load.num_requests)
    found: list[HeardSpeech] = []
    limits = httpx2.Limits(max_connections=load.num_clients)
    headers = load.target.headers
    async with httpx2.AsyncClient(
        base_url=load.target.base, headers=headers, timeout=TIMEOUT, limits=limits
    ) as client:

        async def one_client(texts: Iterator[str]) -> None:
            for text in texts:  # shared: whoever is free takes the next
                found.append(await _hear(client, load, text))
                tell()

        began_s = perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(load.num_clients):
                tasks.start_soon(one_client, texts)
    return found, perf_counter() - began_s


async def _hear(client: httpx2.AsyncClient, load: Load, text: str) -> HeardSpeech:
    heard = HeardSpeech()
    body = {"model": load.model, "voice": load.voice, "input": text, "response_format": "pcm"}
    began_s = perf_counter()
    odd = 0
    try:
        async with client.stream("POST", PATH, json=body) as reply:
            if not reply.is_success:
                heard.problem = f"HTTP {reply.status_code}"
                return heard
            async for raw in reply.aiter_bytes():
                whole = odd + len(raw)
                odd = whole % SAMPLE_BYTES
                at_s = perf_counter() - began_s
                heard.pieces.append(ReceivedAudio(at_s, (whole - odd) / BYTES_PER_S))
    except httpx2.HTTPError as error:
        heard.problem = type(error).__name__
    heard.ended_s = perf_counter() - began_s
    if not heard.pieces and not heard.problem:
        heard.problem = "no sound"
    return heard
