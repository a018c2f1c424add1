"""Generates the dashboard: `python docker/grafana/dashboard.py > docker/grafana/nano-omni.json`.

A panel is a title, a unit and its queries. Its position on the dashboard follows from `ROWS`.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = {"type": "prometheus", "uid": "prometheus"}
ROW_WIDTH, PANEL_HEIGHT = 24, 7  # in Grafana's grid units
SELECTED_MODELS = '{model=~"$model"}'


def rate(metric: str, by: str = "", labels: str = SELECTED_MODELS) -> str:
    """A query for the rate of a counter per second, summed by labels."""
    return f"sum by ({by}) (rate(nano_omni_{metric}{labels}[$__rate_interval]))"


def quantile(share: float, metric: str, by: str = "", labels: str = SELECTED_MODELS) -> str:
    """A query for a quantile of a histogram."""
    buckets = rate(f"{metric}_bucket", f"{by}, le" if by else "le", labels)
    return f"histogram_quantile({share}, {buckets})"


def spread(metric: str, labels: str = SELECTED_MODELS) -> dict[str, str]:
    """Queries for the median and the 95% and 99% quantiles of a histogram, by legend."""
    shares = {"median": 0.5, "95%": 0.95, "99%": 0.99}
    return {name: quantile(share, metric, labels=labels) for name, share in shares.items()}


def mean(metric: str, by: str, labels: str = SELECTED_MODELS) -> str:
    """A query for the mean of a histogram."""
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
        ("Real-time factor", "short", spread("real_time_factor")),
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
            "Audio generated, seconds per second",
            "short",
            {"{{model}}": rate("audio_seconds_total", "model")},
        ),
        ("Tokens per second", "short", {"{{model}}": rate("completion_tokens_total", "model")}),
        ("Duration of requests", "s", spread("request_seconds")),
    ],
    "Stages": [
        ("Duration of a step", "s", {"{{stage}}": mean("stage_step_seconds", "stage", "")}),
        ("Requests in a step", "short", {"{{stage}}": mean("stage_batch_size", "stage", "")}),
        (
            "Requests not started",
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
        ("Time that the final event was held", "s", spread("gate_hold_seconds")),
        (
            "Time to acknowledge an abort",
            "s",
            {"{{stage}}": quantile(0.95, "abort_seconds", "stage")},
        ),
        (
            "Should stay at zero",
            "short",
            {
                "late outputs dropped": rate("dropped_outputs_total"),
                "aborts not acknowledged": rate("silent_aborts_total"),
                "final events sent after the drain time": rate("drain_timeouts_total"),
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
    """All panels, row by row, as Grafana's JSON values."""
    top = 0
    for title, row in ROWS.items():
        yield {
            "type": "row",
            "title": title,
            "gridPos": position(0, top, ROW_WIDTH, 1),
            "panels": [],
        }
        width = ROW_WIDTH // len(row)
        for column, (name, unit, queries) in enumerate(row):
            yield {
                "type": "timeseries",
                "title": name,
                "datasource": SOURCE,
                "gridPos": position(column * width, top + 1, width, PANEL_HEIGHT),
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
        top += 1 + PANEL_HEIGHT


def position(x: int, y: int, w: int, h: int) -> dict[str, int]:
    """The position and size of a panel."""
    return {"x": x, "y": y, "w": w, "h": h}


def dashboard() -> dict[str, Any]:
    """The whole dashboard as JSON values."""
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
