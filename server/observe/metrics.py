"""The metrics of one server, in a registry of its own.

What happens once for each request is counted when the request has ended (`count`). Counters that
exist elsewhere are read when somebody asks for metrics (`collector.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

from server.observe import metric_names as specs
from server.observe.collector import ServiceCollector

if TYPE_CHECKING:
    from server.observe.metric_names import MetricSpec
    from server.observe.timeline import Timeline
    from server.serving.service import Service


class Metrics:
    """The counters and histograms of one server, and the collector of all others."""

    def __init__(self, service: Service, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the number of series
        self.registry = CollectorRegistry()
        self._requests = self._counter(specs.REQUESTS)
        self._request_s = self._histogram(specs.REQUEST_S)
        self._queue_s = self._histogram(specs.QUEUE)
        self._first_token_s = self._histogram(specs.FIRST_TOKEN)
        self._first_audio_s = self._histogram(specs.FIRST_AUDIO)
        self._real_time_factor = self._histogram(specs.REAL_TIME_FACTOR)
        self._underruns = self._counter(specs.UNDERRUNS)
        self._underrun_s = self._counter(specs.UNDERRUN_S)
        self._underrun_requests = self._counter(specs.UNDERRUN_REQUESTS)
        self._prompt_tokens = self._counter(specs.PROMPT_TOKENS)
        self._cached_tokens = self._counter(specs.CACHED_TOKENS)
        self._completion_tokens = self._counter(specs.COMPLETION_TOKENS)
        self._audio_s = self._counter(specs.AUDIO_S)
        self.registry.register(ServiceCollector(service, version))
        ProcessCollector(registry=self.registry)

    def exposed(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that `accept` asks for, and its media type."""
        encoder, media_type = choose_encoder(accept)
        return encoder(self.registry), media_type

    def count(self, timeline: Timeline) -> None:
        """Count a request that has ended."""
        model, endpoint = timeline.model, timeline.endpoint
        self._requests.labels(model, endpoint, timeline.outcome).inc()
        if timeline.outcome == "ok":
            _observe(
                self._request_s.labels(model, endpoint), timeline.received_at, timeline.ended_at
            )
        if timeline.admitted_at is not None:
            _observe(self._queue_s.labels(model), timeline.queued_at, timeline.admitted_at)
            self._count_text(timeline)
        if timeline.audio_s:
            self._count_audio(timeline)

    def _count_text(self, timeline: Timeline) -> None:
        if timeline.first_token_at is not None:
            first = self._first_token_s.labels(timeline.model, timeline.endpoint)
            _observe(first, timeline.received_at, timeline.first_token_at)
            self._prompt_tokens.labels(timeline.model).inc(timeline.prompt_tokens)
            self._cached_tokens.labels(timeline.model).inc(timeline.cached_tokens)
            self._completion_tokens.labels(timeline.model).inc(timeline.completion_tokens)

    def _count_audio(self, timeline: Timeline) -> None:
        labels = timeline.model, timeline.endpoint
        _observe(self._first_audio_s.labels(*labels), timeline.received_at, timeline.first_audio_at)
        assert timeline.admitted_at is not None
        assert timeline.last_audio_at is not None
        factor = (timeline.last_audio_at - timeline.admitted_at) / timeline.audio_s
        self._real_time_factor.labels(*labels).observe(factor)
        self._audio_s.labels(timeline.model).inc(timeline.audio_s)
        self._underruns.labels(*labels).inc(timeline.num_underruns)
        self._underrun_s.labels(*labels).inc(timeline.silent_s)
        self._underrun_requests.labels(*labels).inc(timeline.num_underruns > 0)

    def _counter(self, of: MetricSpec) -> Counter:
        return Counter(of.name, of.help, of.labels, registry=self.registry)

    def _histogram(self, of: MetricSpec) -> Histogram:
        return Histogram(of.name, of.help, of.labels, registry=self.registry, buckets=of.buckets)


def _observe(histogram: Histogram, since: float | None, until: float | None) -> None:
    if since is not None and until is not None:
        histogram.observe(until - since)
