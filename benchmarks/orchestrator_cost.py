"""Measures the orchestrator's own cost per chunk and per request, with 1 to 10,000 live requests.

It uses three null stages whose outputs are generated here, so that only readers, dispatcher and
gate run. `python -m benchmarks.orchestrator_cost` prints a table and writes JSON and a plot.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import statistics
import time
from pathlib import Path

import structlog

from orchestrator import AsyncChunkOrchestrator
from stages.contract.channel import Channel
from stages.contract.messages import StageOutput

RESULTS = Path(__file__).parent / "results"
LIVE = (1, 10, 100, 1_000, 3_000, 10_000)
NUM_CHUNKS = 20_000  # for each number of live requests
BATCH = 50
ROUNDS = range(5)


class NullStage:
    """A stage handle that accepts everything and reports the outputs that are put into it."""

    def __init__(self) -> None:
        self.outputs: Channel[StageOutput] = Channel()

    async def submit(self, request_id: str, stage_input: object) -> None:
        """Ignore the request."""

    async def next_output(self) -> StageOutput:
        """The next output that was put."""
        return await self.outputs.get()

    async def abort(self, request_id: str) -> None:
        """Ignore the abort."""


async def measure(live: int) -> tuple[float, float]:
    """CPU microseconds per chunk, and per request from `add_request` to its clean-up."""
    stages = [NullStage() for _ in range(3)]
    orchestrator = AsyncChunkOrchestrator(stages, {0, 2}, lambda *_: None)
    await orchestrator.start()
    ids = [f"r{n}" for n in range(live)]
    await add_all(orchestrator, ids)
    chunk_s = statistics.median([await pass_chunks(orchestrator, stages[2], ids) for _ in ROUNDS])
    request_s = await replace_requests(orchestrator, stages, ids)
    await orchestrator.shutdown()
    return chunk_s * 1e6, request_s * 1e6


async def add_all(orchestrator: AsyncChunkOrchestrator, ids: list[str]) -> None:
    """Start a request for each id."""
    for request_id in ids:
        await orchestrator.add_request(request_id, None)
    await asyncio.sleep(0)


async def pass_chunks(
    orchestrator: AsyncChunkOrchestrator, stage: NullStage, ids: list[str]
) -> float:
    """CPU seconds per chunk. Outputs arrive in batches, as from a step of a stage."""
    began = time.process_time()
    for n in range(0, NUM_CHUNKS, BATCH):
        for k in range(n, n + BATCH):
            stage.outputs.put(StageOutput(ids[k % len(ids)], k, finished=False))
        for _ in range(BATCH):
            await orchestrator.next_output()
    return (time.process_time() - began) / NUM_CHUNKS


async def replace_requests(
    orchestrator: AsyncChunkOrchestrator, stages: list[NullStage], ids: list[str]
) -> float:
    """CPU seconds per request: repeatedly end all requests, and start as many new ones."""
    num_rounds = max(1, 2_000 // len(ids))
    began = time.process_time()
    for number in range(num_rounds):
        for stage in stages:
            for request_id in ids:
                stage.outputs.put(StageOutput(request_id, None, finished=True))
        for _ in range(2 * len(ids)):
            await orchestrator.next_output()
        ids = [f"{number}-{n}" for n in range(len(ids))]
        await add_all(orchestrator, ids)
    return (time.process_time() - began) / (num_rounds * len(ids))


def main() -> None:
    """Measure, print and store."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    rows = []
    for live in LIVE:
        chunk_us, request_us = asyncio.run(measure(live))
        rows.append({"live": live, "chunk_us": chunk_us, "request_us": request_us})
        print(f"{live:>6} live: {chunk_us:6.1f} us per chunk, {request_us:6.1f} us per request")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "orchestrator_cost.json").write_text(json.dumps(rows, indent=1) + "\n")
    _plot(rows)


def _plot(rows: list[dict[str, float]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    live = [row["live"] for row in rows]
    axes.plot(live, [row["chunk_us"] for row in rows], "o-", label="per chunk")
    axes.plot(live, [row["request_us"] for row in rows], "s-", label="per request")
    axes.set(xscale="log", xlabel="live requests", ylabel="CPU µs", ylim=(0, None))
    axes.set_title("The orchestrator's own cost, three null stages")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(RESULTS / "orchestrator_cost.png", dpi=120)


if __name__ == "__main__":
    main()
