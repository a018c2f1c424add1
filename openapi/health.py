"""`GET /health`, `/health/live` and `/health/ready`."""

from typing import Literal

from openapi.base import ResponseModel


class Health(ResponseModel):
    """`live`: the process answers. `ready`: every stage is up."""

    status: Literal["live", "ready"]
