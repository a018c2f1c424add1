"""Turns settings into command line options, each with its name, help and choices."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args, get_origin

from server.config.settings import FIELDS, STAGE_FIELDS, StageSettings
from server.config.sources import LoadedSettings, default_file, load, option_of
from stages.contract.roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic.fields import FieldInfo

# Other users of the machine can see command lines, so keys come from a file or the environment.
SECRET_SETTINGS = ("api_keys",)
ALL_SETTINGS = tuple(name for name in FIELDS if name not in SECRET_SETTINGS)
MODEL_SETTINGS = (
    "model",
    "aliases",
    "cache_dir",
    "device",
    "dtype",
    "executor",
    *STAGE_FIELDS,
    "ray_address",
    "phonemizer",
    "voice",
    "voices_dir",
    "max_loaded_voices",
    "recordings_dir",
    "clean",
    "code_announcement",
    "log_level",
    "log_format",
)
STAGE_HELP = f"""\
--stages.ROLE.KEY VALUE sets what differs for one stage: --stages.talker.device cuda:0
ROLE: {", ".join(Role)}
KEY: {", ".join(StageSettings.model_fields)}"""


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Add these settings as options of a command, and `--config`.

    The help lists the options of stages in one paragraph, because there are many of them.
    """
    chosen = list(names)
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--config", type=Path, metavar="FILE", help=f"the settings file ({_short(default_file())})"
    )
    for name in chosen:
        if name not in STAGE_FIELDS:
            _add_setting(group, name, _help(FIELDS[name]))
    of_stages = [name for name in chosen if name in STAGE_FIELDS]
    if of_stages:
        group = parser.add_argument_group("settings of one stage", STAGE_HELP)
    for name in of_stages:
        _add_setting(group, name, argparse.SUPPRESS)


def load_settings(options: argparse.Namespace) -> LoadedSettings:
    """Load all settings. Options from the command line come first. Raises SettingsError."""
    values = vars(options)
    given = {
        name: ",".join(values[name]) if isinstance(values[name], list) else values[name]
        for name in FIELDS
        if values.get(name) is not None
    }
    return load(given, options.config)


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """The allowed values of a setting that is a Literal; empty for any other setting."""
    return tuple(
        value for part in _parts(field) if get_origin(part) is Literal for value in get_args(part)
    )


def format_value(value: object) -> str:
    """Format a value as in an environment variable. For secrets, show only their number."""
    match value:
        case None:
            return "unset"
        case "":
            return "empty"
        case bool():
            return str(value).lower()
        case Path():
            return _short(value)
        case tuple() if value and isinstance(value[0], bytes):
            return f"{len(value)} {'key' if len(value) == 1 else 'keys'}"
        case tuple():
            return ", ".join(map(str, value)) or "none"
        case Mapping():
            return ", ".join(f"{key}={one}" for key, one in value.items()) or "none"
        case float():
            return f"{value:g}"
    return str(value)


def _add_setting(group: argparse._ArgumentGroup, name: str, text: str) -> None:
    """Add an option. That of a list or a mapping may be repeated."""
    field = FIELDS[name]
    if field.annotation is bool:
        action = argparse.BooleanOptionalAction
        group.add_argument(option_of(name), dest=name, action=action, help=text)
        return
    group.add_argument(
        option_of(name),
        dest=name,
        action="append" if get_origin(field.annotation) in (tuple, Mapping) else "store",
        type=Path if Path in _parts(field) else str,
        choices=choices_of(field) or None,
        metavar=None if choices_of(field) else re.split("[._]", name)[-1].upper(),
        help=text,
    )


def _help(field: FieldInfo) -> str:
    text = f"{field.description} ({format_value(field.default)})"
    return text.replace("%", "%%").replace("\n", " ")


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _parts(field: FieldInfo) -> Iterator[object]:
    """The type of a field, or the members of its union, with `Annotated` removed."""
    annotation = field.annotation
    members = () if get_origin(annotation) is Literal else get_args(annotation)
    for member in members or (annotation,):
        yield get_args(member)[0] if get_origin(member) is Annotated else member
