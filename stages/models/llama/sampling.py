"""Chooses the next token from logits, by the request's own settings and seed; scores tokens.

Chance is a function of (seed, number of the token), so a request draws the same alone, in a batch,
or when a step is done again; one uniform number per token, by inversion of the distribution.
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
# A weight of e^-80 is never drawn with 32 bits of chance. Exponentials that are no normal numbers,
# from e^-87 on, take 16 times as long, 0.4 ms a row at a low temperature; that of -inf is slow too.
_NEGLIGIBLE = -80.0
_CANDIDATES = 512  # usually hold a nucleus; sorting a whole vocabulary takes six times as long


class Draw(NamedTuple):
    """What decides one row: its settings, the token's number in the reply, the tokens before it in
    the reply, and which of the vocabulary may come (None: all)."""

    sampling: Sampling
    number: int
    written: Sequence[int] = ()
    allowed: NDArray[np.bool_] | None = None


def check_sampling(sampling: Sampling) -> None:
    """ValueError for settings that cannot be drawn with."""
    if not (math.isfinite(sampling.temperature) and sampling.temperature >= 0):
        raise ValueError(f"temperature must be 0 or more, not {sampling.temperature}")
    if not 0 <= sampling.top_p <= 1:
        raise ValueError(f"top_p must be from 0 to 1, not {sampling.top_p}")
    if sampling.top_k < 0:
        raise ValueError(f"top_k must be 0 or more, not {sampling.top_k}")


@torch.inference_mode()
def sample(logits: Tensor, draws: Sequence[Draw]) -> list[int]:
    """Logits [rows, vocabulary] and what decides each row → tokens. Does not change the logits."""
    if not draws:
        return []
    if all(_is_plain(draw) for draw in draws):  # as most are
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
    """The log probability of `token` in logits [vocabulary], and the likeliest with theirs."""
    logprobs = logits.float().log_softmax(-1)
    values, ids = logprobs.topk(num_top)
    return float(logprobs[token]), list(zip(ids.tolist(), values.tolist(), strict=True))


def _shaped(logits: Tensor, draw: Draw) -> Tensor:
    """Bias, penalties (OpenAI's formula: linear in the count, and once) and what may come at all.

    Returns `logits` itself where nothing of it was asked for.
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
    """Whether nothing but the temperature shapes the distribution."""
    sampling = draw.sampling
    untouched = not (sampling.bias or draw.written) and draw.allowed is None
    return untouched and sampling.temperature > 0 and sampling.top_p >= 1 and not sampling.top_k


def _draw_together(logits: Tensor, draws: Sequence[Draw]) -> list[int]:
    """`_draw` for plain rows, in as few calls for all as for one."""
    chances = [[uniform(draw.sampling.seed, draw.number)] for draw in draws]
    temperatures = [[draw.sampling.temperature] for draw in draws]
    weights = _weights(logits, bring(torch.tensor(temperatures), logits.device))
    sums = weights.cumsum(-1, dtype=torch.float64)
    picks = bring(torch.tensor(chances, dtype=torch.float64), logits.device) * sums[:, -1:]
    tokens: list[int] = torch.searchsorted(sums, picks, right=True).flatten().tolist()
    return tokens


def _draw(logits: Tensor, sampling: Sampling, chance: float) -> Tensor:
    """Temperature, then top-k, then top-p of what is left (Holtzman et al. 2020)."""
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
    """Probabilities [..., vocabulary] up to a factor. Where they are next to nothing, nothing."""
    # Less the largest first: a temperature near 0 must not overflow.
    below = logits - logits.amax(-1, keepdim=True)
    below.div_(temperature.clamp_min(_MIN_TEMPERATURE)).clamp_min_(_NEGLIGIBLE)
    return torch.threshold_(below.exp_(), 2 * math.exp(_NEGLIGIBLE), 0.0)


def _nucleus(probabilities: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """The most likely tokens that together reach `top_p`, and where they are."""
    values, ids = probabilities.topk(min(_CANDIDATES, len(probabilities)))
    if values.sum() < top_p:
        values, ids = probabilities.sort(descending=True)
    before = values.cumsum(0) - values
    size = max(1, int((before < top_p).sum()))
    return values[:size], ids[:size]
