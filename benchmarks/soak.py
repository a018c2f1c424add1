"""Measures memory, file descriptors and queues during ten minutes of mixed load.

Requests for speech and for chats with voice arrive at random at the embedded models. A fifth of the
clients disconnect early, and every two minutes a worker is killed.
`python -m benchmarks.soak --minutes 10` writes JSON and a plot. The clients run in the server's
process, so its memory includes theirs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import structlog

from server.config.settings import Settings
from server.serve import listen, uvicorn_server
from server.serving.service import Service
from stages.contract.roles import Role
from stages.models.registry import build
from stages.runtime.placement import BuildConfig, Placement
from tests.chaos.client import post
from tests.chaos.process import holding

RESULTS = Path(__file__).parent / "results"
TEXT = "The quick brown fox jumps over the lazy dog, and nobody in the garden minds at all. "
REQUESTS_PER_S = 1.0
KILL_EVERY_S = 120.0


class Soak:
    """Generates the load, kills workers, and takes samples."""

    def __init__(self, service: Service, workers: tuple[Any, ...], port: int) -> None:
        self.service = service
        self.workers = workers
        self.port = port
        self.rng = random.Random(1)
        self.endings: Counter[str] = Counter()
        self.samples: list[dict[str, float]] = []

    async def run_client(self) -> None:
        """Send one random request."""
        leave = self.rng.choice([0, 1, 4, 10]) if self.rng.random() < 0.2 else None
        text = TEXT * self.rng.choice([1, 1, 2, 4])
        if self.rng.random() < 0.7:
            path, body = "/v1/audio/speech", _speech(text)
        else:
            path, body = "/v1/chat/completions", _chat("Tell me about the sea.")
        self.endings[(await post(self.port, path, body, leave)).ending] += 1

    async def load(self, until: float) -> None:
        """Start clients at random times."""
        async with asyncio.TaskGroup() as clients:
            while time.monotonic() < until:
                clients.create_task(self.run_client())
                await asyncio.sleep(self.rng.expovariate(REQUESTS_PER_S))

    async def kill(self, until: float) -> None:
        """Kill a random worker at regular intervals."""
        while time.monotonic() + KILL_EVERY_S < until:
            await asyncio.sleep(KILL_EVERY_S)
            self.rng.choice(self.workers).kill()

    async def watch(self, began: float, until: float) -> None:
        """Take a sample every second."""
        while time.monotonic() < until + 20:
            await asyncio.sleep(1)
            try:
                held = await asyncio.to_thread(holding, os.getpid())
            except OSError:  # a process ended while it was measured
                continue
            stats = self.service.admission.stats()
            self.samples.append(
                {
                    "at_s": time.monotonic() - began,
                    "memory_mb": held.memory_mb,
                    "descriptors": held.descriptors,
                    "threads": held.threads,
                    "running": stats.num_running,
                    "waiting": stats.num_waiting,
                }
            )


def _speech(text: str) -> dict[str, Any]:
    return {
        "model": "tts-1",
        "voice": "alloy",
        "input": text,
        "response_format": "pcm",
        "stream_format": "sse",
    }


def _chat(text: str) -> dict[str, Any]:
    return {
        "model": "gpt-audio",
        "messages": [{"role": "user", "content": text}],
        "modalities": ["text", "audio"],
        "audio": {"voice": "alloy", "format": "pcm16"},
        "stream": True,
        "max_tokens": 40,
    }


async def run(minutes: float) -> Soak:
    """Serve, run the load for some minutes, and stop."""
    settings = Settings(port=0, executor="process", log_level="error")
    deployments = []

    def deploy() -> Any:
        on = Placement(executor="process")
        deployments.append(
            build(["embedded"], BuildConfig(settings.cache_dir, dict.fromkeys(Role, on)))
        )
        return deployments[0]

    service = Service(settings, deploy)
    listener = listen(settings)
    server = uvicorn_server(service)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        await service.settled.wait()
        soak = Soak(service, deployments[0].workers, listener.getsockname()[1])
        began = time.monotonic()
        until = began + 60 * minutes
        async with asyncio.TaskGroup() as parts:
            parts.create_task(soak.load(until))
            parts.create_task(soak.kill(until))
            parts.create_task(soak.watch(began, until))
        server.should_exit = True
    return soak


def main() -> None:
    """Run, print and store."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    minutes = parser.parse_args().minutes
    logging.disable()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    soak = anyio.run(run, minutes)
    first, last = soak.samples[30], soak.samples[-1]
    print(f"endings: {dict(soak.endings)}")
    print(f"after 30 s: {first}\nat the end: {last}")
    RESULTS.mkdir(exist_ok=True)
    results = {"endings": soak.endings, "samples": soak.samples}
    (RESULTS / "soak.json").write_text(json.dumps(results) + "\n")
    _plot(soak.samples)


def _plot(samples: list[dict[str, float]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(3, 1, figsize=(8, 7), sharex=True, layout="constrained")
    at = [sample["at_s"] / 60 for sample in samples]
    for axes, names, label in zip(
        rows,
        (("memory_mb",), ("descriptors", "threads"), ("running", "waiting")),
        ("MB (proportional)", "count", "requests"),
        strict=True,
    ):
        for name in names:
            axes.plot(at, [sample[name] for sample in samples], label=name, linewidth=1)
        axes.set(ylabel=label, ylim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right")
    rows[-1].set_xlabel("minutes (a worker is killed every 2; no new requests in the last 20 s)")
    rows[0].set_title("Soak: embedded models, processes, 1 request/s, a fifth disconnect")
    figure.savefig(RESULTS / "soak.png", dpi=110)


if __name__ == "__main__":
    main()
