"""Request settings of a family: a frozen dataclass of its own, filled and checked by itself.

The server collects what a request sets and hands it to the family (`ModelSpec.speech_settings`). It
knows neither the names nor their meaning; it only turns a `SettingError` into a refusal that names
the field.
"""

from __future__ import annotations

from dataclasses import fields
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Mapping

SettingsT = TypeVar("SettingsT")

WORDS = {float: "a number", int: "an integer", str: "a string", bool: "true or false"}

# A model that cannot follow these speaks without them, as OpenAI's tts-1 does.
HINTS = ("instructions", "language")


class SettingError(ValueError):
    """A request sets what the family does not have, or to a value that it does not take.

    `field` is the name in the request. `is_unknown`: the family has no such setting.
    """

    def __init__(self, field: str, message: str, *, is_unknown: bool = False) -> None:
        super().__init__(message)
        self.field = field
        self.is_unknown = is_unknown


def fill(kind: type[SettingsT], values: Mapping[str, Any], extra: Mapping[str, Any]) -> SettingsT:
    """The settings `kind`, a dataclass, with the fields that a request sets.

    `values` are fields of the API. Raises SettingError for one that `kind` does not have, except
    for hints, which are dropped. `extra` are other fields of the request: those that `kind` has are
    taken, the others are ignored, as unknown fields are everywhere.
    """
    names = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    for name in values.keys() - names:
        if name not in HINTS:
            raise SettingError(name, "this model does not have it", is_unknown=True)
    own = {name: extra[name] for name in names & extra.keys() if extra[name] is not None}
    hints = get_type_hints(kind)
    for name, value in own.items():
        _check_type(name, value, hints[name])
    return kind(**own, **{name: value for name, value in values.items() if name in names})


def _check_type(name: str, value: object, hint: object) -> None:
    """The API has checked its own fields; those that only the family knows are checked here."""
    kinds = get_args(hint) or (hint,)
    is_bool = isinstance(value, bool)
    if float in kinds and isinstance(value, int | float) and not is_bool and isfinite(value):
        return
    if int in kinds and isinstance(value, int) and not is_bool:
        return
    if any(kind in kinds and isinstance(value, kind) for kind in (str, bool)):
        return
    names = [WORDS[kind] for kind in kinds if kind in WORDS]
    raise SettingError(name, f"it must be {' or '.join(names)}")
