"""`GET /v1/models`, `GET /v1/models/{id}` and `GET /v1/audio/models`."""

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


class SpeechModelList(ResponseModel):
    """The names that speech requests may use, under the two names by which clients look for it."""

    object: Literal["list"]
    models: list[Model]
    data: list[Model]
