"""Generates the page on metrics: `python -m server.document.metrics_page > docs/metrics.md`.

With `--check` it writes nothing, and fails if the stored page is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

from server.document.generated_file import write_or_check
from server.observe.metric_names import DECLARED
from server.observe.timeline import ENDPOINTS, UNKNOWN, Outcome

STORED = Path(__file__).parent.parent.parent / "docs" / "metrics.md"
HEAD = f"""# Metrics

`GET /metrics` returns all metrics in Prometheus' text format, or as OpenMetrics if the client asks
for it. It needs no API key: it shows how much the server does and how fast, but no texts or audio.
If that is too much to publish, block the path in your proxy.

This page is generated: `python -m server.document.metrics_page > docs/metrics.md`.

Labels have a small, fixed set of values:

- `model`: the id of a served model, or `{UNKNOWN}` if the request body was refused or names a model
  that is not served
- `endpoint`: {", ".join(f"`{endpoint}`" for endpoint in ENDPOINTS)}
- `outcome`: {", ".join(f"`{outcome}`" for outcome in get_args(Outcome))}. `left`: the client
  disconnected; `stalled`: the client stopped reading
- `stage`: the name of a stage; `replica`: the number of its worker, from 0

The `process_*` metrics of prometheus-client describe the server's own process.

Workers report their steps up to 100 ms late. If several servers share workers, each server counts
its own requests. A step is counted once, by the server whose request it advanced first. So sums
over all servers are correct. `nano_omni_stage_up` and the restarts are as each server sees them.

| name | type | labels | meaning |
|---|---|---|---|
"""


def text() -> str:
    """The text of the page."""
    rows = (
        f"| `{metric.name}` | {metric.kind} | {', '.join(metric.labels)} | {metric.help} |"
        for metric in DECLARED
    )
    return HEAD + "\n".join(rows) + "\n"


def main() -> int:
    """Write the page, or check it. Return the exit status."""
    return write_or_check(text(), STORED, "server.document.metrics_page")


if __name__ == "__main__":
    sys.exit(main())
