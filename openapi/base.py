"""What all wire models share.

Requests are strict JSON: a bool is no number, a string is no number, NaN and Infinity are refused,
unknown fields are ignored, and an explicit null stands for a field that was left out. Responses
are written with the fields that were set, so that a null is on the wire only where it belongs.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_ITEMS = 2048
# Of a list that a client fills: the first wrong item ends its check, and it has a bound.
FEW = (Field(fail_fast=True, max_length=MAX_ITEMS),)

INT64_MAX = 2**63 - 1

Seed = Annotated[int, Field(ge=-INT64_MAX - 1, le=INT64_MAX)]


class RequestModel(BaseModel):
    """Base of what clients send."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False, frozen=True)


class ResponseModel(BaseModel):
    """Base of what clients get."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    def wire(self) -> bytes:
        """The JSON body: the fields that were given, nulls among them."""
        return self.model_dump_json(exclude_unset=True).encode()
