"""Qwen3-TTS on a GPU, over HTTP: `python -m benchmarks.gpu [--size 1.7B]`.

Writes a checkpoint of the real size with random weights, serves it, and asks for speeches of about
4 s: so many at once, each client one after the other, and arrivals by chance (Poisson). For each
load: first audio, gaps, audio seconds per second, and who ran dry. Prints a table of them, and of
the 1.7B size on a GPU which aims are met or missed; keeps both in `benchmarks/results/gpu.md`, and
all in `gpu.json`. With `--size small --device cpu` it proves itself on a machine without a GPU, and
no figure of that counts.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.compare import RESULTS
from benchmarks.gpu.checkpoint import write_checkpoint
from benchmarks.gpu.sizes import TALKERS
from benchmarks.gpu.targets import judged, line, measured
from benchmarks.load import Client, Plan, load, poisson, together
from benchmarks.machine import describe
from benchmarks.measured import Batch, summarise
from benchmarks.processes import cpu_s, free_port, python_of, running
from tests.qwen3_tts import sizes as small
from tests.qwen3_tts.checkpoint import write_checkpoint as write_small

STREAMS = (1, 8, 16, 32, 64)
RATES = (1.0, 10.0, 20.0)
EACH = 4  # speeches of each client
LETTERS = "the other thing in the house and here is the rest of it for now"


def body(number: int) -> dict[str, Any]:
    """A speech of about 50 frames; no two are the same."""
    begin = number % 12
    return {
        "model": "tts-1",
        "voice": "ryan",
        "input": f"{LETTERS[begin : begin + 48].strip()} {number}.",
        "response_format": "pcm",
        "seed": number,
    }


def measure(folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each load."""
    port = free_port()
    command = [
        *(
            python_of(None),
            "-m",
            "server.cli.main",
            "serve",
            "--port",
            str(port),
            "--model",
            str(folder),
        ),
        *("--device", options.device, "--dtype", options.dtype, "--log-level", "warning"),
    ]
    most = max([*options.streams, 1])
    room = str(max(most, round(8 * max([*options.rates, 1.0]))))
    settings = {"NANO_OMNI_MAX_RUNNING": room, "NANO_OMNI_MAX_WAITING": room}
    rows = []
    with running(command, port, "/health/ready", settings) as pid:
        _ask(pid, port, together([body(10_000 + k) for k in range(2 * most)], most))
        for count in options.streams:
            clients = together([body(k) for k in range(EACH * count)], count)
            rows.append({"load": "closed", "at": count, **_ask(pid, port, clients)})
            print(line(rows[-1]), flush=True)
        for rate in options.rates:
            bodies = [body(k) for k in range(max(1, round(rate * options.seconds)))]
            row = _ask(pid, port, poisson(bodies, rate, seed=1))
            rows.append({"load": "open", "at": rate, **row})
            print(line(rows[-1]), flush=True)
    return rows


def _ask(pid: int, port: int, clients: list[Client]) -> dict[str, Any]:
    began_s = cpu_s(pid)
    outcomes = load(Plan(port, "/v1/audio/speech", "pcm", 24_000, clients))
    return summarise([Batch(outcomes, cpu_s(pid) - began_s)])


def _gpu() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"


def main() -> None:
    """Measure, keep, print."""
    parser = argparse.ArgumentParser("benchmarks.gpu")
    parser.add_argument("--size", default="1.7B", choices=[*TALKERS, "small"])
    parser.add_argument("--streams", nargs="*", type=int, default=STREAMS, help="at once")
    parser.add_argument("--rates", nargs="*", type=float, default=RATES, help="arrivals per second")
    parser.add_argument("--seconds", type=float, default=30.0, help="of arrivals")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--output", type=Path, default=RESULTS.with_name("gpu.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "checkpoint"
        print(f"writing random weights, {options.size}", flush=True)
        if options.size == "small":
            write_small(folder, "custom_voice", small.SAMPLED, ends_with_text=True)
        else:
            write_checkpoint(folder, options.size)
        rows = measure(folder, options)
    results = {"machine": describe(), "gpu": _gpu(), "size": options.size, "rows": rows}
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    told = f"Qwen3-TTS {options.size}, random weights, {_gpu()}\n\n{measured(rows)}\n"
    if options.size == "1.7B" and options.device.startswith("cuda"):
        told += judged(rows)
    options.output.with_suffix(".md").write_text(told)
    print(told)


if __name__ == "__main__":
    main()
