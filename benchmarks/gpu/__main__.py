"""Measures Qwen3-TTS on a GPU, over HTTP: `python -m benchmarks.gpu [--size 1.7B]`.

It writes a checkpoint of the real size with random weights and serves it. Then it asks for speeches
of about 4 s under two kinds of load: closed, in which a number of clients each send one request
after the other, and open, with Poisson arrivals. For each load it reports the time to first audio,
gaps, audio seconds per second, and underruns. For the 1.7B size on a GPU it also says which targets
are met. The tables go to `benchmarks/results/gpu.md`, all figures to `gpu.json`. `--size small
--device cpu` shows that the benchmark runs; those figures mean nothing.
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
from benchmarks.gpu.targets import result_table, row_line, verdict_table
from benchmarks.load import Client, Plan, load, poisson, together
from benchmarks.machine import describe
from benchmarks.measured import Batch, summarise
from benchmarks.processes import cpu_s, free_port, python_of, running
from tests.qwen3_tts import sizes as small
from tests.qwen3_tts.checkpoint import write_checkpoint as write_small

CLIENT_COUNTS = (1, 8, 16, 32, 64)
ARRIVALS_PER_S = (1.0, 10.0, 20.0)
SPEECHES_PER_CLIENT = 4
SAMPLE_TEXT = "the other thing in the house and here is the rest of it for now"


def request_body(number: int) -> dict[str, Any]:
    """A request for a speech of about 50 frames. Each number gives another speech."""
    begin = number % 12
    return {
        "model": "tts-1",
        "voice": "ryan",
        "input": f"{SAMPLE_TEXT[begin : begin + 48].strip()} {number}.",
        "response_format": "pcm",
        "seed": number,
    }


def measure(folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Serve the checkpoint and measure each load. Returns a row for each."""
    port = free_port()
    command = [
        *(python_of(None), "-m", "server.cli.main", "serve"),
        *("--port", str(port), "--model", str(folder)),
        *("--device", options.device, "--dtype", options.dtype, "--log-level", "warning"),
    ]
    most = max([*options.streams, 1])
    max_requests = str(max(most, round(8 * max([*options.rates, 1.0]))))
    settings = {"NANO_OMNI_MAX_RUNNING": max_requests, "NANO_OMNI_MAX_WAITING": max_requests}
    rows = []
    with running(command, port, "/health/ready", settings) as pid:
        _run_load(pid, port, together([request_body(10_000 + k) for k in range(2 * most)], most))
        for count in options.streams:
            clients = together([request_body(k) for k in range(SPEECHES_PER_CLIENT * count)], count)
            rows.append({"load": "closed", "at": count, **_run_load(pid, port, clients)})
            print(row_line(rows[-1]), flush=True)
        for rate in options.rates:
            bodies = [request_body(k) for k in range(max(1, round(rate * options.seconds)))]
            row = _run_load(pid, port, poisson(bodies, rate, seed=1))
            rows.append({"load": "open", "at": rate, **row})
            print(row_line(rows[-1]), flush=True)
    return rows


def _run_load(pid: int, port: int, clients: list[Client]) -> dict[str, Any]:
    cpu_before_s = cpu_s(pid)
    outcomes = load(Plan(port, "/v1/audio/speech", "pcm", 24_000, clients))
    return summarise([Batch(outcomes, cpu_s(pid) - cpu_before_s)])


def _gpu() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"


def main() -> None:
    """Measure, write the results, print them."""
    parser = argparse.ArgumentParser("benchmarks.gpu")
    parser.add_argument("--size", default="1.7B", choices=[*TALKERS, "small"])
    parser.add_argument(
        "--streams", nargs="*", type=int, default=CLIENT_COUNTS, help="numbers of clients"
    )
    parser.add_argument(
        "--rates", nargs="*", type=float, default=ARRIVALS_PER_S, help="arrivals per second"
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="how long requests arrive")
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
    report = f"Qwen3-TTS {options.size}, random weights, {_gpu()}\n\n{result_table(rows)}\n"
    if options.size == "1.7B" and options.device.startswith("cuda"):
        report += verdict_table(rows)
    options.output.with_suffix(".md").write_text(report)
    print(report)


if __name__ == "__main__":
    main()
