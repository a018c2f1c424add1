"""The table of what can be served: a name for `--model`, and what builds it.

`embedded` is both models that come with the install, `piper-joe` only the one that speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.pipelines.config import BuildConfig
    from stages.pipelines.deployment import Deployment

MODELS = ("embedded", "piper-joe", "fake")


def build(model: str, config: BuildConfig) -> Deployment:
    """The deployment that `model` names; ValueError for a name that is not in MODELS.

    Imports a builder only when it is asked for: the fakes run without torch.
    """
    if model in ("embedded", "piper-joe"):
        from stages.pipelines.embedded import build_embedded

        return build_embedded(config, chats=model == "embedded")
    if model == "fake":
        from stages.pipelines.fake import build_fake

        return build_fake(config.thinker, config.talker, config.code2wav)
    raise ValueError(f"no model {model!r}; there are {', '.join(MODELS)}")
