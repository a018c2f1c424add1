"""Measures what admission, binding and the gate cost with 1 to 16 null workers for each stage.

`python -m benchmarks.replicas_cost` prints CPU per request and per chunk, with a thousand live
requests. A request is admitted, bound and submitted to three stages, finished by each, and cleaned
up. The numbers of workers take turns, and the medians of the rounds count.
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

from orchestrator import Admission, AsyncChunkOrchestrator
from stages.contract.messages import StageInput, StageOutput
from stages.runtime.executors.handle import ReplicatedHandle
from stages.runtime.worker.control import Output, Submit

RESULTS = Path(__file__).parent / "results"
REPLICAS = (1, 2, 4, 8, 16)
LIVE, CHUNKS, ROUNDS = 1_000, 20_000, 9


class NullWorker:
    """A worker that accepts everything and reports what the benchmark tells it to."""

    def __init__(self, submitted):
        self.name = "null"
        self.replica = None
        self.num_live = 0
        self.submitted = submitted
        self.open = []

    def post(self, order):
        if isinstance(order, Submit):
            self.open.append(order.request_id)
            self.submitted.append(order)

    def report(self, request_id, data, finished):
        self.replica.deliver(Output(0, StageOutput(request_id, data, finished)))


class Fleet:
    """An orchestrator over three stages with `replicas` workers each."""

    def __init__(self, replicas):
        self.stages, self.submitted, handles = [], [], []
        for _ in range(3):
            handle, workers = ReplicatedHandle(handles[0] if handles else None), []
            for _ in range(replicas):
                worker = NullWorker(self.submitted)
                worker.replica = handle.add_replica(worker, 0, range(replicas), range(replicas))
                worker.replica.worker_started()
                workers.append(worker)
            handles.insert(0, handle)
            self.stages.insert(0, workers)
        admission = Admission(LIVE, LIVE)
        self.orchestrator = AsyncChunkOrchestrator(
            handles, {0, 2}, lambda k, _: StageInput(None, None, k < 2), admission=admission
        )

    async def run_request(self):
        """Start a request, and read its outputs to the end."""
        async with self.orchestrator.stream(StageInput(None, (), True)) as outputs:
            async for _ in outputs:
                pass

    async def start_requests(self, tasks):
        """Start `LIVE` requests, and wait until all are submitted to all stages."""
        for _ in range(LIVE):
            tasks.create_task(self.run_request())
        self.submitted.clear()
        while len(self.submitted) < 3 * LIVE:  # noqa: ASYNC110 - the workers signal no event
            await asyncio.sleep(0)

    def end_all(self):
        for stage in self.stages:
            for worker in stage:
                for request_id in worker.open:
                    worker.report(request_id, None, True)
                worker.open.clear()


async def run_round(fleet):
    """CPU microseconds per request and per chunk in one round."""
    began = time.process_time()
    async with asyncio.TaskGroup() as tasks:
        await fleet.start_requests(tasks)
        chunks_began = time.process_time()
        for n in range(0, CHUNKS, LIVE):
            for worker in fleet.stages[2]:
                for request_id in worker.open:
                    worker.report(request_id, n, False)
            for _ in range(4):
                await asyncio.sleep(0)
        chunks_s = time.process_time() - chunks_began
        fleet.end_all()
    all_s = time.process_time() - began
    return 1e6 * (all_s - chunks_s) / LIVE, 1e6 * chunks_s / CHUNKS


async def measure():
    """Measure all numbers of workers. Returns a row for each."""
    fleets = {replicas: Fleet(replicas) for replicas in REPLICAS}
    for fleet in fleets.values():
        await fleet.orchestrator.start()
    rounds = [
        {replicas: await run_round(fleet) for replicas, fleet in fleets.items()}
        for _ in range(1 + ROUNDS)
    ][1:]  # the first round is a warm-up
    for fleet in fleets.values():
        await fleet.orchestrator.shutdown()
    rows = []
    for replicas in REPLICAS:
        request_us, chunk_us = (
            statistics.median(values) for values in zip(*(r[replicas] for r in rounds), strict=True)
        )
        rows.append({"replicas": replicas, "request_us": request_us, "chunk_us": chunk_us})
    return rows


def main():
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    rows = asyncio.run(measure())
    for row in rows:
        print(
            "{replicas:>3} workers: {request_us:6.1f} us per request,"
            " {chunk_us:5.1f} us per chunk".format(**row)
        )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "replicas_cost.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
