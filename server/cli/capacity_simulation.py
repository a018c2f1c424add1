"""`nano-omni plan`: simulates stage workers under load, to size a deployment.

Streams arrive at random (Poisson) and pass through the stages chunk by chunk. As in the server, a
worker advances its streams in steps, by playback deadline, and each stream runs on the worker with
the fewest live streams. A step takes a fixed time plus a time for each second of audio in it; both
are given. Each listener has a `JitterBuffer` without delay. Networks and memory are not simulated.
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

MAX_CHUNKS_AHEAD = 2  # how far a stage may be ahead of the next one


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """A stage: how many workers share its streams, and how long a step of a worker takes.

    A step advances up to `batch` streams by one chunk each. It takes `step_ms`, plus `audio_s_ms`
    for each second of audio in these chunks.
    """

    name: str
    workers: int
    step_ms: float
    audio_s_ms: float
    batch: int = 8


@dataclass(frozen=True, slots=True)
class SimulatedLoad:
    """`rate` streams per second, each with `stream_s` seconds of audio, for `run_s` seconds.

    The first chunk of a stream holds `first_s` seconds of audio, each later one `chunk_s`. Each
    stream goes to a random one of `cells` cells. A cell is an independent copy of all stages.
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
    """The result of a simulation. Times are percentiles (50, 95, 99) in milliseconds."""

    num_streams: int
    first_audio_ms: tuple[float, float, float]
    gap_ms: tuple[float, float, float]  # between the chunks of a stream
    ran_dry: float  # share of the streams whose playback ran dry
    concurrent: float  # number of streams that play at the same time, on average
    busy: dict[str, float]  # by stage: share of the time in which its workers computed


@dataclass(slots=True)
class _Stream:
    began: float
    chunks: list[float]  # seconds of audio in each
    workers: list[_Worker]
    made: list[int] = field(default_factory=list)  # number of chunks made, by stage
    queued: list[bool] = field(default_factory=list)  # by stage
    arrived_s: list[float] = field(default_factory=list)  # when each chunk reached the listener
    buffer: JitterBuffer = field(default_factory=JitterBuffer)

    def deliver(self, now: float) -> None:
        """Deliver the next chunk to the listener."""
        self.buffer.push(self.chunks[len(self.arrived_s)], now)
        self.arrived_s.append(now)

    def deadline(self, stage: int) -> float:
        """When the listener runs dry if the stage makes no further chunk."""
        if self.buffer.empty_at_s is None:
            return self.began
        return self.buffer.empty_at_s + sum(self.chunks[len(self.arrived_s) : self.made[stage]])

    def playback_s(self, now: float) -> float:
        """How long playback has lasted so far, silence included."""
        is_complete = len(self.arrived_s) == len(self.chunks)
        empty_at_s = self.buffer.empty_at_s
        until = min(now, empty_at_s) if is_complete and empty_at_s is not None else now
        return until - self.arrived_s[0]

    def can_step(self, stage: int) -> bool:
        made = self.made[stage]
        if made == len(self.chunks):
            return False
        has_input = stage == 0 or self.made[stage - 1] > made
        is_last = stage == len(self.made) - 1
        return has_input and (is_last or made - self.made[stage + 1] < MAX_CHUNKS_AHEAD)


class _Worker:
    """Runs steps for the streams that can run, those with the earliest deadlines first."""

    def __init__(self, simulation: _Simulation, stage: int) -> None:
        self.num_live = 0
        self.busy_s = 0.0
        self._simulation = simulation
        self._stage = stage
        self._ready: list[tuple[float, int, _Stream]] = []
        self._wakeup = simulation.env.event()
        simulation.env.process(self._run())

    def offer(self, stream: _Stream) -> None:
        """Queue the stream if it can run and is not queued yet."""
        if not stream.queued[self._stage] and stream.can_step(self._stage):
            stream.queued[self._stage] = True
            entry = stream.deadline(self._stage), next(self._simulation.order), stream
            heapq.heappush(self._ready, entry)
            if not self._wakeup.triggered:
                self._wakeup.succeed()

    def _run(self) -> Process:
        env, costs = self._simulation.env, self._simulation.stages[self._stage]
        while True:
            if not self._ready:
                self._wakeup = env.event()
                yield self._wakeup
            batch = [
                heapq.heappop(self._ready)[2] for _ in range(min(costs.batch, len(self._ready)))
            ]
            audio_s = sum(stream.chunks[stream.made[self._stage]] for stream in batch)
            step_s = (costs.step_ms + costs.audio_s_ms * audio_s) / 1000
            yield env.timeout(step_s)
            self.busy_s += step_s
            for stream in batch:
                stream.queued[self._stage] = False
                self._simulation.advance(stream, self._stage)


