"""The dashboard's queries use metrics and labels that the server really exposes."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import promql_parser
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.bench import fake_service
from tests.server.loopback import serving

GRAFANA = Path(__file__).parents[2] / "docker" / "grafana"
DASHBOARD = json.loads((GRAFANA / "nano-omni.json").read_text())
QUERIES = {
    f"{panel['title']}: {target['legendFormat']}": target
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", ())
}
IN_GRAFANA = {"$__rate_interval": "1m", "$__range": "1h", "$model": ".*"}
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}


def plain(query):
    """A query with Grafana's variables replaced."""
    for name, value in IN_GRAFANA.items():
        query = query.replace(name, value)
    return query


def metrics_and_labels_of(query):
    """The metrics of a query, and the labels by which it selects or groups them."""
    metrics, labels = set(), set()

    def visit(part):
        if isinstance(part, promql_parser.VectorSelector):
            metrics.add(part.name)
            labels.update(matcher.name for matcher in part.matchers.matchers)
        if isinstance(part, promql_parser.MatrixSelector):
            visit(part.vector_selector)
        if isinstance(part, promql_parser.AggregateExpr) and part.modifier is not None:
            labels.update(part.modifier.labels)

    promql_parser.walk(promql_parser.parse(plain(query)), visit)
    return metrics, labels


@pytest.fixture(scope="module")
def exposed():
    """The labels of each exposed metric, or None if it has no sample yet."""
    with serving(fake_service(port=0)) as server:
        for path, body in (
            ("audio/speech", {"model": "tts-1", "voice": "alloy", "input": "Hello there."}),
            (
                "chat/completions",
                {"model": "fake-chat", "messages": [{"role": "user", "content": "Hi"}]},
            ),
        ):
            asked = urllib.request.Request(f"{server.url}/v1/{path}", json.dumps(body).encode())
            urllib.request.urlopen(asked).close()
        with urllib.request.urlopen(f"{server.url}/metrics") as reply:
            text = reply.read().decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for suffix in SUFFIXES.get(family.type, ("",)):
            found[family.name + suffix] = None
        found |= {sample.name: set(sample.labels) for sample in family.samples}
    return found


def test_the_stored_dashboard_is_up_to_date():
    script = subprocess.run([sys.executable, GRAFANA / "dashboard.py"], capture_output=True)
    assert script.stdout == (GRAFANA / "nano-omni.json").read_bytes()


def test_metrics_and_labels_are_found_in_a_query():
    query = 'sum by (stage) (rate(a_sum{model=~"$model"}[$__rate_interval])) / b'
    assert metrics_and_labels_of(query) == ({"a_sum", "b"}, {"stage", "model"})


@pytest.mark.parametrize("title", QUERIES)
def test_a_query_uses_exposed_metrics_and_labels(exposed, title):
    target = QUERIES[title]
    metrics, labels = metrics_and_labels_of(target["expr"])
    assert metrics
    assert metrics <= set(exposed)
    labels.update(re.findall(r"{{(\w+)}}", target["legendFormat"]))
    for metric in metrics:
        if exposed[metric] is not None:
            assert labels <= exposed[metric] | {"le"}


def test_the_model_variable_uses_an_exposed_label(exposed):
    (variable,) = DASHBOARD["templating"]["list"]
    assert variable["query"] == "label_values(nano_omni_requests_total, model)"
    assert "model" in exposed["nano_omni_requests_total"]
