"""The sources of the settings: the command line, the environment, a file, and the defaults.

The setting `port` is given as `--port`, as NANO_OMNI_PORT, or as `port` in the settings file. The
first of these counts. `stages.talker.device` is `--stages.talker.device`,
NANO_OMNI_STAGES__TALKER__DEVICE, or `device` in the table `[stages.talker]`. Unknown names and
invalid values are errors. No other file reads the environment.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from server.config.settings import FIELDS, STAGES, Settings, SettingsError, StageSettings, flat
from stages.contract.roles import Role

PREFIX = "NANO_OMNI_"
FILE_VARIABLE = PREFIX + "CONFIG"
OTLP_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"  # OpenTelemetry's own variable
CLIENT_KEY_VARIABLE = PREFIX + "API_KEY"  # the key that client commands send


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings. `origins` names the source of each value that was set anywhere."""

    settings: Settings
    origins: Mapping[str, str]


def load_settings(given: Mapping[str, object], file: Path | None = None) -> Settings:
    """The settings without their origins; otherwise the same as `load`."""
    return load(given, file).settings


def load(given: Mapping[str, object], file: Path | None = None) -> LoadedSettings:
    """The settings from `given` (a command line), the environment, `file`, and the defaults.

    If `file` is None, the file that NANO_OMNI_CONFIG names is read, or else `default_file`, which
    need not exist. Raises SettingsError.
    """
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    sources = (
        {name: (value, option_of(name)) for name, value in given.items()},
        _environment(),
        _in_file(file),
    )
    for source in sources:
        for name, (value, origin) in source.items():
            if name not in values:
                values[name], origins[name] = value, origin
    try:
        return LoadedSettings(Settings.model_validate(_nested(values)), origins)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = _name_at(first["loc"])
        raise SettingsError(
            f"setting {name}: {first['msg'].removeprefix('Value error, ')} (from {origins[name]})"
        ) from error


def default_file() -> Path:
    """The path of the settings file, by the XDG base directory specification."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"  # noqa: TID251 - the only file that does
    return Path(home).expanduser() / "nano-omni" / "config.toml"


def client_key() -> str:
    """The API key that client commands send; empty if it is not set."""
    return os.environ.get(CLIENT_KEY_VARIABLE, "")  # noqa: TID251 - the only file that does


def option_of(name: str) -> str:
    """The command-line option of a setting."""
    return f"--{name.replace('_', '-')}"


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.replace(".", "__").upper()


def _nested(values: Mapping[str, object]) -> Mapping[str, object]:
    """The opposite of `flat`: values with full names as tables in tables."""
    root: dict[str, Any] = {}
    for name, value in values.items():
        *tables, key = name.split(".")
        table = root
        for part in tables:
            table = table.setdefault(part, {})
        table[key] = value
    return root


def _name_at(location: tuple[int | str, ...]) -> str:
    """The name of the setting at a location in the tables, or inside the value of one."""
    names = (".".join(map(str, location[:end])) for end in range(1, len(location) + 1))
    return next(name for name in names if name in FIELDS)


def _no_setting(names: Iterable[str]) -> str:
    """The message that there are no such settings. For those of stages it says which there are."""
    listed = ", ".join(sorted(names))
    if STAGES not in listed.lower():
        return f"no setting {listed}"
    keys = ", ".join(StageSettings.model_fields)
    return f"no setting {listed}; stages are {', '.join(Role)}; each has {keys}"


def _environment() -> dict[str, tuple[object, str]]:
    environment = os.environ  # noqa: TID251 - the only file that does
    known = {variable_of(name): name for name in FIELDS}
    found = {name for name in environment if name.startswith(PREFIX)} - {
        FILE_VARIABLE,
        CLIENT_KEY_VARIABLE,
    }
    if unknown := found - set(known):
        raise SettingsError(f"there is {_no_setting(unknown)}")
    given: dict[str, tuple[object, str]] = {
        known[name]: (environment[name], name) for name in found
    }
    if OTLP_VARIABLE in environment:
        given.setdefault("otlp_endpoint", (environment[OTLP_VARIABLE], OTLP_VARIABLE))
    return given


def _in_file(path: Path | None) -> dict[str, tuple[object, str]]:
    chosen = path or os.environ.get(FILE_VARIABLE)  # noqa: TID251 - the only file that does
    path = Path(chosen) if chosen else default_file()
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if not chosen:
            return {}
        raise SettingsError(f"settings file {path}: {error.strerror}") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"settings file {path}: {error}") from error
    values = dict(flat(content))
    if unknown := set(values) - set(FIELDS):
        raise SettingsError(f"settings file {path}: {_no_setting(unknown)}")
    return {name: (value, str(path)) for name, value in values.items()}
