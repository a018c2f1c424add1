"""The table of what can be served: a name for `--model`, and what builds it.

`embedded` is both models that come with the install, `piper-joe` only the one that speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.executors.process import ProcessExecutor
from stages.executors.thread import ThreadExecutor

if TYPE_CHECKING:
    from stages.executors.executor import Executor
    from stages.pipelines.config import BuildConfig
    from stages.pipelines.deployment import Deployment

EXECUTORS: dict[str, type[Executor]] = {"thread": ThreadExecutor, "process": ProcessExecutor}
MODELS = ("embedded", "piper-joe", "fake")


def build(model: str, config: BuildConfig) -> Deployment:
    """The deployment that `model` names; ValueError for a name that is not in MODELS.

    Imports a builder only when it is asked for: the fakes run without torch.
    """
    executor = EXECUTORS[config.executor]
    if model in ("embedded", "piper-joe"):
        from stages.pipelines.embedded import build_embedded

        return build_embedded(config, executor, chats=model == "embedded")
    if model == "fake":
        from stages.pipelines.fake import build_fake

        return build_fake(executor, config.thinker, config.talker, config.code2wav)
    raise ValueError(f"no model {model!r}; there are {', '.join(MODELS)}")
