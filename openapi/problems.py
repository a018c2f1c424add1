"""What is wrong with a request: message, field and code, in the words of OpenAI's API.

One table turns pydantic's error types into messages. Only the first error of a request is reported.
A message repeats at most 64 characters of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

BAD_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using "
    "your HTTP library correctly. The API expects a JSON payload, but what was sent was not valid "
    "JSON.)"
)
BAD_BODY = "Invalid request body: expected a JSON object."

MAX_ECHO_CHARS = 64


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request is refused. `param` is the field at fault, such as `messages[0].content`."""

    message: str
    param: str | None = None
    code: str | None = None


def problem_of(error: ValidationError) -> Problem:
    """The first error of a request."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return Problem(BAD_JSON)
    param = param_of(first["loc"])
    if not param:
        return Problem(BAD_BODY)
    code, message_of = MESSAGES.get(first["type"], ("invalid_value", _other))
    return Problem(message_of(param, first), param, code)


def param_of(loc: tuple[int | str, ...]) -> str:
    """The path of a field: `("messages", 0, "content")` becomes `messages[0].content`.

    Pydantic's names for the branches of a union are left out.
    """
    steps = (step for step in loc if not _is_branch(step))
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return "".join(parts).removeprefix(".")


def _is_branch(step: int | str) -> bool:
    """Whether `step` is a type in a union, such as `str` or `dict[str,any]`, and not a field."""
    return isinstance(step, str) and (step in ("str", "int", "float", "bool") or "[" in step)


def missing(param: str) -> Problem:
    """A required field is missing."""
    return Problem(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")


def too_long(param: str, limit: int, length: int) -> Problem:
    """A text has more code points than allowed."""
    message = (
        f"Invalid '{param}': string too long. Expected a string with maximum length {limit}, "
        f"but got a string with length {length} instead."
    )
    return Problem(message, param, "string_above_max_length")


def unsupported(param: str, message: str) -> Problem:
    """A valid value that this server or this model does not support."""
    return Problem(message, param, "unsupported_value")


def _type_name(value: object) -> str:
    names: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        (int, "an integer"),
        (float, "a decimal"),
        (str, "a string"),
        (list, "an array"),
        (dict, "an object"),
        (type(None), "null"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "something else")


def _short_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_ECHO_CHARS else text[:MAX_ECHO_CHARS] + "..."


def _missing(param: str, _error: ErrorDetails) -> str:
    return missing(param).message


def _wrong_type(expected: str) -> Callable[[str, ErrorDetails], str]:
    def message(param: str, error: ErrorDetails) -> str:
        got = _type_name(error["input"])
        return f"Invalid type for '{param}': expected {expected}, but got {got} instead."

    return message


def _not_one_of(param: str, error: ErrorDetails) -> str:
    supported = str(_context(error)["expected"]).replace(" or ", ", ")
    got = _short_repr(error["input"])
    return f"Invalid value for '{param}': {got}. Supported values are: {supported}."


def _out_of_range(side: str, relation: str, key: str) -> Callable[[str, ErrorDetails], str]:
    def message(param: str, error: ErrorDetails) -> str:
        limit, got = _context(error)[key], _short_repr(error["input"])
        shown = limit if isinstance(limit, int) else f"{limit:g}"
        expected = f"Expected a value {relation} {shown}"
        return f"Invalid '{param}': {side}. {expected}, but got {got} instead."

    return message


def _not_finite(param: str, _error: ErrorDetails) -> str:
    return f"Invalid '{param}': expected a finite number."


def _string_too_long(param: str, error: ErrorDetails) -> str:
    return too_long(param, _context(error)["max_length"], len(error["input"])).message


def _wrong_length(side: str, bound: str, key: str) -> Callable[[str, ErrorDetails], str]:
    def message(param: str, error: ErrorDetails) -> str:
        context = _context(error)
        kind = "object" if context["field_type"] == "Dictionary" else "array"
        return (
            f"Invalid '{param}': {kind} too {side}. Expected an {kind} with {bound} length "
            f"{context[key]}, but got an {kind} with length {len(error['input'])} instead."
        )

    return message


def _wrong_pattern(param: str, error: ErrorDetails) -> str:
    pattern = _context(error)["pattern"]
    return f"Invalid value for '{param}': it must match the regular expression {pattern}"


def _other(param: str, error: ErrorDetails) -> str:
    return f"Invalid value for '{param}': {error['msg']}."


def _context(error: ErrorDetails) -> Mapping[str, Any]:
    return error.get("ctx", {})


MessageOf = Callable[[str, "ErrorDetails"], str]

# From the error types of pydantic to a code and a message.
MESSAGES: Mapping[str, tuple[str, MessageOf]] = {
    "missing": ("missing_required_parameter", _missing),
    "string_type": ("invalid_type", _wrong_type("a string")),
    "int_type": ("invalid_type", _wrong_type("an integer")),
    "int_from_float": ("invalid_type", _wrong_type("an integer")),
    "float_type": ("invalid_type", _wrong_type("a number")),
    "bool_type": ("invalid_type", _wrong_type("a boolean")),
    "list_type": ("invalid_type", _wrong_type("an array")),
    "dict_type": ("invalid_type", _wrong_type("an object")),
    "model_type": ("invalid_type", _wrong_type("an object")),
    "literal_error": ("invalid_value", _not_one_of),
    "greater_than": ("number_below_min_value", _out_of_range("number too small", ">", "gt")),
    "greater_than_equal": ("number_below_min_value", _out_of_range("number too small", ">=", "ge")),
    "less_than_equal": ("number_above_max_value", _out_of_range("number too large", "<=", "le")),
    "finite_number": ("invalid_value", _not_finite),
    "string_pattern_mismatch": ("invalid_value", _wrong_pattern),
    "string_too_long": ("string_above_max_length", _string_too_long),
    "too_short": ("array_below_min_length", _wrong_length("short", "minimum", "min_length")),
    "too_long": ("array_above_max_length", _wrong_length("long", "maximum", "max_length")),
}
