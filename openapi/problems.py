"""What is wrong with a request, said as OpenAI says it: message, field, code.

One table from pydantic's error types to sentences; the first error of a request is the one told.
Where a value is repeated it is cut short; texts are never repeated.
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
    """A reason to refuse a request. `param` is the field, as `messages[0].content`."""

    message: str
    param: str | None = None
    code: str | None = None


def problem_of(error: ValidationError) -> Problem:
    """The first thing that is wrong with a request."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return Problem(BAD_JSON)
    param = param_of(first["loc"])
    if not param:
        return Problem(BAD_BODY)
    code, sentence = SENTENCES.get(first["type"], ("invalid_value", _other))
    return Problem(sentence(param, first), param, code)


def param_of(loc: tuple[int | str, ...]) -> str:
    """`("messages", 0, "content")` as `messages[0].content`, without the branches of unions."""
    steps = (step for step in loc if not _is_branch(step))
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return "".join(parts).removeprefix(".")


def _is_branch(step: int | str) -> bool:
    """Whether pydantic means a type of a union by it, not a field: `str`, `dict[str,any]`."""
    return isinstance(step, str) and (step in ("str", "int", "float", "bool") or "[" in step)


def missing(param: str) -> Problem:
    """A field that has to be there is not."""
    return Problem(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")


def too_long(param: str, limit: int, length: int) -> Problem:
    """A text has more code points than it may."""
    message = (
        f"Invalid '{param}': string too long. Expected a string with maximum length {limit}, "
        f"but got a string with length {length} instead."
    )
    return Problem(message, param, "string_above_max_length")


def unsupported(param: str, message: str) -> Problem:
    """A value that means something, but not here or not yet."""
    return Problem(message, param, "unsupported_value")


def _kind(value: object) -> str:
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        (int, "an integer"),
        (float, "a decimal"),
        (str, "a string"),
        (list, "an array"),
        (dict, "an object"),
        (type(None), "null"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "something else")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_ECHO_CHARS else text[:MAX_ECHO_CHARS] + "..."


def _missing(param: str, _error: ErrorDetails) -> str:
    return missing(param).message


def _wrong_type(expected: str) -> Callable[[str, ErrorDetails], str]:
    def sentence(param: str, error: ErrorDetails) -> str:
        got = _kind(error["input"])
        return f"Invalid type for '{param}': expected {expected}, but got {got} instead."

    return sentence


def _not_one_of(param: str, error: ErrorDetails) -> str:
    supported = str(_context(error)["expected"]).replace(" or ", ", ")
    got = _shown(error["input"])
    return f"Invalid value for '{param}': {got}. Supported values are: {supported}."


def _out_of_range(side: str, relation: str, key: str) -> Callable[[str, ErrorDetails], str]:
    def sentence(param: str, error: ErrorDetails) -> str:
        wanted = f"Expected a value {relation} {_context(error)[key]:g}"
        return f"Invalid '{param}': {side}. {wanted}, but got {_shown(error['input'])} instead."

    return sentence


def _not_finite(param: str, _error: ErrorDetails) -> str:
    return f"Invalid '{param}': expected a finite number."


def _string_too_long(param: str, error: ErrorDetails) -> str:
    return too_long(param, _context(error)["max_length"], len(error["input"])).message


def _array_length(side: str, bound: str, key: str) -> Callable[[str, ErrorDetails], str]:
    def sentence(param: str, error: ErrorDetails) -> str:
        wanted = f"Expected an array with {bound} length {_context(error)[key]}"
        got = f"got an array with length {_context(error)['actual_length']}"
        return f"Invalid '{param}': {side}. {wanted}, but {got} instead."

    return sentence


def _other(param: str, error: ErrorDetails) -> str:
    return f"Invalid value for '{param}': {error['msg']}."


def _context(error: ErrorDetails) -> Mapping[str, Any]:
    return error.get("ctx", {})


Sentence = Callable[[str, "ErrorDetails"], str]

SENTENCES: Mapping[str, tuple[str, Sentence]] = {
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
    "string_too_long": ("string_above_max_length", _string_too_long),
    "too_short": (
        "array_below_min_length",
        _array_length("array too short", "minimum", "min_length"),
    ),
    "too_long": (
        "array_above_max_length",
        _array_length("array too long", "maximum", "max_length"),
    ),
}
