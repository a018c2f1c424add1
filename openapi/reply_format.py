"""The shape that a reply is kept to: any text, any JSON object, or JSON of a schema."""

from typing import Annotated, Any, Literal

from pydantic import Field

from openapi.base import RequestModel

FormatType = Literal["text", "json_object", "json_schema"]


class JsonSchema(RequestModel):
    """A schema and its name. It is kept to whether `strict` is set or not."""

    name: Annotated[str, Field(max_length=64)]
    description: str | None = None
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    strict: bool | None = None


class ResponseFormat(RequestModel):
    """`json_schema` is needed where the type is of this name."""

    type: FormatType
    json_schema: JsonSchema | None = None
