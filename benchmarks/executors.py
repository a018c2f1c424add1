"""Compares the executors thread and process: first audio, throughput, chat, memory and idle cost.

`python -m benchmarks.executors` starts the embedded server with each executor in turn, several
rounds, and prints medians. Only ratios within one run are meaningful.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from tests.chaos.client import post
from tests.chaos.process import children, holding, port_of

RESULTS = Path(__file__).parent / "results"
ROUNDS = 3
TEXT = (
    "The quick brown fox jumps over the lazy dog, and nobody in the garden minds at all. "
    "Later that evening the rain came down hard on the old tin roof, and we all listened to it, "
    "happily enough."
)
BYTES_PER_S = 48_000


def speech_body():
    return {"model": "tts-1", "voice": "alloy", "input": TEXT, "response_format": "pcm"}


def chat_body(voice):
    spoken = {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "pcm16"}}
    return {
        "model": "smollm2-joe",
        "messages": [{"role": "user", "content": "Tell me a long story about the sea."}],
        "max_tokens": 100,
        "seed": 1,
        "stream": True,
        **(spoken if voice else {}),
    }


async def speak(port):
    """Time to first audio and total time in seconds, and seconds of audio."""
    began = time.perf_counter()
    first = []
    answer = await post(
        port, "/v1/audio/speech", speech_body(), on_chunk=lambda: first.append(time.perf_counter())
    )
    assert answer.clean
    return first[0] - began, time.perf_counter() - began, len(answer.body) / BYTES_PER_S


async def chat(port, voice):
    """The time in seconds for a reply of 100 tokens."""
    began = time.perf_counter()
    answer = await post(port, "/v1/chat/completions", chat_body(voice))
    assert answer.ending == "done", answer.ending
    return time.perf_counter() - began


async def measure(port):
    """Measure one server."""
    await speak(port)
    await chat(port, True)
    alone = [await speak(port) for _ in range(7)]
    began = time.perf_counter()
    eight = await asyncio.gather(*(speak(port) for _ in range(8)))  # noqa: TID251
    took = time.perf_counter() - began
    return {
        "first_audio_ms": 1000 * statistics.median(a[0] for a in alone),
        "whole_ms": 1000 * statistics.median(a[1] for a in alone),
        "eight_first_audio_ms": 1000 * statistics.median(a[0] for a in eight),
        "eight_first_audio_max_ms": 1000 * max(a[0] for a in eight),
        "eight_audio_s_per_s": sum(a[2] for a in eight) / took,
        "chat_tokens_per_s": 100 / statistics.median([await chat(port, False) for _ in range(3)]),
        "voice_chat_s": statistics.median([await chat(port, True) for _ in range(3)]),
    }


def cpu_s(pid):
    """CPU seconds that a process and all processes below it have used."""
    total = 0
    for each in (pid, *children(pid)):
        fields = Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / 100


def run_round(executor):
    """Start a server with an executor, measure it, and stop it."""
    command = [sys.executable, "-m", "server.cli.main", "serve", "--port", "0"]
    process = subprocess.Popen([*command, "--executor", executor], stdout=subprocess.PIPE)
    try:
        began = time.perf_counter()
        port = port_of(process.stdout.readline())
        figures = {"start_s": time.perf_counter() - began}
        figures |= asyncio.run(measure(port))
        figures["memory_mb"] = holding(process.pid).memory_mb
        used = cpu_s(process.pid)
        time.sleep(10)  # noqa: TID251 - idle is what is measured
        figures["idle_cpu_percent"] = 10 * (cpu_s(process.pid) - used)
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
    return figures


def main():
    values_of = defaultdict(lambda: defaultdict(list))
    for _ in range(ROUNDS):
        for executor in ("thread", "process"):
            for name, value in run_round(executor).items():
                values_of[name][executor].append(value)
    rows = {
        name: {executor: statistics.median(values) for executor, values in both.items()}
        for name, both in values_of.items()
    }
    for name, row in rows.items():
        print(f"{name:26} thread {row['thread']:8.2f}   process {row['process']:8.2f}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "executors.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
