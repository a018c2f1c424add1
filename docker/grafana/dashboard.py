"""Writes the dashboard: `python docker/grafana/dashboard.py > docker/grafana/nano-omni.json`.

A panel is a title, a unit and its queries; where it stands follows from its place in `ROWS`.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = {"type": "prometheus", "uid": "prometheus"}
WIDTH, HEIGHT = 24, 7
CHOSEN = '{model=~"$model"}'


def rate(metric: str, by: str = "", labels: str = CHOSEN) -> str:
    """Per second."""
    return f"sum by ({by}) (rate(nano_omni_{metric}{labels}[$__rate_interval]))"


def quantile(share: float, metric: str, by: str = "", labels: str = CHOSEN) -> str:
    """Of a histogram."""
    buckets = rate(f"{metric}_bucket", f"{by}, le" if by else "le", labels)
    return f"histogram_quantile({share}, {buckets})"


def spread(metric: str, labels: str = CHOSEN) -> dict[str, str]:
    """The median, 95% and 99% of a histogram."""
    shares = {"median": 0.5, "95%": 0.95, "99%": 0.99}
    return {name: quantile(share, metric, labels=labels) for name, share in shares.items()}


def mean(metric: str, by: str, labels: str = CHOSEN) -> str:
    """Of a histogram."""
    return f"{rate(f'{metric}_sum', by, labels)} / {rate(f'{metric}_count', by, labels)}"


Panel = tuple[str, str, dict[str, str]]
ROWS: dict[str, list[Panel]] = {
    "Requests": [
        ("Requests by outcome", "reqps", {"{{outcome}}": rate("requests_total", "outcome")}),
        (
            "Running and waiting",
            "short",
            {"running": "nano_omni_requests_running", "waiting": "nano_omni_requests_waiting"},
        ),
        (
            "Refused (429)",
            "reqps",
            {"refused": rate("requests_refused_total", labels="")},
        ),
        ("Time in the queue", "s", spread("queue_seconds")),
    ],
    "What listeners hear": [
        ("Time to first sound", "s", spread("first_audio_seconds")),
        ("Time to first text", "s", spread("first_token_seconds")),
        ("Time to sound, over its length", "short", spread("real_time_factor")),
        (
            "Streams that ran dry",
            "percentunit",
            {
                "{{model}}": f"{rate('underrun_requests_total', 'model')}"
                f" / {rate('first_audio_seconds_count', 'model')}"
            },
        ),
    ],
    "Work": [
        (
            "Sound made, seconds a second",
            "short",
            {"{{model}}": rate("audio_seconds_total", "model")},
        ),
        ("Tokens written", "short", {"{{model}}": rate("completion_tokens_total", "model")}),
        ("Whole request", "s", spread("request_seconds")),
    ],
    "Stages": [
        ("Time of a step", "s", {"{{stage}}": mean("stage_step_seconds", "stage", "")}),
        ("Requests in a step", "short", {"{{stage}}": mean("stage_batch_size", "stage", "")}),
        (
            "Requests not begun",
            "short",
            {"{{stage}}": "sum by (stage) (nano_omni_stage_queue_depth)"},
        ),
        (
            "Restarts",
            "short",
            {"{{stage}} {{replica}}": "increase(nano_omni_stage_restarts_total[$__range])"},
        ),
    ],
    "The gate": [
        ("Held from all-final to all-done", "s", spread("gate_hold_seconds")),
        (
            "Until an abort is acknowledged",
            "s",
            {"{{stage}}": quantile(0.95, "abort_seconds", "stage")},
        ),
        (
            "What should not be",
            "short",
            {
                "late outputs dropped": rate("dropped_outputs_total"),
                "aborts not acknowledged": rate("silent_aborts_total"),
                "terminals by drain time": rate("drain_timeouts_total"),
            },
        ),
        (
            "Memory of the server",
            "bytes",
            {"resident": "process_resident_memory_bytes"},
        ),
    ],
}


def panels() -> Iterator[dict[str, Any]]:
    """All panels, row by row."""
    top = 0
    for title, row in ROWS.items():
        yield {"type": "row", "title": title, "gridPos": place(0, top, WIDTH, 1), "panels": []}
        width = WIDTH // len(row)
        for column, (name, unit, queries) in enumerate(row):
            yield {
                "type": "timeseries",
                "title": name,
                "datasource": SOURCE,
                "gridPos": place(column * width, top + 1, width, HEIGHT),
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "options": {"tooltip": {"mode": "multi"}},
                "targets": [
                    {
                        "refId": chr(65 + k),
                        "datasource": SOURCE,
                        "expr": query,
                        "legendFormat": legend,
                    }
                    for k, (legend, query) in enumerate(queries.items())
                ],
            }
        top += 1 + HEIGHT


def place(x: int, y: int, w: int, h: int) -> dict[str, int]:
    """Where a panel stands."""
    return {"x": x, "y": y, "w": w, "h": h}


def dashboard() -> dict[str, Any]:
    """All of it."""
    variable = {
        "name": "model",
        "type": "query",
        "datasource": SOURCE,
        "query": "label_values(nano_omni_requests_total, model)",
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "refresh": 2,
    }
    return {
        "uid": "nano-omni",
        "title": "nano-vllm-omni",
        "schemaVersion": 41,
        "time": {"from": "now-15m", "to": "now"},
        "refresh": "5s",
        "templating": {"list": [variable]},
        "panels": [{"id": k, **panel} for k, panel in enumerate(panels(), 1)],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(dashboard(), indent=1) + "\n")
