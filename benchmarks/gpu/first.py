"""What to run first on a GPU: `python benchmarks/gpu/first.py [--out FOLDER]`, about 4 minutes.

It measures the parts of Qwen3-TTS 1.7B with random weights, the most valuable facts first. It needs
no server and no checkpoint: only torch, numpy, safetensors, tokenizers, structlog and pytest. Each
part stands alone: if one fails, its traceback is printed and the next one runs. Each fact is
printed and written to FOLDER/facts.json as soon as it is known. The exit code is 1 if a part
failed. `--tiny --device cpu` shows that the script runs; those figures mean nothing.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
import time
import traceback
from pathlib import Path

# Run as a file, Python looks for modules in this folder only, not in the repository's root.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from benchmarks.gpu.first_run import Run
from stages.contract.errors import StartError
from stages.kernels.device import enter_stream, pick_device

# Each is `measure` in the module `first_NAME`, imported when its turn comes.
PARTS = ("machine", "small_stages", "gpu_tests", "talker", "codec", "together")


def measure(name: str, run: Run) -> bool:
    """Run one part. Returns whether it ended well."""
    gc.collect()  # a graph that is freed during another's capture would break that capture
    try:
        importlib.import_module(f"benchmarks.gpu.first_{name}").measure(run)
    except Exception:  # noqa: BLE001 - the next part may still have something to tell
        traceback.print_exc()
        run.record(name, "FAILED: " + traceback.format_exc(limit=-2)[-400:])
        return False
    return True


def new_run(options: argparse.Namespace) -> Run:
    """What all parts share. Raises StartError if torch does not find the device."""
    device = pick_device(options.device)
    enter_stream(device)
    if device.type == "cpu":
        torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    return Run(device, options.tiny, options.out)


def main() -> int:
    """Measure the chosen parts. Returns the exit code."""
    parser = argparse.ArgumentParser("benchmarks.gpu.first")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for facts.json")
    parser.add_argument("--tiny", action="store_true", help="a small talker, few repetitions")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", nargs="*", choices=PARTS, help="which parts to run")
    options = parser.parse_args()
    try:
        run = new_run(options)
    except StartError as error:
        parser.error(str(error))
    begin_s = time.perf_counter()
    chosen = [name for name in PARTS if not options.only or name in options.only]
    failed = [name for name in chosen if not measure(name, run)]
    run.record("failed parts", failed)
    run.record("seconds", round(time.perf_counter() - begin_s, 1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
