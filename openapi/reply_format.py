"""The format of a reply: any text, any JSON object, or JSON that matches a schema."""

from typing import Annotated, Any, Literal

from pydantic import Field

from openapi.base import RequestModel

FormatType = Literal["text", "json_object", "json_schema"]


class JsonSchema(RequestModel):
    """A schema and its name. The reply matches it whether `strict` is set or not."""

    name: Annotated[str, Field(max_length=64)]
    description: str | None = None
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    strict: bool | None = None


class ResponseFormat(RequestModel):
    """The type `json_schema` needs the field `json_schema`."""

    type: FormatType
    json_schema: JsonSchema | None = None
