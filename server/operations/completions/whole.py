"""Completions in one JSON body, sent when all choices are complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from openapi.completions.response import CompletionChoice
from server.operations.completions.logprobs import LogprobLists
from server.operations.shared.usage import UsageCounter
from stages.contract.roles import Role

if TYPE_CHECKING:
    from openapi.completions.response import Completion
    from server.operations.completions.plan import CompletionPlan
    from server.serving.outputs import Outputs
    from stages.contract.messages import TokenScore


async def whole_completion(plan: CompletionPlan, empty: Completion, outputs: Outputs) -> Completion:
    """The body, once all outputs were read. Raises the error of a request that failed.

    `empty` is the reply without choices.
    """
    usage = UsageCounter(len(plan.requests), plan.num_per_prompt)
    texts = [[echo] for echo in plan.echoes]
    scores: list[list[TokenScore]] = [[] for _ in plan.echoes]
    async for output in outputs:
        usage.add(output)
        if output.role == Role.THINKER and not output.is_end:
            texts[output.index].append(output.data.text)
            scores[output.index] += output.data.scores
    choices = [
        CompletionChoice(
            text="".join(texts[i]),
            index=i,
            logprobs=LogprobLists().add(scores[i]),
            finish_reason=cast("Any", usage.finish_reason(i)),
        )
        for i in range(len(texts))
    ]
    return empty.model_copy(update={"choices": choices, "usage": usage.usage})
