"""Every metric: its name, its labels and its help text. Metrics are declared nowhere else.

`docs/metrics.md` is generated from this file (`python -m server.document.metrics_page`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TOKEN_S = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0)
LONG_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
QUEUE_S = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
FACTORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric. A histogram without `buckets` takes those of the counter that it is read from."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


def _counter(name: str, labels: str, text: str) -> MetricSpec:
    return MetricSpec(f"nano_omni_{name}_total", "counter", tuple(labels.split()), text)


def _gauge(name: str, labels: str, text: str) -> MetricSpec:
    return MetricSpec(f"nano_omni_{name}", "gauge", tuple(labels.split()), text)


def _histogram(name: str, labels: str, text: str, buckets: tuple[float, ...] = ()) -> MetricSpec:
    return MetricSpec(f"nano_omni_{name}", "histogram", tuple(labels.split()), text, buckets)


REQUESTS = _counter("requests", "model endpoint outcome", "Requests that have ended.")
REQUEST_S = _histogram(
    "request_seconds",
    "model endpoint",
    "Time from a request's first byte to its response's last. Only outcome `ok`.",
    LONG_S,
)
QUEUE = _histogram("queue_seconds", "model", "Time that requests waited for a free place.", QUEUE_S)
FIRST_TOKEN = _histogram(
    "first_token_seconds", "model endpoint", "Time from the request to the first text.", TOKEN_S
)
FIRST_AUDIO = _histogram(
    "first_audio_seconds", "model endpoint", "Time from the request to the first audio.", TOKEN_S
)
REAL_TIME_FACTOR = _histogram(
    "real_time_factor",
    "model endpoint",
    "Time from admission to the last audio, divided by the length of the audio. A client that "
    "reads only as fast as it plays keeps it near 1.",
    FACTORS,
)
UNDERRUNS = _counter(
    "underruns",
    "model endpoint",
    "How often a player with a jitter buffer of 100 ms would have run dry. Only streams.",
)
UNDERRUN_S = _counter("underrun_seconds", "model endpoint", "Total silence of these underruns.")
UNDERRUN_REQUESTS = _counter("underrun_requests", "model endpoint", "Requests with an underrun.")
PROMPT_TOKENS = _counter(
    "prompt_tokens", "model", "Text tokens of prompts, counted for each choice."
)
CACHED_TOKENS = _counter(
    "cached_prompt_tokens", "model", "Prompt tokens found in the prefix cache."
)
COMPLETION_TOKENS = _counter("completion_tokens", "model", "Text tokens generated.")
AUDIO_S = _counter("audio_seconds", "model", "Audio generated.")

RUNNING = _gauge("requests_running", "", "Places in use. Each choice of a request takes one.")
WAITING = _gauge("requests_waiting", "", "Places that waiting requests need.")
PLACES = _gauge("requests_running_limit", "", "Places in total (`max_running`).")
REFUSED = _counter("requests_refused", "", "Requests answered with 429, because no place was free.")
OLDEST_WAIT = _gauge("oldest_wait_seconds", "", "How long the oldest waiting request has waited.")
READY = _gauge("ready", "", "1 if every stage is up, else 0.")
BUILD = _gauge("build_info", "version", "Always 1. The label has the version.")

GATE_HOLD = _histogram(
    "gate_hold_seconds",
    "model",
    "How long the gate held the last output: from the moment when all final stages had finished "
    "until all stages had.",
)
DRAIN_TIMEOUTS = _counter(
    "drain_timeouts", "model", "Last outputs that were sent only after a silent stage was aborted."
)
DROPPED = _counter(
    "dropped_outputs", "model stage", "Outputs that arrived after their request had ended."
)
ABORTS = _counter("aborts", "model stage", "Requests that a stage was told to abort.")
ABORT_S = _histogram("abort_seconds", "model stage", "Time until the stage acknowledged the abort.")
SILENT_ABORTS = _counter(
    "silent_aborts", "model stage", "Aborts that the stage did not acknowledge in time."
)

STAGE_UP = _gauge("stage_up", "stage replica", "1 if the worker runs, else 0.")
RESTARTS = _counter("stage_restarts", "stage replica", "How often the worker was started again.")
OPEN = _gauge(
    "stage_open_requests", "stage replica", "Requests that were submitted and have not ended."
)
QUEUE_DEPTH = _gauge(
    "stage_queue_depth", "stage replica", "Open requests that the worker has not begun."
)
BATCH_SIZE = _histogram("stage_batch_size", "stage replica", "Requests that one step advanced.")
STEP_S = _histogram("stage_step_seconds", "stage replica", "Time of one step.")

DECLARED = tuple(value for value in list(globals().values()) if isinstance(value, MetricSpec))
