"""Reads /metrics as values by name and labels, and the timelines of requests."""

from prometheus_client.parser import text_string_to_metric_families

from tests.server.asgi import get


async def metrics_of(app):
    """{(name, labels as `a=b c=d`): value} of every sample."""
    reply = await get("/metrics").run(app)
    assert reply.status == 200
    assert reply.reply_headers["content-type"].startswith("text/plain")
    return {
        (sample.name, " ".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(reply.content.decode())
        for sample in family.samples
    }


async def timeline_of(app, request_id, query=b""):
    return await get(f"/debug/requests/{request_id}/timeline", query=query).run(app)
