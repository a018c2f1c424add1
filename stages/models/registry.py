"""The table of model families, and of the names under which models come with the install.

A model that is asked for is one of these names, or a checkpoint: a folder, or a model of the hub,
whose family is found by the `model_type` of its own `config.json`. To add a family, add a line.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from stages.contract.errors import CheckpointError
from stages.runtime.builder import Builder
from stages.weights.hub import model_folder
from stages.weights.json_file import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stages.contract.model import VoiceSpec
    from stages.contract.roles import Role
    from stages.runtime.builder import SpeechStages
    from stages.runtime.deployment import Deployment
    from stages.runtime.family import Family, WeightFile
    from stages.runtime.placement import BuildConfig

FAMILIES = {
    "fake": "stages.models.fake.family",
    "llama": "stages.models.llama.family",
    "piper": "stages.models.piper.family",
    "qwen3_tts": "stages.models.qwen3_tts.family",
}
EMBEDDED = {"piper-joe": "piper", "smollm2-joe": "llama", "fake": "fake"}
GROUPS = {"embedded": ("piper-joe", "smollm2-joe")}


def build(sources: Sequence[str], config: BuildConfig) -> Deployment:
    """The deployment of these models, in order; a name that is given twice counts once.

    Raises CheckpointError if a model is not there or is of an unknown kind, before any is built.
    """
    families = {source: family_of(source) for source in expanded(sources)}
    builder = Builder(config, _speech)
    models = [
        model for source, family in families.items() for model in family.build(source, builder)
    ]
    return builder.deployment(models)


def expanded(sources: Sequence[str]) -> list[str]:
    """The sources with `embedded` replaced by the models that it stands for, each once."""
    names = [name for source in sources for name in GROUPS.get(source, (source,))]
    return list(dict.fromkeys(names))


def weight_files(sources: Sequence[str], config: BuildConfig) -> list[WeightFile]:
    """Every file that these models need, fetched where it is missing. Raises CheckpointError."""
    files = {
        file.path: file
        for source in with_speakers(sources)
        for file in family_of(source).weights(source, config)
    }
    return list(files.values())


def memory_bytes(sources: Sequence[str], config: BuildConfig) -> dict[str, Mapping[Role, int]]:
    """How much memory each model's stages will take, by model and role. Raises CheckpointError."""
    return {
        source: family_of(source).memory_bytes(source, config) for source in with_speakers(sources)
    }


def fetch_voice(name: str, sources: Sequence[str], config: BuildConfig) -> Path:
    """Fetch a voice from the first of these models whose family has a collection; its file.

    Raises OSError, CheckpointError.
    """
    for source in with_speakers(sources):
        family = family_of(source)
        if family.has_collection:
            return family.fetch_voice(name, config)
    raise CheckpointError(f"none of {', '.join(sources)} has a collection of voices")


def speaking_source(sources: Sequence[str], config: BuildConfig) -> str:
    """The first of these models that has voices, or whose voices one of them uses.

    Raises CheckpointError if there is none.
    """
    for source in with_speakers(sources):
        if family_of(source).voices(source, config):
            return source
    raise CheckpointError(f"none of {', '.join(sources)} speaks")


def voices(sources: Sequence[str], config: BuildConfig) -> list[VoiceSpec]:
    """The voices of these models as they are now, each once. Raises CheckpointError."""
    found = {
        voice.name: voice
        for source in with_speakers(sources)
        for voice in family_of(source).voices(source, config)
    }
    return list(found.values())


def with_speakers(sources: Sequence[str]) -> list[str]:
    """The sources, each followed by the models that it speaks with; each once."""
    names = [
        name for source in expanded(sources) for name in (source, *family_of(source).speaks_with)
    ]
    return list(dict.fromkeys(names))


def family_of(source: str) -> Family:
    """The family of a name or of a checkpoint. Raises CheckpointError."""
    if source in EMBEDDED:
        return _family(EMBEDDED[source])
    if "/" not in source and not Path(source).is_dir():
        known = ", ".join((*GROUPS, *EMBEDDED))
        raise CheckpointError(f"no model {source!r}: no folder of that name, and none of {known}")
    folder = model_folder(source, ("config.json",), ("config.json",))
    kind = read_json(folder / "config.json").get("model_type")
    families = [_family(name) for name in FAMILIES]
    for family in families:
        if kind in family.kinds:
            return family
    kinds = ", ".join(sorted(kind for family in families for kind in family.kinds))
    raise CheckpointError(
        f"{source}: its config.json says model_type {kind!r}; the kinds that are known are {kinds}"
    )


def _family(name: str) -> Family:
    family: Family = importlib.import_module(FAMILIES[name]).FAMILY
    return family


def _speech(source: str, builder: Builder) -> SpeechStages:
    return family_of(source).speech(source, builder)
