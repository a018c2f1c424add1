"""`GET /health`, `/health/live` and `/health/ready`."""

from typing import Literal

from openapi.base import ResponseModel


class StageHealth(ResponseModel):
    """How many workers a stage has, and how many of them are running."""

    workers: int
    up: int


class Health(ResponseModel):
    """`live`: the process responds. `ready`: every stage has a worker that is running.

    `stages` is present if the status is `ready`.
    """

    status: Literal["live", "ready"]
    stages: dict[str, StageHealth] | None = None
