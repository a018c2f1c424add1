"""The table of metrics in the docs, and the rules for names."""

import re

from server.document.metrics_page import STORED, text
from server.observe.metric_names import DECLARED


def test_the_stored_table_is_up_to_date():
    assert STORED.read_text() == text()


def test_names_follow_prometheus_conventions():
    for of in DECLARED:
        assert re.fullmatch(r"nano_omni_[a-z_]+", of.name)
        assert of.name.endswith("_total") == (of.kind == "counter")
        assert not re.search(r"_(ms|milliseconds|minutes)(_|$)", of.name)
        assert of.help.endswith(".")
        assert set(of.labels) <= {"model", "endpoint", "outcome", "stage", "replica", "version"}
    assert len({of.name for of in DECLARED}) == len(DECLARED)
