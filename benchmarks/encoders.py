"""What each sound format costs, and what the event loop feels of it: inline, and in a thread.

    python -m benchmarks.encoders

Opening, one push of 100 ms, and the lag of a 2 ms timer while 32 streams are coded at four times
real time.
"""

from __future__ import annotations

import statistics
import time
from functools import partial

import anyio
import numpy as np

from server.encoding.formats import FORMATS, FileFormat

PIECE = (3000 * np.random.default_rng(0).standard_normal(2400)).astype("<i2").tobytes()
PUSHES = 300
STREAMS = 32
PERIOD_S = 0.1 / 4
WATCH_S = 0.002
RUN_S = 3.0


def open_ms(form: FileFormat) -> float:
    """The median time to set one up, all of them kept."""
    times, kept = [], []
    for _ in range(20):
        began = time.perf_counter()
        kept.append(form.open())
        times.append((time.perf_counter() - began) * 1e3)
    for encoder in kept:
        encoder.close()
    return statistics.median(times)


async def push(encoder, thread):
    if thread:
        await anyio.to_thread.run_sync(encoder.feed, PIECE)
    else:
        encoder.feed(PIECE)


async def push_us(form: FileFormat, thread: bool) -> float:
    """The median time of one push."""
    encoder, times = form.open(), []
    for _ in range(PUSHES):
        began = time.perf_counter()
        await push(encoder, thread)
        times.append((time.perf_counter() - began) * 1e6)
    encoder.close()
    return statistics.median(times)


async def lag_ms(form: FileFormat, thread: bool) -> tuple[float, float]:
    """The median and the 99% of how late the timer is."""
    late, end = [], time.perf_counter() + RUN_S

    async def stream(encoder):
        while time.perf_counter() < end:
            await push(encoder, thread)
            await anyio.sleep(PERIOD_S)

    encoders = [form.open() for _ in range(STREAMS)]
    async with anyio.create_task_group() as tasks:
        for encoder in encoders:
            tasks.start_soon(stream, encoder)
        while time.perf_counter() < end:
            began = time.perf_counter()
            await anyio.sleep(WATCH_S)
            late.append((time.perf_counter() - began - WATCH_S) * 1e3)
    for encoder in encoders:
        encoder.close()
    return statistics.median(late), float(np.quantile(late, 0.99))


def main() -> None:
    print("format  open ms  push us inline/thread  lag ms inline p50/p99  in a thread p50/p99")
    for name, form in FORMATS.items():
        inline, thread = (anyio.run(partial(push_us, form, where)) for where in (False, True))
        here, there = (anyio.run(partial(lag_ms, form, where)) for where in (False, True))
        print(
            f"{name:7} {open_ms(form):7.2f} {inline:9.0f} / {thread:.0f}"
            f" {here[0]:16.2f} / {here[1]:.1f} {there[0]:16.2f} / {there[1]:.1f}"
        )


if __name__ == "__main__":
    main()
