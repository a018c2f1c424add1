"""The table of metrics: `python -m server.document.metrics_page > docs/metrics.md`.

With `--check` it writes nothing, and fails if the stored table is another one.
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

`GET /metrics` gives them in Prometheus' text format, or as OpenMetrics where that is asked for. It
needs no key: it tells how much is done and how fast, and nothing of what is said. Where that is too
much, keep the path from the world. Made by
`python -m server.document.metrics_page > docs/metrics.md`.

The values of labels are few and fixed:

- `model`: the id of a model that is served, or `{UNKNOWN}`, where the body was refused
  or names none that is
- `endpoint`: {", ".join(f"`{endpoint}`" for endpoint in ENDPOINTS)}
- `outcome`: {", ".join(f"`{outcome}`" for outcome in get_args(Outcome))}; `left` is the client,
  `stalled` its reader
- `stage`: the name of a stage; `replica`: which of its workers, from 0

On top come the `process_*` of prometheus-client, about the server's own process. What workers tell
of their steps comes with their reports, up to 100 ms late. Where servers share workers, each tells
of its own requests, and a step is counted by one server (whose request it advanced first): sums
over servers are of all. `nano_omni_stage_up` and the restarts are as each server sees them.

| name | type | labels | meaning |
|---|---|---|---|
"""


def text() -> str:
    """The document as it is stored."""
    rows = (f"| `{of.name}` | {of.kind} | {', '.join(of.labels)} | {of.help} |" for of in DECLARED)
    return HEAD + "\n".join(rows) + "\n"


def main() -> int:
    """Write the table, or check it; the exit status."""
    return write_or_check(text(), STORED, "server.document.metrics_page")


if __name__ == "__main__":
    sys.exit(main())
