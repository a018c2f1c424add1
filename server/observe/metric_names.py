"""Every metric: its name, its labels and what it means. The one place; `docs/metrics.md` is made
from it (`python -m server.document.metrics_page`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TOKEN_S = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0)
LONG_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
QUEUE_S = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
FACTORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Declared:
    """One metric. A histogram with no `buckets` gets them from whoever counts."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


def _counter(name: str, labels: str, text: str) -> Declared:
    return Declared(f"nano_omni_{name}_total", "counter", tuple(labels.split()), text)


def _gauge(name: str, labels: str, text: str) -> Declared:
    return Declared(f"nano_omni_{name}", "gauge", tuple(labels.split()), text)


def _histogram(name: str, labels: str, text: str, buckets: tuple[float, ...] = ()) -> Declared:
    return Declared(f"nano_omni_{name}", "histogram", tuple(labels.split()), text, buckets)


REQUESTS = _counter("requests", "model endpoint outcome", "Requests that are over.")
REQUEST_S = _histogram(
    "request_seconds",
    "model endpoint",
    "Time from a request's first byte to its response's last, where it ended ok.",
    LONG_S,
)
QUEUE = _histogram("queue_seconds", "model", "Time that requests waited for a place.", QUEUE_S)
FIRST_TOKEN = _histogram(
    "first_token_seconds", "model endpoint", "Time to the first text.", TOKEN_S
)
FIRST_AUDIO = _histogram(
    "first_audio_seconds", "model endpoint", "Time to the first sound.", TOKEN_S
)
REAL_TIME_FACTOR = _histogram(
    "real_time_factor",
    "model endpoint",
    "Time from having a place to the last sound, over the sound's length. A client that reads no "
    "faster than it plays holds it near 1.",
    FACTORS,
)
UNDERRUNS = _counter(
    "underruns",
    "model endpoint",
    "Times that a player which starts 100 ms after the first sound was written would have had "
    "nothing to play; streams only.",
)
UNDERRUN_S = _counter("underrun_seconds", "model endpoint", "Silence of the underruns.")
UNDERRUN_REQUESTS = _counter("underrun_requests", "model endpoint", "Requests with an underrun.")
PROMPT_TOKENS = _counter("prompt_tokens", "model", "Text tokens read, for each choice.")
CACHED_TOKENS = _counter(
    "cached_prompt_tokens", "model", "Those of them that were known from earlier requests."
)
COMPLETION_TOKENS = _counter("completion_tokens", "model", "Text tokens written.")
AUDIO_S = _counter("audio_seconds", "model", "Sound made.")

RUNNING = _gauge("requests_running", "", "Places taken: a choice takes one.")
WAITING = _gauge("requests_waiting", "", "Places waited for.")
PLACES = _gauge("requests_running_limit", "", "Places that there are.")
REFUSED = _counter("requests_refused", "", "Requests answered 429 for want of room.")
OLDEST_WAIT = _gauge("oldest_wait_seconds", "", "How long the first in line has waited.")
READY = _gauge("ready", "", "1 where every stage is up.")
BUILD = _gauge("build_info", "version", "1.")

GATE_HOLD = _histogram(
    "gate_hold_seconds",
    "model",
    "Time that the gate held the terminal: from the end of every stage that the client hears of "
    "to the end of all.",
)
DRAIN_TIMEOUTS = _counter(
    "drain_timeouts", "model", "Terminals that went out only once a silent stage was aborted."
)
DROPPED = _counter("dropped_outputs", "model stage", "Outputs that came too late.")
ABORTS = _counter("aborts", "model stage", "Times that a stage was told to stop a request.")
ABORT_S = _histogram("abort_seconds", "model stage", "Time until it said that it had.")
SILENT_ABORTS = _counter("silent_aborts", "model stage", "Aborts without an answer in time.")

STAGE_UP = _gauge("stage_up", "stage replica", "1 where the worker runs.")
RESTARTS = _counter("stage_restarts", "stage replica", "Times that it was started again.")
OPEN = _gauge("stage_open_requests", "stage replica", "Requests submitted that are not over.")
QUEUE_DEPTH = _gauge("stage_queue_depth", "stage replica", "Of these, those that it has not begun.")
BATCH_SIZE = _histogram("stage_batch_size", "stage replica", "Requests that a step advanced.")
STEP_S = _histogram("stage_step_seconds", "stage replica", "Time of a step.")

DECLARED = tuple(value for value in list(globals().values()) if isinstance(value, Declared))
