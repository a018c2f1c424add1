"""Measures CPU per audio event from a stage's output to the socket, beside sse-starlette's default.

Our server runs the fake model. Only the main thread counts: it runs server and orchestrator, while
the fake stages have threads of their own. The rival is `rivals/sse_default.py`, a FastAPI app that
yields a dict for each event. It sends the same PCM bytes in as many events under the same server.
It has no stages, so no other thread hands it data or competes for the interpreter. That favours it.
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

WORD = "hello"  # the fake voice speaks five letters in 100 ms
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
    """Measure both servers in turn, several rounds. Returns medians in microseconds."""
    found: dict[str, list[dict[str, float]]] = {DEFAULT: [], OURS: []}
    for _ in range(effort.control_rounds):
        for name, rows in found.items():
            with _serving(name) as (pid, port):
                _ask(port, 2)
                rows.append(_measure_once(pid, port, effort.control_streams))
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
    rival = ("-m", "benchmarks.rivals.sse_default", str(port), str(NUM_EVENTS), str(EVENT_BYTES))
    arguments, health = (serve, "/health/ready") if name == OURS else (rival, "/health")
    settings = {"NANO_OMNI_LOG_LEVEL": "warning"} if name == OURS else {}
    with running((python_of(None), *arguments), port, health, settings) as pid:
        yield pid, port


def _measure_once(pid: int, port: int, num_streams: int) -> dict[str, float]:
    loop_s, all_s = main_thread_cpu_s(pid), cpu_s(pid)
    count = _ask(port, num_streams)
    return {
        "loop_us": 1e6 * (main_thread_cpu_s(pid) - loop_s) / count,
        "process_us": 1e6 * (cpu_s(pid) - all_s) / count,
    }


def _ask(port: int, num_streams: int) -> int:
    """Request streams, and return the number of events. Raises RuntimeError if one is missing."""
    clients = together([BODY] * (2 * num_streams), num_streams)
    outcomes = load(Plan(port, "/v1/audio/speech", "events", 24_000, clients))
    if any(not outcome.good or outcome.num_tokens != NUM_EVENTS + 2 for outcome in outcomes):
        raise RuntimeError(f"events are missing: {[each.num_tokens for each in outcomes]}")
    return NUM_EVENTS * len(outcomes)
