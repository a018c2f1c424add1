"""Measures what each audio format costs, and how much it delays the event loop.

    python -m benchmarks.encoders

Measures opening an encoder, feeding 100 ms of audio, and how late a 2 ms timer is while 32 streams
are encoded at four times real time, inline and in a thread.
"""

from __future__ import annotations

import statistics
import time
from functools import partial

import anyio
import numpy as np

from server.encoding.formats import FORMATS, FileFormat

PCM = (3000 * np.random.default_rng(0).standard_normal(2400)).astype("<i2").tobytes()
NUM_FEEDS = 300
NUM_STREAMS = 32
PERIOD_S = 0.1 / 4
TIMER_S = 0.002
RUN_S = 3.0


def open_ms(form: FileFormat) -> float:
    """The median time to open an encoder, while the earlier ones stay open."""
    times, encoders = [], []
    for _ in range(20):
        began = time.perf_counter()
        encoders.append(form.open())
        times.append((time.perf_counter() - began) * 1e3)
    for encoder in encoders:
        encoder.close()
    return statistics.median(times)


async def feed(encoder, in_thread):
    """Feed 100 ms of audio to an encoder."""
    if in_thread:
        await anyio.to_thread.run_sync(encoder.feed, PCM)
    else:
        encoder.feed(PCM)


async def feed_us(form: FileFormat, in_thread: bool) -> float:
    """The median time to feed 100 ms of audio."""
    encoder, times = form.open(), []
    for _ in range(NUM_FEEDS):
        began = time.perf_counter()
        await feed(encoder, in_thread)
        times.append((time.perf_counter() - began) * 1e6)
    encoder.close()
    return statistics.median(times)


async def lag_ms(form: FileFormat, in_thread: bool) -> tuple[float, float]:
    """How late the timer is: the median and the 99% quantile."""
    late, end = [], time.perf_counter() + RUN_S

    async def stream(encoder):
        while time.perf_counter() < end:
            await feed(encoder, in_thread)
            await anyio.sleep(PERIOD_S)

    encoders = [form.open() for _ in range(NUM_STREAMS)]
    async with anyio.create_task_group() as tasks:
        for encoder in encoders:
            tasks.start_soon(stream, encoder)
        while time.perf_counter() < end:
            began = time.perf_counter()
            await anyio.sleep(TIMER_S)
            late.append((time.perf_counter() - began - TIMER_S) * 1e3)
    for encoder in encoders:
        encoder.close()
    return statistics.median(late), float(np.quantile(late, 0.99))


def main() -> None:
    print("format  open ms  feed us inline/thread  lag ms inline p50/p99  in a thread p50/p99")
    for name, form in FORMATS.items():
        inline, thread = (anyio.run(partial(feed_us, form, where)) for where in (False, True))
        inline_lag, thread_lag = (anyio.run(partial(lag_ms, form, w)) for w in (False, True))
        print(
            f"{name:7} {open_ms(form):7.2f} {inline:9.0f} / {thread:.0f}"
            f" {inline_lag[0]:16.2f} / {inline_lag[1]:.1f}"
            f" {thread_lag[0]:16.2f} / {thread_lag[1]:.1f}"
        )


if __name__ == "__main__":
    main()
