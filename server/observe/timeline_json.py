"""A timeline as JSON (see `docs/timeline.md`). Times are milliseconds since the request came in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from orchestrator import RequestRecord, StageRecord
    from server.observe.timeline import Timeline


def timeline_json(timeline: Timeline) -> dict[str, Any]:
    """Everything known about the request now. Fields that have no value yet are null."""
    ms = timeline.since_received_ms
    return {
        "object": "timeline",
        "id": timeline.request_id,
        "endpoint": timeline.endpoint,
        "model": timeline.model,
        "state": _state(timeline),
        "outcome": timeline.outcome,
        "status": timeline.status,
        "received_at": round(timeline.received_unix_s, 3),
        "now_ms": ms(anyio.current_time()),
        "admitted_ms": ms(timeline.admitted_at),
        "first_byte_ms": ms(timeline.first_byte_at),
        "first_token_ms": ms(timeline.first_token_at),
        "first_audio_ms": ms(timeline.first_audio_at),
        "ended_ms": ms(timeline.ended_at),
        "prompt_tokens": timeline.prompt_tokens,
        "completion_tokens": timeline.completion_tokens,
        "audio_ms": round(1000 * timeline.audio_s, 2),
        "underruns": timeline.num_underruns,
        "underrun_ms": round(1000 * timeline.silent_s, 2),
        "runs": [_run(timeline, record) for record in timeline.records],
    }


def _state(timeline: Timeline) -> str:
    if timeline.is_complete:
        return "done"
    return "waiting" if timeline.admitted_at is None else "running"


def _run(timeline: Timeline, record: RequestRecord) -> dict[str, Any]:
    ms = timeline.since_received_ms
    return {
        "run": record.request_id,
        "index": record.index,
        "added_ms": ms(record.added_at),
        "all_final_ms": ms(record.all_final_at),
        "held": record.held,
        "closed_ms": ms(record.closed_at),
        "terminal_ms": ms(record.ended_at),
        "error": record.error,
        "stages": [_stage(timeline, record, k) for k in range(len(record.stages))],
    }


def _stage(timeline: Timeline, record: RequestRecord, k: int) -> dict[str, Any]:
    ms, stage = timeline.since_received_ms, record.stages[k]
    return {
        "stage": k,
        "name": record.roles[k],
        "final": k in record.final,
        "submitted_ms": ms(stage.submitted_at),
        **_work(timeline, stage),
        "aborted_ms": ms(stage.aborted_at),
        "finished_ms": ms(stage.finished_at),
        "ending": stage.ending,
    }


def _work(timeline: Timeline, stage: StageRecord) -> dict[str, Any]:
    ms, work = timeline.since_received_ms, stage.work
    if work is None:
        return {"began_ms": None, "emitted_ms": [], "num_emitted": 0, "busy_ms": []}
    return {
        "began_ms": ms(work.busy[0][0]) if work.busy else None,
        "emitted_ms": [ms(at) for at in work.emitted_at],
        "num_emitted": work.num_emitted,
        "busy_ms": [[ms(began_at), ms(ended_at)] for began_at, ended_at in work.busy],
    }
