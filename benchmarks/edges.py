"""Measures what a chunk costs from stage to stage, for each pair of executors and each connector.

`python -m benchmarks.edges` runs a source and a sink without computation. It sends chunks one by
one to measure the latency, and as fast as possible to measure the throughput. It prints a table
and writes JSON. Needs the extra `ray`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import structlog

from orchestrator import AsyncChunkOrchestrator
from stages.contract.messages import AudioEnd, LatentChunk, Request, TalkerParams, TextChunk
from stages.contract.pipeline import prewarm_fn
from stages.contract.roles import Role
from stages.contract.stage import Emit
from stages.runtime.deployment import Deployment, PipelineStage, wire
from stages.runtime.placement import Placement, RayCluster
from stages.runtime.replicas import make_replicas

RESULTS = Path(__file__).parent / "results"
SIZES = (4_800, 40_000)
PACED, PAUSE_S = 300, 0.003
FAST = 3_000
WAYS = (
    ("thread", "thread", "memory"),
    ("process", "process", "shared memory"),
    ("thread", "process", "shared memory"),
    ("process", "thread", "shared memory"),
    ("ray", "ray", "shared memory, handed over"),
    ("thread", "ray", "shared memory, handed over"),
    ("ray", "process", "shared memory, handed over"),
    ("ray", "ray", "ZeroMQ over TCP"),
)


class Null:
    """The methods that source and sink share."""

    def load(self):
        """Nothing to load."""

    def warm(self):
        """Nothing to warm."""

    def end_input(self, request_id):
        """Ignore the end of the input."""

    def wants_chunk(self, request_id):
        """Always accept a chunk."""
        return True


class Source(Null):
    """Sends `speaker` chunks of `seed` bytes. With `speed` 0 it sends them as fast as possible."""

    def open(self, request_id, params):
        """Start with all chunks left to send."""
        self.params, self.left = params, params.speaker

    def feed(self, request_id, chunk):
        """Ignore the input."""

    def ready(self, request_id, credit):
        """Whether there is credit."""
        return credit.both > 0

    def step(self, credit):
        """Send as many chunks as there is credit for, or one after a pause, each with its time."""
        for request_id, each in credit.items():
            count = each.both
            if self.params.settings:
                threading.Event().wait(PAUSE_S)
                count = 1
            for _ in range(min(count, self.left)):
                self.left -= 1
                samples = np.zeros(self.params.seed // 4, np.float32)
                yield Emit(request_id, LatentChunk(samples, True, True, time.monotonic()))
            if not self.left:
                yield Emit(request_id, end=AudioEnd(0, 0))

    def close(self, request_id):
        """See Stage."""


class Sink(Null):
    """Reports the latency of each chunk at the end."""

    def open(self, request_id, params):
        """Start without any chunk."""
        self.took, self.ended = [], False

    def feed(self, request_id, chunk):
        """Note the latency of a chunk. The source stored the send time in its `pause_s`."""
        self.took.append(time.monotonic() - chunk.pause_s)

    def end_input(self, request_id):
        """Note the end of the input."""
        self.ended = True

    def ready(self, request_id, credit):
        """Ready once the input has ended, with credit for one chunk."""
        return self.ended and credit.both > 0

    def step(self, credit):
        """Report the latencies, then the end."""
        for request_id in credit:
            yield Emit(request_id, TextChunk(json.dumps(self.took)))
            yield Emit(request_id, end=AudioEnd(0, 0))

    def close(self, request_id):
        """See Stage."""


async def run(orchestrator, size, count, paced):
    """Send `count` chunks. Returns the total time and the latency of each, in seconds."""
    params = TalkerParams("", seed=size, speaker=count, settings=paced)
    began = time.perf_counter()
    async with orchestrator.stream(Request((params, params), (TextChunk(""),))) as outputs:
        texts = [o.data.text async for o in outputs if isinstance(o.data, TextChunk)]
    return time.perf_counter() - began, json.loads(texts[0])


def forbid_rings():
    """Let workers on Ray believe that they are on different machines."""
    from stages.runtime.executors.connections import Connection

    plain = Connection.send_address

    def send_address(connection):
        if connection.address is not None:
            connection.address = replace(connection.address, edge_inbox="")
        plain(connection)

    Connection.send_address = send_address


async def measure(source_in, sink_in, connector):
    """Measure one pair of executors and its connector."""
    if "ZeroMQ" in connector:
        forbid_rings()
    cluster = RayCluster(namespace=f"{source_in} {sink_in} {connector}")
    source = make_replicas(Placement(executor=source_in, ray=cluster), "source", Source)
    sink = make_replicas(Placement(executor=sink_in, ray=cluster), "sink", Sink)
    handles, edges = wire(
        [
            PipelineStage(source, Role.TALKER, final=False),
            PipelineStage(sink, Role.TALKER, final=True),
        ]
    )
    deployment = Deployment([source, sink], [], edges)
    await deployment.start(60)
    orchestrator = AsyncChunkOrchestrator(handles, {1}, prewarm_fn)
    await orchestrator.start()
    rows = []
    for size in SIZES:
        await run(orchestrator, size, 200, False)
        _, took = await run(orchestrator, size, PACED, True)
        seconds, _ = await run(orchestrator, size, FAST, False)
        rows.append(
            {
                "from": source_in,
                "to": sink_in,
                "connector": connector,
                "bytes": size,
                "median_us": 1e6 * statistics.median(took),
                "p95_us": 1e6 * statistics.quantiles(took, n=20)[-1],
                "chunks_per_s": FAST / seconds,
            }
        )
    await orchestrator.shutdown()
    await deployment.stop()
    return rows


async def measure_all():
    """Measure all pairs, in one event loop: Ray can only be used in the thread that joined it."""
    rows = []
    for way in WAYS:
        for row in await measure(*way):
            rows.append(row)
            print(
                f"{row['from']:8} {row['to']:8} {row['connector']:26} {row['bytes']:>6} bytes: "
                f"{row['median_us']:6.0f} us ({row['p95_us']:.0f} at 95%), "
                f"{row['chunks_per_s']:8,.0f} per second",
                flush=True,
            )
    return rows


def main():
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    rows = asyncio.run(measure_all())
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "edges.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
