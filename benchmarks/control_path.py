"""CPU per audio event from a stage's output to the socket, beside sse-starlette's default path.

Ours serves the fake model: what counts is the first thread, which runs server and orchestrator;
the fake stages compute in threads of their own. The other is `rivals/sse_default.py`, a FastAPI app
that yields a dict for each event: the same bytes of PCM, as many events, the same server under it.
It has no stages at all, so no thread hands it anything or wants the interpreter: that favours it.
"""

from __future__ import annotations

from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.load import Plan, load, together
from benchmarks.processes import (
    cpu_s,
    free_port,
    main_thread_cpu_s,
    python_of,
    running,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.effort import Effort

WORD = "hello"  # five letters are 100 ms in the fake voice
EVENT_BYTES = 4_800
NUM_EVENTS = 680
BODY = {
    "model": "tts-1",
    "voice": "fake-low",
    "input": " ".join([WORD] * NUM_EVENTS),
    "response_format": "pcm",
    "stream_format": "sse",
}
OURS = "nano-omni"
DEFAULT = "sse-starlette default"


def measure_control_path(effort: Effort) -> dict[str, Any]:
    """Both in turn, some times over; medians in microseconds."""
    found: dict[str, list[dict[str, float]]] = {DEFAULT: [], OURS: []}
    for _ in range(effort.control_rounds):
        for name, rows in found.items():
            with _serving(name) as (pid, port):
                _ask(port, 2)
                rows.append(_one(pid, port, effort.control_streams))
    rows = {
        name: {part: median(row[part] for row in rows) for part in rows[0]}
        for name, rows in found.items()
    }
    print(f"control path, us per event: {rows}")
    return {"event_bytes": EVENT_BYTES, "events": NUM_EVENTS, **rows}


@contextmanager
def _serving(name: str) -> Iterator[tuple[int, int]]:
    port = free_port()
    serve = ("-m", "server.cli.main", "serve", "--port", str(port), "--model", "fake")
    sized = ("-m", "benchmarks.rivals.sse_default", str(port), str(NUM_EVENTS), str(EVENT_BYTES))
    words, health = (serve, "/health/ready") if name == OURS else (sized, "/health")
    quiet = {"NANO_OMNI_LOG_LEVEL": "warning"} if name == OURS else {}
    with running((python_of(None), *words), port, health, quiet) as pid:
        yield pid, port


def _one(pid: int, port: int, num_streams: int) -> dict[str, float]:
    loop_s, all_s = main_thread_cpu_s(pid), cpu_s(pid)
    count = _ask(port, num_streams)
    return {
        "loop_us": 1e6 * (main_thread_cpu_s(pid) - loop_s) / count,
        "process_us": 1e6 * (cpu_s(pid) - all_s) / count,
    }


def _ask(port: int, num_streams: int) -> int:
    """How many events came. RuntimeError where they are not all there."""
    clients = together([BODY] * (2 * num_streams), num_streams)
    outcomes = load(Plan(port, "/v1/audio/speech", "events", 24_000, clients))
    if any(not outcome.good or outcome.num_tokens != NUM_EVENTS + 2 for outcome in outcomes):
        raise RuntimeError(f"events are missing: {[each.num_tokens for each in outcomes]}")
    return NUM_EVENTS * len(outcomes)
