"""Compares `nano-omni plan` with a measured run, and simulates up to 100,000 streams.

`python -m benchmarks.planned check` runs stages that only wait, with known costs, in the real
orchestrator, workers and edges, and prints the measured values beside the planned ones.
`python -m benchmarks.planned picture` writes the table and the picture of docs/scaling.md.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import structlog

from orchestrator import AsyncChunkOrchestrator
from server.cli.capacity_simulation import PlannedStage, SimulatedLoad, report, simulate
from stages.contract.messages import AudioEnd, LatentChunk, Request, TalkerParams, TextChunk
from stages.contract.pipeline import prewarm_fn
from stages.contract.roles import Role
from stages.contract.stage import Emit
from stages.runtime.deployment import Deployment, PipelineStage, wire
from stages.runtime.placement import Placement
from stages.runtime.replicas import make_replicas

RESULTS = Path(__file__).parent / "results"
PICTURE = Path(__file__).parent.parent / "docs" / "scaling.png"
CHECKED = [PlannedStage("talker", 2, 10, 40, batch=4), PlannedStage("code2wav", 2, 10, 60, batch=4)]
LOAD = SimulatedLoad(rate=3, stream_s=5, first_s=0.2, chunk_s=0.6, run_s=40)
CELL = [PlannedStage("talker", 12, 3, 19), PlannedStage("code2wav", 16, 3, 24)]
CELL_STREAMS = (100, 200, 300, 400, 450, 500, 550)
CELLS = (1, 25, 250)
STREAM_S = 10.0


class WaitingStage:
    """A stage whose steps only wait, for as long as a PlannedStage says."""

    def __init__(self, stage: PlannedStage) -> None:
        self._costs = stage
        self._lanes: dict[str, list[float]] = {}
        self._ended: set[str] = set()
        self._made: dict[str, int] = {}
        self._began: dict[str, float] = {}

    def load(self):
        """Nothing to load."""

    def warm(self):
        """Nothing to warm."""

    def open(self, request_id, params):
        """Start a request without input."""
        self._lanes[request_id] = []
        self._made[request_id] = 0
        self._began[request_id] = time.monotonic()

    def feed(self, request_id, chunk):
        """Queue a chunk. The first stage gets the lengths of all chunks of a stream at once."""
        each = json.loads(chunk.text) if isinstance(chunk, TextChunk) else [chunk.pause_s]
        self._lanes[request_id] += each

    def end_input(self, request_id):
        """Note the end of the input."""
        self._ended.add(request_id)

    def wants_chunk(self, request_id):
        """Always accept a chunk."""
        return True

    def ready(self, request_id, credit):
        """Whether there is credit, and a chunk or the end to send on."""
        return credit.both > 0 and (bool(self._lanes[request_id]) or request_id in self._ended)

    def step(self, credit):
        """Advance the requests with the fewest chunks so far by one chunk each."""
        order = sorted(credit, key=lambda each: (self._made[each], self._began[each]))
        batch = order[: self._costs.batch]
        audio_s = sum(self._lanes[each][0] for each in batch if self._lanes[each])
        if audio_s:
            ms = self._costs.step_ms + self._costs.audio_s_ms * audio_s
            threading.Event().wait(ms / 1000)
        for each in batch:
            if self._lanes[each]:
                self._made[each] += 1
                yield Emit(each, LatentChunk(None, True, True, self._lanes[each].pop(0)))
            else:
                yield Emit(each, end=AudioEnd(0, 0))

    def close(self, request_id):
        """Forget a request."""
        del self._lanes[request_id], self._made[request_id], self._began[request_id]
        self._ended.discard(request_id)


async def measured(stages, load):
    """Run the stages for real. Returns times to first audio and gaps in ms, sorted."""
    groups = [make_replicas(Placement(replicas=s.workers), s.name, WaitingStage, s) for s in stages]
    positions = [
        PipelineStage(group, Role.TALKER, final=group is groups[-1], max_chunks=2, max_unread=64)
        for group in groups
    ]
    faces, edges = wire(positions)
    deployment = Deployment(groups, [], edges)
    await deployment.start()
    orchestrator = AsyncChunkOrchestrator(faces, {len(stages) - 1}, prewarm_fn)
    await orchestrator.start()
    chunks = [load.first_s, *[load.chunk_s] * round((load.stream_s - load.first_s) / load.chunk_s)]
    params = TalkerParams("", 0)
    request = Request((params,) * len(stages), (TextChunk(json.dumps(chunks)),))
    first, gaps, rng = [], [], random.Random(load.seed)

    async def run_request():
        times = [time.perf_counter()]
        async with orchestrator.stream(request) as outputs:
            times += [time.perf_counter() async for output in outputs if not output.finished]
        first.append(1000 * (times[1] - times[0]))
        gaps.extend(1000 * (b - a) for a, b in pairwise(times[1:]))

    end = time.perf_counter() + load.run_s
    async with asyncio.TaskGroup() as tasks:
        while True:
            await asyncio.sleep(rng.expovariate(load.rate))
            if time.perf_counter() > end:
                break
            tasks.create_task(run_request())
    await orchestrator.shutdown()
    await deployment.stop()
    return sorted(first), sorted(gaps)


def check():
    """Print the measured and the planned values side by side."""
    first, gaps = asyncio.run(measured(CHECKED, LOAD))
    plan = simulate(CHECKED, LOAD)
    print(report(plan))
    for name, values, planned in (
        ("first audio", first, plan.first_audio_ms),
        ("gaps", gaps, plan.gap_ms),
    ):
        seen = [values[int(len(values) * share)] for share in (0.5, 0.95, 0.99)]
        print(f"{name:12} measured {seen[0]:.0f} / {seen[1]:.0f} / {seen[2]:.0f} ms")
        print(f"{'':12} planned  {planned[0]:.0f} / {planned[1]:.0f} / {planned[2]:.0f} ms")


def picture():
    """Simulate one cell with more and more streams, and 25 and 250 cells. Store and plot."""
    rows = [_row(streams, 1, 60.0) for streams in CELL_STREAMS]
    rows += [_row(400, cells, 15.0) for cells in CELLS[1:]]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "planned.json").write_text(json.dumps(rows, indent=1) + "\n")
    _plot(rows)


def _row(streams, cells, run_s):
    load = SimulatedLoad(
        rate=cells * streams / STREAM_S, stream_s=STREAM_S, run_s=run_s, cells=cells
    )
    out = simulate(CELL, load)
    row = {
        "cells": cells,
        "streams": cells * streams,
        "first_audio_ms": out.first_audio_ms,
        "gap_ms": out.gap_ms,
        "ran_dry": out.ran_dry,
        "busy": out.busy,
    }
    print(row, flush=True)
    return row


def _plot(rows):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    alone = [row for row in rows if row["cells"] == 1]
    streams = [row["streams"] for row in alone]
    for number, share in enumerate((50, 95, 99)):
        values = [row["first_audio_ms"][number] for row in alone]
        axes.plot(streams, values, "o-", label=f"{share}% within")
    axes.set(xlabel="concurrent streams in a cell", ylabel="first audio, ms", yscale="log")
    axes.set_title("One cell: 12 talkers, 16 code2wavs, one core each (planned)")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(PICTURE, dpi=120)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    {"check": check, "picture": picture}[sys.argv[1]]()
