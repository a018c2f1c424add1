"""Generates the OpenAPI document: `python -m server.document.openapi > openapi/openapi.json`.

With `--check` it writes nothing, and fails if the stored document is out of date. The document is
built from the routes; no model is loaded.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from server import VERSION
from server.app import create_api
from server.config.settings import Settings
from server.document.generated_file import write_or_check
from server.http.auth import OPEN_PATHS
from server.observe import Observer
from server.routes.description.errors import ERROR_EXAMPLES
from server.routes.description.operations import BODY_MODELS, STREAM_MODELS
from server.serving.deploy import build_service

if TYPE_CHECKING:
    from pydantic import BaseModel

STORED = Path(__file__).parents[2] / "openapi" / "openapi.json"
TEMPLATE = "#/components/schemas/{model}"
MODELS: tuple[tuple[tuple[type[BaseModel], ...], JsonSchemaMode], ...] = (
    (BODY_MODELS, "validation"),
    (STREAM_MODELS, "serialization"),
)


def document() -> dict[str, Any]:
    """The document as JSON values, with the body and stream models that FastAPI does not see."""
    service = build_service(Settings(model=("fake",)))
    spec = create_api(service, Observer(service, VERSION)).openapi()
    schemas = spec["components"]["schemas"]
    for models, mode in MODELS:
        _, definitions = models_json_schema([(m, mode) for m in models], ref_template=TEMPLATE)
        schemas.update(definitions["$defs"])
    spec["components"]["schemas"] = dict(sorted(schemas.items()))
    _describe_keys(spec)
    _show_errors(spec)
    return spec


def _describe_keys(spec: dict[str, Any]) -> None:
    """Say that every path may need an API key, except the paths that `Auth` leaves open."""
    scheme = {"type": "http", "scheme": "bearer", "description": "Where the server has keys."}
    spec["components"]["securitySchemes"] = {"key": scheme}
    for path, operations in spec["paths"].items():
        for operation in operations.values():
            operation["security"] = [{}] if path in OPEN_PATHS else [{"key": []}, {}]


def _show_errors(spec: dict[str, Any]) -> None:
    shared = {name: example for some in ERROR_EXAMPLES.values() for name, example in some.items()}
    spec["components"]["examples"] = shared
    for operations in spec["paths"].values():
        for operation in operations.values():
            for status, examples in ERROR_EXAMPLES.items():
                content = operation["responses"][status]["content"]
                refs = {name: {"$ref": f"#/components/examples/{name}"} for name in examples}
                content["application/json"]["examples"] = refs


def text() -> str:
    """The document as the text of a JSON file."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the document, or check it. Return the exit status."""
    return write_or_check(text(), STORED, "server.document.openapi")


if __name__ == "__main__":
    sys.exit(main())
