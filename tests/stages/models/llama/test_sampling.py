"""Sampling: the distribution that the settings ask for, the same in any batch."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from stages.contract.messages import Sampling
from stages.models.llama.sampling import Draw, check_sampling, sample, score

LOGITS = torch.tensor([1.0, 3.0, 2.0, -math.inf, 0.0])


def drawn(sampling, count=2000, logits=LOGITS):
    rows = logits.expand(count, -1)
    return torch.tensor(sample(rows, [Draw(sampling, i) for i in range(count)]))


def test_temperature_0_takes_the_likeliest_token():
    assert set(drawn(Sampling(1, temperature=0)).tolist()) == {1}


def test_a_tiny_temperature_is_nearly_greedy():
    assert set(drawn(Sampling(1, temperature=1e-300)).tolist()) == {1}


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_come_as_often_as_their_probability(temperature):
    counts = drawn(Sampling(7, temperature)).bincount(minlength=5) / 2000
    expected = (LOGITS / temperature).softmax(0)
    assert (counts - expected).abs().max() < 0.04  # 3.6 standard deviations
    assert counts[3] == 0


def test_top_k_takes_only_the_k_likeliest_tokens():
    assert set(drawn(Sampling(1, 5.0, top_k=2)).tolist()) == {1, 2}


def test_top_p_takes_the_fewest_tokens_that_reach_p():
    first, second = LOGITS.softmax(0)[[1, 2]].tolist()
    assert set(drawn(Sampling(1, 1.0, top_p=first - 0.01)).tolist()) == {1}
    assert set(drawn(Sampling(1, 1.0, top_p=first + 0.01)).tolist()) == {1, 2}
    assert set(drawn(Sampling(1, 1.0, top_p=first + second + 0.01)).tolist()) == {0, 1, 2}


def test_top_p_is_applied_to_what_top_k_left():
    assert set(drawn(Sampling(1, 1.0, top_p=0.7, top_k=2)).tolist()) == {1}


def test_top_p_of_a_flat_distribution_goes_beyond_the_candidates():
    flat = torch.zeros(4000)
    assert len(set(drawn(Sampling(1, 1.0, top_p=0.9), logits=flat).tolist())) > 1000


def test_a_row_draws_the_same_alone_and_beside_others():
    rows = torch.randn(6, 300, generator=torch.Generator().manual_seed(0))
    draws = [Draw(Sampling(i, 0.3 * i, 1 - 0.1 * i, 20 * i), i) for i in range(6)]
    together = sample(rows, draws)
    assert together == [sample(rows[i : i + 1], draws[i : i + 1])[0] for i in range(6)]


def test_plain_rows_draw_the_same_alone_and_together():
    rows = 5 * torch.randn(6, 300, generator=torch.Generator().manual_seed(0))
    draws = [Draw(Sampling(i, 0.2 + 0.3 * i), i) for i in range(6)]
    together = sample(rows, draws)
    assert together == [sample(rows[i : i + 1], draws[i : i + 1])[0] for i in range(6)]
    assert together == sample(torch.cat([rows, rows]), [*draws, *map(greedy, draws)])[:6]


def greedy(draw):
    return draw._replace(sampling=replace(draw.sampling, temperature=0))


def test_negligible_tokens_are_never_drawn():
    far = torch.tensor([-1000.0, -90.0, 0.0, -90.0])
    assert set(drawn(Sampling(1, 1.0), logits=far).tolist()) == {2}


def test_no_rows_give_no_tokens():
    assert sample(torch.empty(0, 5), []) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_p": -0.1},
        {"top_p": 1.1},
        {"top_k": -1},
    ],
)
def test_invalid_settings_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        check_sampling(replace(Sampling(1), **wrong))


def test_bias_is_added_to_a_logit():
    assert set(drawn(Sampling(1, 1.0, bias=((0, 100.0),))).tolist()) == {0}
    assert 1 not in drawn(Sampling(1, 1.0, bias=((1, -100.0),)))
    assert set(drawn(Sampling(1, 0.0, bias=((1, -100.0),))).tolist()) == {2}


@pytest.mark.parametrize(
    ("penalties", "written", "token"),
    [
        ({"presence_penalty": 0.9}, [1], 1),
        ({"presence_penalty": 1.1}, [1], 2),
        ({"presence_penalty": 1.1}, [1, 1, 1], 2),
        ({"frequency_penalty": 0.9}, [1], 1),
        ({"frequency_penalty": 0.6}, [1, 1], 2),
        ({"frequency_penalty": 0.6, "presence_penalty": 0.3}, [1, 1, 2], 1),
        ({"frequency_penalty": -2}, [0, 0], 0),
        ({"presence_penalty": 2, "frequency_penalty": 2}, [], 1),
    ],
)
def test_penalties_depend_on_the_tokens_before(penalties, written, token):
    draw = Draw(Sampling(1, 0.0, **penalties), len(written), written)
    assert sample(LOGITS[None], [draw]) == [token]


def test_bias_and_penalty_of_one_token_add_up():
    sampling = Sampling(1, 0.0, presence_penalty=2.0, bias=((1, 1.5),))
    assert sample(LOGITS[None], [Draw(sampling, 1, [1])]) == [1]


def test_only_allowed_tokens_are_drawn():
    allowed = np.array([True, False, False, True, True])
    draws = [Draw(Sampling(1, t, top_k=2), 0, (), allowed) for t in (0.0, 1.0, 5.0)]
    assert set(sample(LOGITS.expand(3, -1), draws)) <= {0, 4}


def test_sampling_does_not_change_the_logits():
    logits = LOGITS.clone()[None]
    everything = Sampling(1, 1.0, 0.9, 3, 1.0, 1.0, ((0, 5.0),))
    sample(logits, [Draw(everything, 2, [1, 1], np.ones(5, bool))])
    assert torch.equal(logits[0], LOGITS)


def test_a_score_is_the_log_probability():
    logprob, top = score(LOGITS, 2, 3)
    want = LOGITS.log_softmax(0)
    assert logprob == pytest.approx(float(want[2]))
    assert [token for token, _ in top] == [1, 2, 0]
    assert [value for _, value in top] == pytest.approx(want[[1, 2, 0]].tolist())
    assert score(LOGITS, 2, 0)[1] == []
