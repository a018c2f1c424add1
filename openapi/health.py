"""`GET /health`, `/health/live` and `/health/ready`."""

from typing import Literal

from openapi.base import ResponseModel


class StageHealth(ResponseModel):
    """How many workers share the requests of a stage, and how many of them run now."""

    workers: int
    up: int


class Health(ResponseModel):
    """`live`: the process answers. `ready`: every stage has a worker that runs.

    `stages` comes with `ready`, by name.
    """

    status: Literal["live", "ready"]
    stages: dict[str, StageHealth] | None = None
