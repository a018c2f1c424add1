"""A timeline in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open.

Each run is a process. Its threads are the request, the gate, and each stage. See "Trace Event
Format" (Google, 2016): `X` is a complete event, `i` an instant event, `M` metadata (a name).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REQUEST, GATE, FIRST_STAGE = 0, 1, 2


def chrome_trace(timeline: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the result of `timeline_json`. Spans that have not ended yet end at its `now_ms`."""
    events = list(_request(timeline))
    for run in timeline["runs"]:
        events += _run(timeline, run)
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": _summary(timeline)}


def _summary(timeline: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not runs, as the trace's description."""
    return {name: value for name, value in timeline.items() if name != "runs"}


def _request(timeline: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    now = timeline["now_ms"]
    yield from _named(0, f"{timeline['endpoint']} {timeline['id']}", REQUEST, "request")
    yield _span(0, REQUEST, "request", 0.0, _first_known(timeline["ended_ms"], now))
    yield _span(
        0, REQUEST, "waits", 0.0, _first_known(timeline["admitted_ms"], timeline["ended_ms"], now)
    )
    for name in ("first_token", "first_audio", "first_byte"):
        if (at := timeline[f"{name}_ms"]) is not None:
            yield _moment(0, REQUEST, name.replace("_", " "), at)


def _run(timeline: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    pid, now = run["index"], timeline["now_ms"]
    if pid:
        yield from _named(pid, f"choice {pid}", REQUEST, "request")
    yield _span(pid, REQUEST, run["run"], run["added_ms"], _first_known(run["terminal_ms"], now))
    if run["closed_ms"] is not None:
        yield _moment(pid, REQUEST, f"closes: {run['error']}", run["closed_ms"])
    yield _thread(pid, GATE, "gate")
    if run["held"]:
        until = _first_known(run["terminal_ms"], now)
        yield _span(pid, GATE, "holds the terminal", run["all_final_ms"], until)
    if run["terminal_ms"] is not None:
        yield _moment(pid, GATE, "terminal", run["terminal_ms"])
    for stage in run["stages"]:
        yield from _stage(pid, stage, now)


def _stage(pid: int, stage: Mapping[str, Any], now: float) -> Iterator[dict[str, Any]]:
    tid = FIRST_STAGE + stage["stage"]
    yield _thread(pid, tid, stage["name"])
    if stage["submitted_ms"] is None:
        return
    name = "open" if stage["ending"] is None else stage["ending"]
    yield _span(pid, tid, name, stage["submitted_ms"], _first_known(stage["finished_ms"], now))
    for began, ended in stage["busy_ms"]:
        yield _span(pid, tid, "works", began, ended)
    for at in stage["emitted_ms"]:
        yield _moment(pid, tid, "emits", at)
    if stage["aborted_ms"] is not None:
        yield _moment(pid, tid, "aborted", stage["aborted_ms"])


def _first_known(*times: float | None) -> float:
    """The first time that is not None."""
    return next(at for at in times if at is not None)


def _span(pid: int, tid: int, name: str, began: float, ended: float) -> dict[str, Any]:
    at = {"ts": round(1000 * began, 1), "dur": round(1000 * max(0.0, ended - began), 1)}
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "cat": "nano-omni", **at}


def _moment(pid: int, tid: int, name: str, at: float) -> dict[str, Any]:
    ts = round(1000 * at, 1)
    return {"ph": "i", "s": "t", "pid": pid, "tid": tid, "name": name, "cat": "nano-omni", "ts": ts}


def _named(pid: int, process: str, tid: int, thread: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "pid": pid, "tid": 0, "name": "process_name", "args": {"name": process}}
    yield _thread(pid, tid, thread)


def _thread(pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}
