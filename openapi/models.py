"""`GET /v1/models` and `GET /v1/models/{id}`."""

from typing import Literal

from openapi.base import ResponseModel


class Model(ResponseModel):
    """A model, under its id or under one of its other names."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(ResponseModel):
    """Every name that requests may use."""

    object: Literal["list"]
    data: list[Model]
