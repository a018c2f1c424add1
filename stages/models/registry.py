"""The table of what can be served: a name for `--model`, and what builds it.

`embedded` is both models that come with the install, `piper-joe` only the one that speaks. Any
other name is that of a checkpoint: a folder, or a model of the hub.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stages.contract.errors import CheckpointError

if TYPE_CHECKING:
    from stages.runtime.deployment import Deployment
    from stages.runtime.placement import BuildConfig

MODELS = ("embedded", "piper-joe", "fake")


def build(model: str, config: BuildConfig) -> Deployment:
    """The deployment that `model` names.

    Raises CheckpointError where a checkpoint is not there or is of no known kind. Imports a builder
    only when it is asked for: the fakes run without torch.
    """
    if model in ("embedded", "piper-joe"):
        from stages.models.embedded import build_embedded

        return build_embedded(config, chats=model == "embedded")
    if model == "fake":
        from stages.models.fake.pipeline import build_fake

        return build_fake(config.thinker, config.talker, config.code2wav)
    if "/" not in model and not Path(model).is_dir():
        known = ", ".join(MODELS)
        raise CheckpointError(f"no model {model!r}: no folder of that name, and none of {known}")
    from stages.models.qwen3_tts.pipeline import build_qwen3_tts

    return build_qwen3_tts(model, config)
