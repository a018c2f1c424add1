"""`make fuzz`: schemathesis with the stored openapi.json against a server of fakes.

It runs twice. With the document as it is, most requests name a model that does not exist. With the
names of existing models and voices, valid requests are also served. A response must not be a 5xx,
and it must be in the document. `python -m tests.conformance.fuzz [MAX_EXAMPLES]`
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import structlog

from server.document.openapi import STORED
from tests.conformance.run import python_of
from tests.server.bench import fake_service
from tests.server.loopback import serving

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
)
MAX_EXAMPLES = 500  # for each operation
NAMES = {
    "SpeechRequest": ["tts-1", "fake-speech"],
    "ChatRequest": ["gpt-audio", "fake-chat"],
    "CompletionRequest": ["gpt-audio", "fake-chat"],
    "ResponseRequest": ["gpt-audio", "fake-chat"],
}
# Left out, as a request with a short deadline correctly gets a 504.
DEADLINE_FIELD = "timeout_s"
VOICES = {"enum": ["alloy", "fake-low", {"id": "fake-high"}]}


def without_deadlines(document: dict[str, Any]) -> dict[str, Any]:
    """The document without the field that can ask for a failure."""
    for schema in document["components"]["schemas"].values():
        schema.get("properties", {}).pop(DEADLINE_FIELD, None)
    return document


def with_existing_names(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the names of the fake models and voices."""
    schemas = document["components"]["schemas"]
    for request, models in NAMES.items():
        schemas[request]["properties"]["model"] = {"enum": models}
    schemas["SpeechRequest"]["properties"]["voice"] = VOICES
    schemas["ReplyAudio"]["properties"]["voice"] = VOICES
    return document


def fuzz(document: Path, url: str, max_examples: str) -> bool:
    """Run schemathesis once; it writes its report to stdout. Returns whether it passed."""
    command = (
        python_of("fuzz").parent / "schemathesis",
        *("run", document, "--url", url, "--checks", ",".join(CHECKS)),
        *("--max-examples", max_examples, "--continue-on-failure", "--no-color"),
        *("--warnings", "off", "--suppress-health-check", "all"),
        *("--generation-database", "none", "--request-timeout", "20"),
    )
    return subprocess.run(command, cwd=document.parent).returncode == 0


def main() -> int:
    """Fuzz with both documents; the exit status."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    max_examples = (sys.argv[1:] or [str(MAX_EXAMPLES)])[0]
    with tempfile.TemporaryDirectory() as folder, serving(fake_service(port=0)) as server:
        document = without_deadlines(json.loads(STORED.read_text()))
        as_it_is, with_names = Path(folder, "openapi.json"), Path(folder, "existing.json")
        as_it_is.write_text(json.dumps(document))
        with_names.write_text(json.dumps(with_existing_names(document)))
        passed = [fuzz(path, server.url, max_examples) for path in (as_it_is, with_names)]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
