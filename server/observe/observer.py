"""Starts the timeline of each request, and passes complete ones on to metrics and traces."""

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
    """Observes the requests of one server.

    Raises SettingsError if `otlp_endpoint` is set and the packages for traces are not installed.
    """

    def __init__(self, service: Service, version: str) -> None:
        self.metrics = Metrics(service, version)
        self.recent = Recent()
        self.traces: Traces | None = make_traces(service.settings.otlp_endpoint, version)
        self._keeps_recent = service.settings.debug_routes

    def start(self, scope: Scope, request_id: str, headers: Headers) -> Timeline | None:
        """Start the timeline of a request to one of `ENDPOINTS`, and put it into its scope.

        Returns None for all other requests.
        """
        if scope["method"] != "POST" or scope["path"] not in ENDPOINTS:
            return None
        parent = {name: headers[name] for name in TRACE_HEADERS if name in headers}
        timeline = scope[TIMELINE] = Timeline(request_id, scope["path"], self._report, parent)
        if self._keeps_recent:
            self.recent.put(timeline)
        return timeline

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """At the end of the scope, send the traces that are still queued."""
        yield
        if self.traces is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.traces.close)

    def _report(self, timeline: Timeline) -> None:
        self.metrics.count(timeline)
        if self.traces is not None:
            self.traces.send(timeline)
