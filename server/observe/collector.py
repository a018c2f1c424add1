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
from stages.contract.histogram import sum_of

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
        models = self._service.running_models
        holds = [((one.model_id,), sum_of(one.hold_s())) for one in models]
        yield _histogram(specs.GATE_HOLD, holds)
        timeouts = [((one.model_id,), one.num_drain_timeouts) for one in models]
        yield _counter(specs.DRAIN_TIMEOUTS, timeouts)

    def _late_and_aborted(self) -> Iterator[Metric]:
        stages = [
            ((one.model_id, str(role)), one.stage_stats(role))
            for one in self._service.running_models
            for role in one.roles
        ]
        dropped = [(labels, sum(one.num_dropped for one in stats)) for labels, stats in stages]
        yield _counter(specs.DROPPED, dropped)
        aborts = [(labels, sum(one.num_aborts for one in stats)) for labels, stats in stages]
        yield _counter(specs.ABORTS, aborts)
        abort_s = [
            (labels, sum_of(one.abort_s.counts for one in stats)) for labels, stats in stages
        ]
        yield _histogram(specs.ABORT_S, abort_s)
        silent = [(labels, sum(one.num_silent for one in stats)) for labels, stats in stages]
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
