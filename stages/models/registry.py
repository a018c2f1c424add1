"""The models that `--model` can name, and the function that builds each.

`embedded` serves both models that are installed with the server. `piper-joe` serves only the one
that speaks. `fake` serves models without weights. Any other name is a checkpoint: a folder, or a
model of the hub.
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
    """Build the deployment that `model` names.

    Raises CheckpointError if a checkpoint does not exist or its kind is not supported. A family is
    imported only when it is built, so the fake models run without torch.
    """
    if model in ("embedded", "piper-joe"):
        from stages.models.embedded import build_embedded

        return build_embedded(config, chats=model == "embedded")
    if model == "fake":
        from stages.models.fake.pipeline import build_fake

        return build_fake(config.thinker, config.talker, config.code2wav)
    if "/" not in model and not Path(model).is_dir():
        message = f"no model {model!r}: give a folder, a hub model OWNER/NAME, or one of"
        raise CheckpointError(f"{message} {', '.join(MODELS)}")
    from stages.models.qwen3_tts.pipeline import build_qwen3_tts

    return build_qwen3_tts(model, config)
