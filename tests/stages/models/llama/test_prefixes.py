"""What ended requests leave for those that go on from them."""

from dataclasses import replace

import pytest
import torch

from stages.contract.messages import Sampling, ThinkerParams
from stages.contract.pipeline import Message
from stages.kernels.kv_cache import CacheShape, KvCache
from stages.models.llama.prefixes import Prefixes

STORY = "Tell me about the sea, a small boat, and the two children who sailed it round the island."
SHAPE = CacheShape(2, 1, 4, 1024, torch.float32, torch.device("cpu"))


def tokens(count, start=0):
    return list(range(start, start + count))


def kept(prefixes, cache, sequence):
    """Keep a sequence whose keys and values are its tokens."""
    slot = cache.reserve(None, 0, len(sequence))
    held = slot.slab.storage[:, slot.row, :, : len(sequence)]
    held.copy_(torch.tensor(sequence, dtype=torch.float32)[:, None])
    prefixes.keep(sequence, slot)
    held.fill_(-1.0)  # another request may get the slot
    cache.release(slot)


def begun(prefixes, cache, sequence):
    """How many tokens are known; checks that they are the right ones."""
    slot, count = prefixes.begin(sequence)
    if slot is not None:
        assert slot.slab.capacity >= len(sequence)
        held = slot.slab.storage[:, slot.row, :, :count]
        right = torch.tensor(sequence[:count], dtype=torch.float32)[:, None]
        assert torch.equal(held, right.expand_as(held))
        held.fill_(-2.0)  # writing on must not change what is kept
        cache.release(slot)
    return count


def test_the_longest_common_beginning_is_known():
    cache = KvCache(SHAPE)
    prefixes = Prefixes(cache, 1000)
    kept(prefixes, cache, tokens(100))
    kept(prefixes, cache, tokens(70) + tokens(80, 500))
    for _ in range(2):
        assert begun(prefixes, cache, tokens(90) + tokens(50, 700)) == 90
        assert begun(prefixes, cache, tokens(70) + tokens(200, 500)) == 150
    assert cache.num_slabs == 0


def test_the_last_token_is_always_read():
    cache = KvCache(SHAPE)
    prefixes = Prefixes(cache, 1000)
    kept(prefixes, cache, tokens(100))
    assert begun(prefixes, cache, tokens(100)) == 99
    assert begun(prefixes, cache, tokens(80)) == 79


def test_little_in_common_is_nothing():
    cache = KvCache(SHAPE)
    prefixes = Prefixes(cache, 1000)
    kept(prefixes, cache, tokens(100))
    kept(prefixes, cache, tokens(63, 300))
    assert begun(prefixes, cache, tokens(63) + tokens(100, 500)) == 0
    assert begun(prefixes, cache, tokens(100, 300)) == 0
    assert prefixes.num_tokens == 100


def test_no_more_is_kept_than_allowed_and_the_last_used_stay():
    cache = KvCache(SHAPE)
    prefixes = Prefixes(cache, 300)
    kept(prefixes, cache, tokens(100, 1000))
    kept(prefixes, cache, tokens(100, 2000))
    kept(prefixes, cache, tokens(100, 3000))
    assert begun(prefixes, cache, tokens(200, 1000)) == 100
    kept(prefixes, cache, tokens(150, 4000))
    assert prefixes.num_tokens == 250
    assert begun(prefixes, cache, tokens(200, 1000)) == 100
    assert begun(prefixes, cache, tokens(200, 2000)) == 0
    assert begun(prefixes, cache, tokens(200, 3000)) == 0
    kept(prefixes, cache, tokens(500, 5000))
    assert (prefixes.num_tokens, begun(prefixes, cache, tokens(500, 5000))) == (300, 300)


def test_a_chat_that_goes_on_replaces_its_beginning():
    cache = KvCache(SHAPE)
    prefixes = Prefixes(cache, 1000)
    kept(prefixes, cache, tokens(100))
    kept(prefixes, cache, tokens(250))
    kept(prefixes, cache, tokens(180))
    assert prefixes.num_tokens == 250


def test_nothing_may_be_kept():
    cache = KvCache(SHAPE)
    prefixes = Prefixes(cache, 0)
    kept(prefixes, cache, tokens(100))
    assert begun(prefixes, cache, tokens(100)) == 0


def scored(stage, params):
    """A greedy or sampled reply: its end and the scores of its tokens."""
    stage.open("a", replace(params, num_top=3))
    scores, end = [], None
    while end is None:
        for emit in stage.step({"a": 1}):
            scores += emit.chunk.scores if emit.chunk else ()
            end = emit.end or end
    stage.close("a")
    return end, scores


@pytest.mark.model
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_next_turns_of_a_chat_are_as_they_would_be_without(
    stage, prompts, monkeypatch, temperature
):
    """Within the rounding of other matrix shapes, as for a request alone and in a crowd."""
    sampling = Sampling(7, temperature=temperature)
    messages, num_prompt = [], 0
    knowing, plain = Prefixes(stage._cache, 2048), Prefixes(stage._cache, 0)
    for question in (STORY, "And what came of it?", "Say that in one sentence."):
        messages.append(Message("user", question))
        params = ThinkerParams(prompts.tokenize(messages), sampling, 24)
        monkeypatch.setattr(stage, "_prefixes", plain)
        end, scores = scored(stage, params)
        monkeypatch.setattr(stage, "_prefixes", knowing)
        same_end, same_scores = scored(stage, params)
        assert (end.cached_tokens, same_end.cached_tokens >= num_prompt) == (0, True)
        assert replace(same_end, cached_tokens=0) == end
        for one, other in zip(scores, same_scores, strict=True):
            assert one.chosen.name == other.chosen.name
            assert one.chosen.logprob == pytest.approx(other.chosen.logprob, abs=2e-4)
        num_prompt = end.prompt_tokens
        text = b"".join(score.chosen.text_bytes or b"" for score in scores)
        messages.append(Message("assistant", text.decode("utf-8", "replace")))
