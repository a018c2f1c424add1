"""`nano-omni plan`: a layout under load, simulated, so that a cluster can be sized.

Streams arrive at random (Poisson) and pass through the stages chunk by chunk; a stage's workers
take their requests in steps, by playback deadline, as the real ones do, and a request is bound to
the worker with the fewest. What a step costs is given: so much at all, and so much for each second
of audio. Each listener has a `JitterBuffer` without delay. Knows nothing of networks and of memory.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from statistics import quantiles
from typing import TYPE_CHECKING, Any

import simpy

from stages.contract.jitter_buffer import JitterBuffer

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    Process = Generator[simpy.Event, Any, None]

MAX_AHEAD = 2  # chunks that a stage may be ahead of the next


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """A stage: how many workers share its requests, and what a step of one of them takes.

    A step advances up to `batch` requests by a chunk each.
    """

    name: str
    workers: int
    step_ms: float
    audio_s_ms: float
    batch: int = 8


@dataclass(frozen=True, slots=True)
class SimulatedLoad:
    """Streams of `stream_s` seconds of audio, `rate` of them a second, for `run_s` seconds.

    Their chunks hold `first_s` of audio at first, and `chunk_s` after that. Each goes to one of
    `cells` at random: each has all the stages, and none knows of the others.
    """

    rate: float
    stream_s: float = 10.0
    first_s: float = 0.2
    chunk_s: float = 0.75
    run_s: float = 60.0
    seed: int = 0
    cells: int = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """`busy` is the share of the time that each stage's workers computed."""

    num_streams: int
    first_audio_ms: tuple[float, float, float]  # of 50, 95 and 99 in a hundred
    gap_ms: tuple[float, float, float]  # between chunks of a stream
    ran_dry: float  # the share of streams whose player had to wait
    concurrent: float  # streams that were listened to, on average
    busy: dict[str, float]


@dataclass(slots=True)
class _Stream:
    began: float
    chunks: list[float]  # seconds of audio in each
    workers: list[_Worker]
    made: list[int] = field(default_factory=list)  # chunks, by stage
    queued: list[bool] = field(default_factory=list)
    heard: list[float] = field(default_factory=list)  # when each chunk came
    buffer: JitterBuffer = field(default_factory=JitterBuffer)

    def hear(self, now: float) -> None:
        """The last stage made the next chunk: it reaches the listener."""
        self.buffer.push(self.chunks[len(self.heard)], now)
        self.heard.append(now)

    def deadline(self, stage: int) -> float:
        """When the listener runs dry if the stage makes no further chunk."""
        if self.buffer.empty_at_s is None:
            return self.began
        return self.buffer.empty_at_s + sum(self.chunks[len(self.heard) : self.made[stage]])

    def listened_s(self, now: float) -> float:
        """How long the listener has listened, silence included."""
        is_complete = len(self.heard) == len(self.chunks)
        empty_at_s = self.buffer.empty_at_s
        until = min(now, empty_at_s) if is_complete and empty_at_s is not None else now
        return until - self.heard[0]

    def can_step(self, stage: int) -> bool:
        made = self.made[stage]
        if made == len(self.chunks):
            return False
        has_input = stage == 0 or self.made[stage - 1] > made
        is_last = stage == len(self.made) - 1
        return has_input and (is_last or made - self.made[stage + 1] < MAX_AHEAD)


class _Worker:
    """Takes steps for the streams that can run, those with the earliest deadline first."""

    def __init__(self, plan: _Plan, stage: int) -> None:
        self.num_live = 0
        self.busy_s = 0.0
        self._plan = plan
        self._stage = stage
        self._ready: list[tuple[float, int, _Stream]] = []
        self._bell = plan.env.event()
        plan.env.process(self._run())

    def offer(self, stream: _Stream) -> None:
        """A stream that may be able to run."""
        if not stream.queued[self._stage] and stream.can_step(self._stage):
            stream.queued[self._stage] = True
            entry = stream.deadline(self._stage), next(self._plan.order), stream
            heapq.heappush(self._ready, entry)
            if not self._bell.triggered:
                self._bell.succeed()

    def _run(self) -> Process:
        env, costs = self._plan.env, self._plan.stages[self._stage]
        while True:
            if not self._ready:
                self._bell = env.event()
                yield self._bell
            batch = [
                heapq.heappop(self._ready)[2] for _ in range(min(costs.batch, len(self._ready)))
            ]
            audio_s = sum(stream.chunks[stream.made[self._stage]] for stream in batch)
            took = (costs.step_ms + costs.audio_s_ms * audio_s) / 1000
            yield env.timeout(took)
            self.busy_s += took
            for stream in batch:
                stream.queued[self._stage] = False
                self._plan.advance(stream, self._stage)


