"""A trail as the JSON of `docs/timeline.md`: milliseconds since the request was received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from orchestrator import RequestRecord, StageRecord
    from server.observe.trail import Trail


def timeline(trail: Trail) -> dict[str, Any]:
    """What is known of the request now."""
    ms = trail.since_received_ms
    return {
        "object": "timeline",
        "id": trail.request_id,
        "endpoint": trail.endpoint,
        "model": trail.model,
        "state": _state(trail),
        "outcome": trail.outcome,
        "status": trail.status,
        "received_at": round(trail.received_unix_s, 3),
        "now_ms": ms(anyio.current_time()),
        "admitted_ms": ms(trail.admitted_at),
        "first_byte_ms": ms(trail.first_byte_at),
        "first_token_ms": ms(trail.first_token_at),
        "first_audio_ms": ms(trail.first_audio_at),
        "ended_ms": ms(trail.ended_at),
        "prompt_tokens": trail.prompt_tokens,
        "completion_tokens": trail.completion_tokens,
        "audio_ms": round(1000 * trail.audio_s, 2),
        "underruns": trail.num_underruns,
        "underrun_ms": round(1000 * trail.silent_s, 2),
        "runs": [_run(trail, record) for record in trail.records],
    }


def _state(trail: Trail) -> str:
    if trail.is_over:
        return "done"
    return "waiting" if trail.admitted_at is None else "running"


def _run(trail: Trail, record: RequestRecord) -> dict[str, Any]:
    ms = trail.since_received_ms
    return {
        "run": record.request_id,
        "index": record.index,
        "added_ms": ms(record.added_at),
        "all_final_ms": ms(record.all_final_at),
        "held": record.held,
        "closed_ms": ms(record.closed_at),
        "terminal_ms": ms(record.ended_at),
        "error": record.error,
        "stages": [_stage(trail, record, k) for k in range(len(record.stages))],
    }


def _stage(trail: Trail, record: RequestRecord, k: int) -> dict[str, Any]:
    ms, stage = trail.since_received_ms, record.stages[k]
    return {
        "stage": k,
        "name": trail.stage_names[k],
        "final": k in record.final,
        "submitted_ms": ms(stage.submitted_at),
        **_work(trail, stage),
        "aborted_ms": ms(stage.aborted_at),
        "finished_ms": ms(stage.finished_at),
        "ending": stage.ending,
    }


def _work(trail: Trail, stage: StageRecord) -> dict[str, Any]:
    ms, work = trail.since_received_ms, stage.work
    if work is None:
        return {"began_ms": None, "emitted_ms": [], "num_emitted": 0, "busy_ms": []}
    return {
        "began_ms": ms(work.busy[0][0]) if work.busy else None,
        "emitted_ms": [ms(at) for at in work.emitted_at],
        "num_emitted": work.num_emitted,
        "busy_ms": [[ms(began_at), ms(ended_at)] for began_at, ended_at in work.busy],
    }
