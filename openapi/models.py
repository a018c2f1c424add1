"""`GET /v1/models`, `GET /v1/models/{id}` and `GET /v1/audio/models`."""

from typing import Literal

from openapi.base import ResponseModel


class Model(ResponseModel):
    """A model, under its id or one of its aliases."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(ResponseModel):
    """Every model name that requests may use."""

    object: Literal["list"]
    data: list[Model]


class SpeechModelList(ResponseModel):
    """The model names that speech requests may use. `models` and `data` are the same list."""

    object: Literal["list"]
    models: list[Model]
    data: list[Model]