class _Plan:
    def __init__(self, stages: Sequence[PlannedStage], load: SimulatedLoad) -> None:
        self.env = simpy.Environment()
        self.stages = stages
        self.order = iter(range(1 << 62))
        self.streams: list[_Stream] = []
        self._load = load
        self.cells = [
            [
                [_Worker(self, number) for _ in range(stage.workers)]
                for number, stage in enumerate(stages)
            ]
            for _ in range(load.cells)
        ]
        self.env.process(self._arrive())

    def advance(self, stream: _Stream, stage: int) -> None:
        """A stage made a chunk of a stream: its neighbours may go on."""
        stream.made[stage] += 1
        last = len(self.stages) - 1
        if stage == last:
            stream.hear(self.env.now)
        if stream.made[stage] == len(stream.chunks):
            stream.workers[stage].num_live -= 1
        for each in range(max(0, stage - 1), min(stage + 1, last) + 1):
            stream.workers[each].offer(stream)

    def _arrive(self) -> Process:
        load, rng = self._load, random.Random(self._load.seed)
        draw_cell = random.Random(self._load.seed + 1)
        num_chunks = max(0, round((load.stream_s - load.first_s) / load.chunk_s))
        chunks = [load.first_s, *[load.chunk_s] * num_chunks]
        while True:
            yield self.env.timeout(rng.expovariate(load.rate))
            if self.env.now > load.run_s:
                return
            cell = draw_cell.choice(self.cells)
            bound = [min(workers, key=lambda worker: worker.num_live) for workers in cell]
            stream = _Stream(self.env.now, chunks, bound)
            stream.made, stream.queued = [0] * len(bound), [False] * len(bound)
            self.streams.append(stream)
            for worker in bound:
                worker.num_live += 1
            bound[0].offer(stream)


def simulate(stages: Sequence[PlannedStage], load: SimulatedLoad) -> Outcome:
    """Run `load` through `stages`; the same seed gives the same outcome.

    ValueError where not enough streams were heard to say anything.
    """
    plan = _Plan(stages, load)
    plan.env.run(load.run_s)
    now = plan.env.now
    heard = [stream for stream in plan.streams if stream.heard]
    if len(heard) < 2:
        raise ValueError("too few streams were heard; simulate a longer time or a higher rate")
    gaps = [
        later - earlier
        for stream in heard
        for earlier, later in zip(stream.heard, stream.heard[1:], strict=False)
    ]
    listening = sum(stream.listened_s(now) for stream in heard)
    return Outcome(
        len(plan.streams),
        _percentiles([stream.heard[0] - stream.began for stream in heard]),
        _percentiles(gaps),
        sum(stream.buffer.num_underruns > 0 for stream in heard) / len(heard),
        listening / now,
        {
            stage.name: sum(worker.busy_s for cell in plan.cells for worker in cell[number])
            / (load.cells * stage.workers * now)
            for number, stage in enumerate(stages)
        },
    )


def _percentiles(seconds: list[float]) -> tuple[float, float, float]:
    if len(seconds) < 2:
        return (0.0, 0.0, 0.0)
    cuts = quantiles(seconds, n=100, method="inclusive")
    return 1000 * cuts[49], 1000 * cuts[94], 1000 * cuts[98]


def parse_stage(text: str) -> PlannedStage:
    """`NAME=WORKERS:STEP_MS:AUDIO_S_MS`, with `:BATCH` behind it if it is not 8. ValueError."""
    name, _, numbers = text.partition("=")
    parts = numbers.split(":")
    if not name or len(parts) not in (3, 4):
        raise ValueError(f"{text!r} is not NAME=WORKERS:STEP_MS:AUDIO_S_MS")
    stage = PlannedStage(
        name, int(parts[0]), float(parts[1]), float(parts[2]), *map(int, parts[3:])
    )
    if min(stage.workers, stage.batch) < 1 or min(stage.step_ms, stage.audio_s_ms) < 0:
        raise ValueError(f"{text!r}: at least one worker, and nothing below 0")
    return stage


def report(outcome: Outcome) -> str:
    """An outcome as lines of text."""
    first, gap = outcome.first_audio_ms, outcome.gap_ms
    busy = ", ".join(f"{name} {share:.0%}" for name, share in outcome.busy.items())
    return "\n".join(
        [
            f"streams      {outcome.num_streams} came, {outcome.concurrent:,.0f} listening",
            f"first audio  {first[0]:.0f} / {first[1]:.0f} / {first[2]:.0f} ms (50, 95, 99%)",
            f"gaps         {gap[0]:.0f} / {gap[1]:.0f} / {gap[2]:.0f} ms",
            f"ran dry      {outcome.ran_dry:.1%}",
            f"busy         {busy}",
        ]
    )
