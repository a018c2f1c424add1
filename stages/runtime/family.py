"""The family contract: what a folder under `stages/models/` offers, so that its models are served.

A family is an object named `FAMILY` in the module that the registry names. It is free of torch, so
that its models can be listed, checked and measured without loading them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stages.contract.model import ModelSpec, VoiceSpec
    from stages.contract.roles import Role
    from stages.runtime.builder import Builder, SpeechStages
    from stages.runtime.placement import BuildConfig


@dataclass(frozen=True, slots=True)
class WeightFile:
    """A file that a model needs, and its published SHA-256; "" if none was published."""

    path: Path
    sha256: str = ""

    def state(self) -> str:
        """`checked`, `present` (no published hash), `wrong` or `missing`. Reads the whole file."""
        if not self.path.is_file():
            return "missing"
        if not self.sha256:
            return "present"
        with self.path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        return "checked" if found == self.sha256 else "wrong"


class Family(Protocol):
    """See above. `kinds` are the values of `model_type` in the `config.json` that it can read.

    `speaks_with` names the models whose speech stages its own models use.
    """

    kinds: Sequence[str]
    speaks_with: Sequence[str]
    has_collection: bool

    def build(self, source: str, builder: Builder) -> Sequence[ModelSpec]:
        """The models of `source`: an embedded name, a folder, or a model of the hub.

        Nothing is loaded: that is the workers' work. Raises CheckpointError, StartError.
        """

    def speech(self, source: str, builder: Builder) -> SpeechStages:
        """What the models of `source` speak with, for other models too.

        Raises CheckpointError if they do not speak.
        """

    def voices(self, source: str, config: BuildConfig) -> Sequence[VoiceSpec]:
        """The voices that `source` itself has now; empty if it has none of its own."""

    def fetch_voice(self, name: str, config: BuildConfig) -> Path:
        """Fetch a voice from the family's public collection; its file.

        Only called if the family `has_collection`. Raises OSError if it cannot be fetched.
        """

    def weights(self, source: str, config: BuildConfig) -> Sequence[WeightFile]:
        """Every file that `source` needs; what is missing is fetched. Raises CheckpointError."""

    def memory_bytes(self, source: str, config: BuildConfig) -> Mapping[Role, int]:
        """What the weights of each stage take in one worker, without caches of requests."""
