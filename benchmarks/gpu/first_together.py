"""What the talker's step and the codec's call take beside each other.

64 rows decode in one thread, while a second thread runs code2wav, as the two stages do in a server.
It uses what the parts `talker` and `codec` kept, and makes what they did not.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from statistics import median
from threading import Event
from typing import TYPE_CHECKING, Any

import torch

from benchmarks.gpu import first_codec, first_talker
from benchmarks.gpu.first_run import cudnn_attention, ms_since, rounded_ms
from stages.kernels.device import enter_stream

if TYPE_CHECKING:
    from benchmarks.gpu.first_run import Run
    from benchmarks.gpu.first_talker import Talker
    from stages.models.qwen3_tts.code2wav.batch_decoder import BatchDecoder

MAX_ROWS = 64
STEPS, STEPS_CPU = 60, 3


def measure(run: Run) -> None:
    """Measure the talker beside each kind of codec."""
    if run.talker is None:
        with cudnn_attention(False):
            run.talker = first_talker.new_talker(run, cudnn=False)
    if not run.codecs:
        first_codec.measure(run)
    for kind, batch_decoder in run.codecs.items():
        run.record(f"beside each other, codec {kind}", beside(run, run.talker, batch_decoder))


def beside(run: Run, talker: Talker, batch_decoder: BatchDecoder) -> dict[str, Any]:
    """The talker's steps while the codec decodes, and the codec's calls meanwhile."""
    num_rows = min(MAX_ROWS, talker.batch.num_rows)
    first_talker.fill(talker)
    run.sync()
    decoding, stop = Event(), Event()
    with ThreadPoolExecutor(1) as thread:
        calls = thread.submit(decode_until, stop, decoding, batch_decoder, num_rows)
        decoding.wait()
        try:
            steps_ms = [
                step_ms(run, talker, num_rows) for _ in range(STEPS if run.on_gpu else STEPS_CPU)
            ]
        finally:
            stop.set()
        ends_s = calls.result()
    gaps_s = [end - begin for begin, end in pairwise(ends_s)]
    return {
        "step_ms": median(steps_ms),
        "step_p95_ms": sorted(steps_ms)[int(0.95 * len(steps_ms))],
        "codec_call_ms": rounded_ms(median(gaps_s)) if gaps_s else None,
    }


def step_ms(run: Run, talker: Talker, num_rows: int) -> float:
    """A step of the talker, until its own stream has done it."""
    begin_s = time.perf_counter()
    first_talker.step(talker, num_rows)
    if run.on_gpu:
        torch.cuda.current_stream().synchronize()
    return ms_since(begin_s)


def decode_until(
    stop: Event, decoding: Event, batch_decoder: BatchDecoder, num_rows: int
) -> list[float]:
    """Decode a frame of as many streams as a call takes, again and again → when each call ended.

    Sets `decoding` after the first call, or when it raises.
    """
    try:
        enter_stream(batch_decoder.device)
        streams = [
            batch_decoder.new_stream() for _ in range(min(num_rows, batch_decoder.max_streams(1)))
        ]
        codes = [torch.randint(0, 2048, (1, 16), device=batch_decoder.device) for _ in streams]
        ends_s = []
        while not stop.is_set():
            batch_decoder.decode(streams, codes)
            ends_s.append(time.perf_counter())
            decoding.set()
        return ends_s
    finally:
        decoding.set()
