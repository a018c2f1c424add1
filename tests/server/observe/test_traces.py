"""Requests as traces: a span each, with child spans for stages, below the client's span."""

import sys

import anyio
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from server.config.settings import SettingsError
from server.observe.traces import Traces, make_traces
from tests.server.asgi import post, running
from tests.server.bench import SPEECH, SPOKEN, scripted

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


def traced(app, exporter):
    """The app, with its traces exported to memory."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app.observer.traces = Traces(provider)
    return app


async def spans_of(exporter, **fields):
    async with scripted() as (app, _):
        await post("/v1/chat/completions", SPOKEN, **fields).run(traced(app, exporter))
        await anyio.wait_all_tasks_blocked()
    *stages, request = exporter.get_finished_spans()
    return request, stages


async def test_a_request_is_a_span_with_a_child_for_each_stage(exporter):
    request, stages = await spans_of(exporter)
    assert (request.name, request.kind) == ("POST /v1/chat/completions", SpanKind.SERVER)
    assert request.parent is None
    assert [stage.name for stage in stages] == ["thinker", "talker", "code2wav"]
    for stage in stages:
        assert stage.parent.span_id == request.context.span_id
        assert request.start_time <= stage.start_time <= stage.end_time <= request.end_time
        assert stage.attributes["nano_omni.ending"] == "finished"
        assert stage.status.status_code is StatusCode.UNSET
    assert request.attributes["gen_ai.request.model"] == "chatter"
    assert request.attributes["gen_ai.usage.output_tokens"] == 2
    assert request.attributes["http.response.status_code"] == 200
    assert {"admitted", "first_token", "first_audio"} <= {e.name for e in request.events}


async def test_the_clients_span_is_the_parent(exporter):
    header = f"00-{TRACE_ID}-{PARENT_ID}-01"
    request, stages = await spans_of(exporter, headers={"traceparent": header})
    assert f"{request.context.trace_id:032x}" == TRACE_ID
    assert f"{request.parent.span_id:016x}" == PARENT_ID
    assert all(stage.context.trace_id == request.context.trace_id for stage in stages)


async def test_a_request_that_the_client_does_not_sample_is_not_exported(exporter):
    header = f"00-{TRACE_ID}-{PARENT_ID}-00"
    async with scripted() as (app, _):
        request = post("/v1/audio/speech", SPEECH, headers={"traceparent": header})
        assert (await request.run(traced(app, exporter))).status == 200
    assert exporter.get_finished_spans() == ()


async def test_an_invalid_traceparent_starts_a_new_trace(exporter):
    request, _ = await spans_of(exporter, headers={"traceparent": "nonsense"})
    assert request.parent is None


async def test_a_client_that_left_is_an_error_exported_once_its_stages_have_ended(exporter):
    async with scripted(sounder=()) as (app, deployment):
        traced(app, exporter)
        request = post("/v1/audio/speech", SPEECH)
        async with running(request, app):
            await deployment.speech[1].has(1)
            request.left.set()
        await anyio.wait_all_tasks_blocked()
    talker, sounder, whole = exporter.get_finished_spans()
    assert (whole.status.status_code, whole.status.description) == (StatusCode.ERROR, "left")
    assert talker.attributes["nano_omni.ending"] == "finished"
    assert sounder.attributes["nano_omni.ending"] == "aborted"
    assert sounder.status.status_code is StatusCode.ERROR


def test_without_an_endpoint_there_are_no_traces():
    assert make_traces("", "1") is None


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "http://127.0.0.1:9/v1/traces"])
def test_traces_are_sent_to_the_endpoint(endpoint):
    traces = make_traces(endpoint, "1")
    assert traces is not None
    traces.close()  # nothing waits to be sent


def test_without_the_extra_an_endpoint_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"requirements/otel\.txt"):
        make_traces("http://127.0.0.1:9", "1")
