"""Samples the next token from logits, by the request's own settings and seed; scores tokens.

It takes one random number per token and inverts the distribution. The random number is a function
of the seed and the token's number. So a request draws the same alone, in a batch, or if a step is
repeated.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import torch

from stages.kernels.device import bring
from stages.kernels.splitmix64 import uniform

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from stages.contract.messages import Sampling

_MIN_TEMPERATURE = 1e-6
# 32 random bits never draw a weight of e^-80. Exponentials below e^-87 are subnormal numbers and
# take 16 times as long, 0.4 ms a row at a low temperature. The exponential of -inf is slow too.
_MIN_LOG_WEIGHT = -80.0
_NUM_CANDIDATES = 512  # usually contain the nucleus; sorting the vocabulary takes six times as long


class Draw(NamedTuple):
    """What decides the token of one row.

    `number` is the token's number in the reply, and `written` are the reply's tokens before it.
    `allowed` [vocabulary] says which tokens may come; None allows all.
    """

    sampling: Sampling
    number: int
    written: Sequence[int] = ()
    allowed: NDArray[np.bool_] | None = None


def check_sampling(sampling: Sampling) -> None:
    """Raise ValueError for settings that cannot be used."""
    if not (math.isfinite(sampling.temperature) and sampling.temperature >= 0):
        raise ValueError(f"temperature must be 0 or more, not {sampling.temperature}")
    if not 0 <= sampling.top_p <= 1:
        raise ValueError(f"top_p must be from 0 to 1, not {sampling.top_p}")
    if sampling.top_k < 0:
        raise ValueError(f"top_k must be 0 or more, not {sampling.top_k}")


@torch.inference_mode()
def sample(logits: Tensor, draws: Sequence[Draw]) -> list[int]:
    """Logits [rows, vocabulary] and a `Draw` for each row → tokens. Does not change the logits."""
    if not draws:
        return []
    if all(_is_plain(draw) for draw in draws):  # the usual case
        return _draw_together(logits, draws)
    chosen = []
    for row, draw in zip(logits, draws, strict=True):
        sampling = draw.sampling
        shaped = _shaped(row, draw)
        if sampling.temperature > 0:
            chosen.append(_draw(shaped, sampling, uniform(sampling.seed, draw.number)))
        else:
            chosen.append(shaped.argmax())
    tokens: list[int] = torch.stack(chosen).tolist()
    return tokens


@torch.inference_mode()
def score(logits: Tensor, token: int, num_top: int) -> tuple[float, list[tuple[int, float]]]:
    """The log probability of `token` in logits [vocabulary], and the `num_top` likeliest tokens
    with theirs."""
    logprobs = logits.float().log_softmax(-1)
    values, ids = logprobs.topk(num_top)
    return float(logprobs[token]), list(zip(ids.tolist(), values.tolist(), strict=True))


def _shaped(logits: Tensor, draw: Draw) -> Tensor:
    """Logits with the bias, the penalties and the allowed tokens applied.

    Penalties follow OpenAI's formula: one is linear in the count, one is applied once. Returns
    `logits` itself if the request has none of these.
    """
    sampling = draw.sampling
    changes = dict(sampling.bias)
    if draw.written and (sampling.frequency_penalty or sampling.presence_penalty):
        for token, count in Counter(draw.written).items():
            penalty = sampling.presence_penalty + count * sampling.frequency_penalty
            changes[token] = changes.get(token, 0.0) - penalty
    if changes:
        index = torch.tensor(list(changes), device=logits.device)
        values = torch.tensor(list(changes.values()), dtype=logits.dtype, device=logits.device)
        logits = logits.index_add(0, index, values)
    if draw.allowed is not None:
        allowed = torch.from_numpy(draw.allowed).to(logits.device)
        logits = logits.masked_fill(~allowed, -math.inf)
    return logits


def _is_plain(draw: Draw) -> bool:
    """Whether only the temperature changes the distribution."""
    sampling = draw.sampling
    untouched = not (sampling.bias or draw.written) and draw.allowed is None
    return untouched and sampling.temperature > 0 and sampling.top_p >= 1 and not sampling.top_k


def _draw_together(logits: Tensor, draws: Sequence[Draw]) -> list[int]:
    """`_draw` for plain rows, with as few operations for all as for one."""
    chances = [[uniform(draw.sampling.seed, draw.number)] for draw in draws]
    temperatures = [[draw.sampling.temperature] for draw in draws]
    weights = _weights(logits, bring(torch.tensor(temperatures), logits.device))
    sums = weights.cumsum(-1, dtype=torch.float64)
    picks = bring(torch.tensor(chances, dtype=torch.float64), logits.device) * sums[:, -1:]
    tokens: list[int] = torch.searchsorted(sums, picks, right=True).flatten().tolist()
    return tokens


def _draw(logits: Tensor, sampling: Sampling, chance: float) -> Tensor:
    """Draw one token. Applies temperature, then top-k, then top-p to what is left (Holtzman et al.
    2020)."""
    weights = _weights(logits, torch.tensor(sampling.temperature, device=logits.device))
    ids = None
    if 0 < sampling.top_k < len(weights):
        weights, ids = weights.topk(sampling.top_k)
    if sampling.top_p < 1:
        weights, order = _nucleus(weights / weights.sum(), sampling.top_p)
        ids = order if ids is None else ids[order]
    sums = weights.cumsum(0, dtype=torch.float64)
    pick = torch.searchsorted(sums, chance * sums[-1], right=True)
    return pick if ids is None else ids[pick]


def _weights(logits: Tensor, temperature: Tensor) -> Tensor:
    """Unnormalised probabilities [..., vocabulary]; negligible ones are 0."""
    # The largest is subtracted first, so that a temperature near 0 does not overflow.
    below = logits - logits.amax(-1, keepdim=True)
    below.div_(temperature.clamp_min(_MIN_TEMPERATURE)).clamp_min_(_MIN_LOG_WEIGHT)
    return torch.threshold_(below.exp_(), 2 * math.exp(_MIN_LOG_WEIGHT), 0.0)


def _nucleus(probabilities: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """The probabilities of the likeliest tokens that together reach `top_p`, and these tokens."""
    values, ids = probabilities.topk(min(_NUM_CANDIDATES, len(probabilities)))
    if values.sum() < top_p:
        values, ids = probabilities.sort(descending=True)
    before = values.cumsum(0) - values
    size = max(1, int((before < top_p).sum()))
    return values[:size], ids[:size]
