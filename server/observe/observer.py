"""Who looks at requests: begins a timeline for each, and hands it on when it is over."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from server.observe.metrics import Metrics
from server.observe.recent import Recent
from server.observe.timeline import ENDPOINTS, TIMELINE, Timeline
from server.observe.traces import make_traces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.datastructures import Headers
    from starlette.types import Scope

    from server.observe.traces import Traces
    from server.serving.service import Service

TRACE_HEADERS = ("traceparent", "tracestate")


class Observer:
    """One server's. Raises SettingsError where traces are wanted and cannot be sent."""

    def __init__(self, service: Service, version: str) -> None:
        self.metrics = Metrics(service, version)
        self.recent = Recent()
        self.traces: Traces | None = make_traces(service.settings.otlp_endpoint, version)
        self._keeps = service.settings.debug_routes

    def begin(self, scope: Scope, request_id: str, headers: Headers) -> Timeline | None:
        """The timeline of a request that generates, also in its scope; None for others."""
        if scope["method"] != "POST" or scope["path"] not in ENDPOINTS:
            return None
        parent = {name: headers[name] for name in TRACE_HEADERS if name in headers}
        timeline = scope[TIMELINE] = Timeline(request_id, scope["path"], self._over, parent)
        if self._keeps:
            self.recent.put(timeline)
        return timeline

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send what is left of the traces at the end of the scope."""
        yield
        if self.traces is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.traces.close)

    def _over(self, timeline: Timeline) -> None:
        self.metrics.note(timeline)
        if self.traces is not None:
            self.traces.send(timeline)
