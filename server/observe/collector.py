"""Metrics of counters that exist anyway: in the admission, the orchestrators and the workers.

They are read when somebody asks for metrics, so that a request costs the same without a scraper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from server.observe import metric_names as specs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric

    from server.observe.metric_names import MetricSpec
    from server.serving.served import ServedWorker
    from server.serving.service import Service
    from stages.contract.histogram import HistogramCounts

    Rows = Iterable[tuple[tuple[str, ...], float]]
    CountRows = Iterable[tuple[tuple[str, ...], HistogramCounts]]

FamilyT = TypeVar("FamilyT", CounterMetricFamily, GaugeMetricFamily)


class ServiceCollector(Collector):
    """Collects from one service. Stages appear once they are deployed."""

    def __init__(self, service: Service, version: str) -> None:
        self._service = service
        self._version = version

    def describe(self) -> Iterable[Metric]:
        """Nothing: `metric_names` has each name once, so the registry need not check for it."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Read all counters now."""
        yield from self._service_wide()
        yield from self._gates()
        yield from self._late_and_aborted()
        yield from self._workers()

    def _service_wide(self) -> Iterator[Metric]:
        stats = self._service.admission.stats()
        yield _gauge(specs.RUNNING, [((), stats.num_running)])
        yield _gauge(specs.WAITING, [((), stats.num_waiting)])
        yield _gauge(specs.PLACES, [((), self._service.admission.max_running)])
        yield _counter(specs.REFUSED, [((), stats.num_refused)])
        yield _gauge(specs.OLDEST_WAIT, [((), stats.oldest_wait_s)])
        yield _gauge(specs.READY, [((), self._service.ready)])
        yield _gauge(specs.BUILD, [((self._version,), 1)])

    def _gates(self) -> Iterator[Metric]:
        of_models = [(one.pipeline.model_id, one.stats) for one in self._service.running_models]
        holds = [((model,), stats.hold_s.counts) for model, stats in of_models]
        yield _histogram(specs.GATE_HOLD, holds)
        timeouts = [((model,), stats.num_drain_timeouts) for model, stats in of_models]
        yield _counter(specs.DRAIN_TIMEOUTS, timeouts)

    def _late_and_aborted(self) -> Iterator[Metric]:
        stages = [
            ((one.pipeline.model_id, name), stage)
            for one in self._service.running_models
            for name, stage in zip(one.pipeline.stage_names, one.stats.stages, strict=True)
        ]
        yield _counter(specs.DROPPED, [(labels, stage.num_dropped) for labels, stage in stages])
        yield _counter(specs.ABORTS, [(labels, stage.num_aborts) for labels, stage in stages])
        abort_s = [(labels, stage.abort_s.counts) for labels, stage in stages]
        yield _histogram(specs.ABORT_S, abort_s)
        silent = [(labels, stage.num_silent) for labels, stage in stages]
        yield _counter(specs.SILENT_ABORTS, silent)

    def _workers(self) -> Iterator[Metric]:
        workers: list[tuple[tuple[str, ...], ServedWorker]] = [
            ((stage.name, str(replica)), worker)
            for stage in self._service.stages
            for replica, worker in enumerate(stage.workers)
        ]
        yield _gauge(specs.STAGE_UP, [(labels, worker.is_up) for labels, worker in workers])
        restarts = [(labels, max(0, worker.num_starts - 1)) for labels, worker in workers]
        yield _counter(specs.RESTARTS, restarts)
        yield _gauge(specs.OPEN, [(labels, worker.num_open) for labels, worker in workers])
        queued = [(labels, worker.num_queued) for labels, worker in workers]
        yield _gauge(specs.QUEUE_DEPTH, queued)
        batches = [(labels, worker.step_stats.batch_size) for labels, worker in workers]
        yield _histogram(specs.BATCH_SIZE, batches)
        steps = [(labels, worker.step_stats.step_s) for labels, worker in workers]
        yield _histogram(specs.STEP_S, steps)


def _counter(of: MetricSpec, rows: Rows) -> Metric:
    return _filled(CounterMetricFamily(of.name, of.help, labels=of.labels), rows)


def _gauge(of: MetricSpec, rows: Rows) -> Metric:
    return _filled(GaugeMetricFamily(of.name, of.help, labels=of.labels), rows)


def _filled(family: FamilyT, rows: Rows) -> FamilyT:
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def _histogram(of: MetricSpec, rows: CountRows) -> Metric:
    family = HistogramMetricFamily(of.name, of.help, labels=of.labels)
    for labels, counts in rows:
        bounds = [*map(str, counts.bounds), "+Inf"]
        family.add_metric(labels, list(zip(bounds, counts.cumulative, strict=True)), counts.total)
    return family
