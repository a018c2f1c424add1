"""`make fuzz`: schemathesis with the stored openapi.json against a server of fakes.

Twice: with the document as it is, where most requests name a model that there is none of, and with
the models and voices that there are, so that what is well formed is also served. No answer may be
a 5xx, or one that the document does not have. `python -m tests.conformance.fuzz [MAX_EXAMPLES]`
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
# A deadline that is too short is a 504, as asked: it is left out.
OWN_DEADLINE = "timeout_s"
VOICES = {"enum": ["alloy", "fake-low", {"id": "fake-high"}]}


def without_deadlines(document: dict[str, Any]) -> dict[str, Any]:
    """The document as it is, but for the one field that asks for a failure."""
    for schema in document["components"]["schemas"].values():
        schema.get("properties", {}).pop(OWN_DEADLINE, None)
    return document


def pinned(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the names of what the fakes serve."""
    schemas = document["components"]["schemas"]
    for request, models in NAMES.items():
        schemas[request]["properties"]["model"] = {"enum": models}
    schemas["SpeechRequest"]["properties"]["voice"] = VOICES
    schemas["ReplyAudio"]["properties"]["voice"] = VOICES
    return document


def fuzz(document: Path, url: str, max_examples: str) -> bool:
    """One run; its report goes to the output."""
    command = (
        python_of("fuzz").parent / "schemathesis",
        *("run", document, "--url", url, "--checks", ",".join(CHECKS)),
        *("--max-examples", max_examples, "--continue-on-failure", "--no-color"),
        *("--warnings", "off", "--suppress-health-check", "all"),
        *("--generation-database", "none", "--request-timeout", "20"),
    )
    return subprocess.run(command, cwd=document.parent).returncode == 0


def main() -> int:
    """The exit status."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    max_examples = (sys.argv[1:] or [str(MAX_EXAMPLES)])[0]
    with tempfile.TemporaryDirectory() as folder, serving(fake_service(port=0)) as server:
        document = without_deadlines(json.loads(STORED.read_text()))
        as_it_is, with_names = Path(folder, "openapi.json"), Path(folder, "pinned.json")
        as_it_is.write_text(json.dumps(document))
        with_names.write_text(json.dumps(pinned(document)))
        held = [fuzz(path, server.url, max_examples) for path in (as_it_is, with_names)]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
