"""What a worker reports of its steps, and how its times are mapped to the server's clock."""

from dataclasses import replace

from stages.contract.histogram import Histogram, HistogramCounts
from stages.contract.work import MAX_EMITS, StageWork
from stages.runtime.worker.step_stats import (
    ClockMap,
    Step,
    StepLog,
    StepReport,
    StepStats,
)


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_value_is_counted_in_the_smallest_bound_that_holds_it():
    counter = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        counter.observe(value)
    assert counter.counts == HistogramCounts((1.0, 2.0), (2, 1, 1), 12.0)
    assert counter.counts.cumulative == (2, 3, 4)
    assert (counter.counts + counter.counts).bucket_counts == (4, 2, 2)


def test_a_report_is_due_a_tenth_of_a_second_after_the_last_one():
    clock = Clock()
    log = StepLog(clock)
    assert not log.is_due
    clock.now = 0.05
    log.add(0.0, {(0, "a"): 1})
    assert not log.is_due
    clock.now = 0.1
    log.add(0.06, {(0, "a"): 0, (1, "b"): 2})
    assert log.is_due
    report = log.take_report()
    assert report.sent_at == 0.1
    assert report.steps == [
        Step(0.0, 0.05, 1, {(0, "a"): 1}),
        Step(0.06, 0.1, 2, {(0, "a"): 0, (1, "b"): 2}),
    ]
    assert not log.is_due
    assert log.take_report().steps == []


def test_stats_count_the_steps_their_times_and_their_requests():
    stats = StepStats()
    stats.add(Step(0.0, 0.25, 1, {(0, "a"): 1}))
    stats.add(Step(1.0, 1.5, 2, {(0, "a"): 0}))
    assert stats.step_s.cumulative[-1] == stats.batch_size.cumulative[-1] == 2
    assert (stats.step_s.total, stats.batch_size.total) == (0.75, 3)


def test_each_server_of_a_worker_gets_its_own_requests_and_one_counts_the_step():
    step = Step(0.0, 0.1, 4, {(0, "b1"): 1, (0, "a1"): 2, (1, "b2"): 0, (0, "gone"): 1})
    other = Step(0.2, 0.3, 1, {(0, "a1"): 1})
    nobodys = Step(0.4, 0.5, 1, {(0, "gone"): 1})
    report = StepReport(9.0, [step, other, nobodys])
    parts = report.by_server({"a1": "A", "b1": "B", "b2": "B"}.get)
    assert parts == {
        "B": StepReport(9.0, [replace(step, num_chunks={(0, "b1"): 1, (1, "b2"): 0})]),
        "A": StepReport(9.0, [replace(step, num_chunks={(0, "a1"): 2}, counts=False), other]),
    }


def test_the_message_that_was_quickest_maps_the_clock():
    clocks = ClockMap()
    assert clocks.offset_s(sent_at=100.0, now=5.5) == -94.5
    assert clocks.offset_s(sent_at=101.0, now=6.0) == -95.0
    assert clocks.offset_s(sent_at=102.0, now=9.0) == -95.0


def test_steps_close_to_each_other_are_one_stretch():
    work = StageWork()
    work.add(11, 11.02, 1)
    work.add(11.024, 11.05, 2)
    work.add(11.06, 11.07, 0)
    assert work.busy == [(11.0, 11.05), (11.06, 11.07)]
    assert work.emitted_at == [11.02, 11.05, 11.05]
    assert work.num_emitted == 3


def test_times_stay_in_order_where_the_clock_is_mapped_better_meanwhile():
    work = StageWork()
    work.add(11, 11.02, 1)
    work.add(11.001, 11.01, 1)
    assert work.busy == [(11.0, 11.02)]
    assert work.emitted_at == [11.02, 11.02]


def test_the_times_of_emits_are_bounded_and_their_number_is_not():
    work = StageWork()
    work.add(0, 1, MAX_EMITS - 1)
    work.add(1, 2, 5)
    assert len(work.emitted_at) == MAX_EMITS
    assert work.num_emitted == MAX_EMITS + 4