class _Simulation:
    """The cells with their workers, and the streams that arrive at random."""

    def __init__(self, stages: Sequence[PlannedStage], load: SimulatedLoad) -> None:
        self.env = simpy.Environment()
        self.stages = stages
        self.order = iter(range(1 << 62))  # breaks ties between equal deadlines
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
        """Record that a stage made a chunk. It and its neighbours may be able to run now."""
        stream.made[stage] += 1
        last = len(self.stages) - 1
        if stage == last:
            stream.deliver(self.env.now)
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
            workers = [min(replicas, key=lambda worker: worker.num_live) for replicas in cell]
            stream = _Stream(self.env.now, chunks, workers)
            stream.made, stream.queued = [0] * len(workers), [False] * len(workers)
            self.streams.append(stream)
            for worker in workers:
                worker.num_live += 1
            workers[0].offer(stream)


def simulate(stages: Sequence[PlannedStage], load: SimulatedLoad) -> Outcome:
    """Simulate `load` on `stages`. The same seed gives the same outcome.

    Raises ValueError if fewer than two streams got audio.
    """
    simulation = _Simulation(stages, load)
    simulation.env.run(load.run_s)
    now = simulation.env.now
    started = [stream for stream in simulation.streams if stream.arrived_s]
    if len(started) < 2:
        raise ValueError("fewer than two streams got audio; increase --run-s or --rate")
    gaps = [
        later - earlier
        for stream in started
        for earlier, later in zip(stream.arrived_s, stream.arrived_s[1:], strict=False)
    ]
    playback_s = sum(stream.playback_s(now) for stream in started)
    return Outcome(
        len(simulation.streams),
        _percentiles([stream.arrived_s[0] - stream.began for stream in started]),
        _percentiles(gaps),
        sum(stream.buffer.num_underruns > 0 for stream in started) / len(started),
        playback_s / now,
        {
            stage.name: sum(worker.busy_s for cell in simulation.cells for worker in cell[number])
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
    """Parse `NAME=WORKERS:STEP_MS:AUDIO_S_MS[:BATCH]`. Raises ValueError."""
    name, _, numbers = text.partition("=")
    parts = numbers.split(":")
    if not name or len(parts) not in (3, 4):
        raise ValueError(f"{text!r} is not NAME=WORKERS:STEP_MS:AUDIO_S_MS[:BATCH]")
    stage = PlannedStage(
        name, int(parts[0]), float(parts[1]), float(parts[2]), *map(int, parts[3:])
    )
    if min(stage.workers, stage.batch) < 1 or min(stage.step_ms, stage.audio_s_ms) < 0:
        raise ValueError(f"{text!r}: WORKERS and BATCH must be at least 1, times at least 0")
    return stage


def report(outcome: Outcome) -> str:
    """Format an outcome as lines of text."""
    num, playing = outcome.num_streams, outcome.concurrent
    first, gap = outcome.first_audio_ms, outcome.gap_ms
    busy = ", ".join(f"{name} {share:.0%}" for name, share in outcome.busy.items())
    return "\n".join(
        [
            f"streams      {num} in total, {playing:,.0f} playing at once on average",
            f"first audio  {first[0]:.0f} / {first[1]:.0f} / {first[2]:.0f} ms (50, 95, 99%)",
            f"gaps         {gap[0]:.0f} / {gap[1]:.0f} / {gap[2]:.0f} ms",
            f"ran dry      {outcome.ran_dry:.1%}",
            f"busy         {busy}",
        ]
    )
