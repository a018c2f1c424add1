"""The base classes and types of all wire models.

Requests are strict JSON. A bool or a string is not accepted as a number, and neither are NaN and
Infinity. Unknown fields are ignored. An explicit null counts as a field that was left out.
Responses contain exactly the fields that were set, so a null is sent only where it was set.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_LIST_ITEMS = 2048
# Limits of every list in a request: its length, and no more checks after the first wrong item.
LIST_LIMITS = (Field(fail_fast=True, max_length=MAX_LIST_ITEMS),)

INT64_MAX = 2**63 - 1

Seed = Annotated[int, Field(ge=-INT64_MAX - 1, le=INT64_MAX)]


class RequestModel(BaseModel):
    """Base of what clients send: strict types, unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False, frozen=True)


class ResponseModel(BaseModel):
    """Base of what clients receive."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    def wire(self) -> bytes:
        """The JSON body, with the fields that were set, nulls included."""
        return self.model_dump_json(exclude_unset=True).encode()
