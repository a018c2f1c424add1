"""Requests as OpenTelemetry traces: a span for the request, with a child span for each stage.

Spans are made from the complete timeline, so that a running request costs nothing more. The W3C
trace context that the client sent is the parent, and its sampling decision is kept. Needs the extra
`otel`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.config.settings import SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

    from orchestrator import RequestRecord, StageRecord
    from server.observe.timeline import Timeline

PATH = "/v1/traces"


def make_traces(endpoint: str, version: str) -> Traces | None:
    """Traces that are sent to the collector at `endpoint` (OTLP over HTTP); None if it is empty.

    Raises SettingsError if the extra `otel` is not installed.
    """
    if not endpoint:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SettingsError(
            "setting otlp_endpoint: traces need more packages: pip install -r requirements/otel.txt"
        ) from None

    resource = Resource.create({"service.name": "nano-vllm-omni", "service.version": version})
    provider = TracerProvider(resource=resource)
    url = endpoint if endpoint.endswith(PATH) else endpoint.rstrip("/") + PATH
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))
    return Traces(provider)


class Traces:
    """Sends timelines as spans through `provider`."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("nano_omni")

    def send(self, timeline: Timeline) -> None:
        """Queue the spans of a complete timeline."""
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        parent = TraceContextTextMapPropagator().extract(timeline.parent)
        span = self._tracer.start_span(
            f"POST {timeline.endpoint}",
            parent,
            SpanKind.SERVER,
            _attributes(timeline),
            start_time=_unix_ns(timeline, timeline.received_at),
        )
        _add_events(span, timeline)
        if timeline.outcome not in ("ok", "invalid"):
            span.set_status(Status(StatusCode.ERROR, timeline.outcome))
        context = set_span_in_context(span)
        for record in timeline.records:
            for k, stage in enumerate(record.stages):
                if stage.submitted_at is not None:
                    started_at = _unix_ns(timeline, stage.submitted_at)
                    child = self._tracer.start_span(record.roles[k], context, start_time=started_at)
                    _end_stage_span(child, timeline, record, stage)
        assert timeline.ended_at is not None
        span.end(_unix_ns(timeline, timeline.ended_at))

    def close(self) -> None:
        """Send the queued spans. Blocks, perhaps for seconds."""
        self._provider.shutdown()


def _attributes(timeline: Timeline) -> dict[str, str | int | float]:
    """Names follow OpenTelemetry's conventions for HTTP and generative AI where they have one."""
    return {
        "http.request.method": "POST",
        "http.route": timeline.endpoint,
        "http.response.status_code": timeline.status or 0,
        "gen_ai.request.model": timeline.model,
        "gen_ai.usage.input_tokens": timeline.prompt_tokens,
        "gen_ai.usage.output_tokens": timeline.completion_tokens,
        "nano_omni.request_id": timeline.request_id,
        "nano_omni.outcome": str(timeline.outcome),
        "nano_omni.audio_seconds": timeline.audio_s,
        "nano_omni.underruns": timeline.num_underruns,
    }


def _add_events(span: Span, timeline: Timeline) -> None:
    times_by_name = {
        "admitted": timeline.admitted_at,
        "first_token": timeline.first_token_at,
        "first_audio": timeline.first_audio_at,
    }
    for record in timeline.records:
        if record.held:
            times_by_name[f"gate_held {record.index}"] = record.all_final_at
            times_by_name[f"gate_released {record.index}"] = record.ended_at
    for name, at in times_by_name.items():
        if at is not None:
            span.add_event(name, timestamp=_unix_ns(timeline, at))


def _end_stage_span(
    span: Span, timeline: Timeline, record: RequestRecord, stage: StageRecord
) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("nano_omni.run", record.request_id)
    span.set_attribute("nano_omni.ending", str(stage.ending))
    if stage.work is not None and stage.work.busy:
        busy_s = sum(ended_at - began_at for began_at, ended_at in stage.work.busy)
        span.set_attribute("nano_omni.busy_seconds", busy_s)
        span.set_attribute("nano_omni.chunks", stage.work.num_emitted)
        span.add_event("began", timestamp=_unix_ns(timeline, stage.work.busy[0][0]))
        if stage.work.emitted_at:
            span.add_event("first_chunk", timestamp=_unix_ns(timeline, stage.work.emitted_at[0]))
    if stage.ending != "finished":
        span.set_status(Status(StatusCode.ERROR, stage.ending))
    assert record.ended_at is not None
    span.end(_unix_ns(timeline, stage.finished_at or record.ended_at))


def _unix_ns(timeline: Timeline, at: float) -> int:
    return round(1e9 * (timeline.received_unix_s + at - timeline.received_at))
