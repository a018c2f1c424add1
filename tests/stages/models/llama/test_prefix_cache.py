"""The prefix cache: what ended requests leave for requests with the same beginning."""

from dataclasses import replace

import pytest
import torch

from stages.contract.messages import ChatPrompt, Message, Sampling, ThinkerParams
from stages.kernels.kv_cache import CacheShape, KvCache
from stages.models.llama.prefix_cache import PrefixCache
from tests.stages.credit import CREDIT

STORY = "Tell me about the sea, a small boat, and the two children who sailed it round the island."
SHAPE = CacheShape(2, 1, 4, 1024, torch.float32, torch.device("cpu"))


def tokens(count, start=0):
    return list(range(start, start + count))


def keep(prefixes, cache, sequence):
    """Keep a sequence whose keys and values are made of its token ids."""
    slot = cache.reserve(None, 0, len(sequence))
    content = slot.slab.storage[:, slot.row, :, : len(sequence)]
    content.copy_(torch.tensor(sequence, dtype=torch.float32)[:, None])
    prefixes.keep(sequence, slot)
    content.fill_(-1.0)  # as another request that gets the slot would do
    cache.release(slot)


def num_reused(prefixes, cache, sequence):
    """How many tokens of the sequence are reused; checks that their content is right."""
    slot, count = prefixes.begin(sequence)
    if slot is not None:
        assert slot.slab.capacity >= len(sequence)
        content = slot.slab.storage[:, slot.row, :, :count]
        expected = torch.tensor(sequence[:count], dtype=torch.float32)[:, None]
        assert torch.equal(content, expected.expand_as(content))
        content.fill_(-2.0)  # writing to the slot must not change what is kept
        cache.release(slot)
    return count


def test_the_longest_common_prefix_is_reused():
    cache = KvCache(SHAPE)
    prefixes = PrefixCache(cache, 1000)
    keep(prefixes, cache, tokens(100))
    keep(prefixes, cache, tokens(70) + tokens(80, 500))
    for _ in range(2):
        assert num_reused(prefixes, cache, tokens(90) + tokens(50, 700)) == 90
        assert num_reused(prefixes, cache, tokens(70) + tokens(200, 500)) == 150
    assert cache.num_slabs == 0


def test_the_last_token_is_never_reused():
    cache = KvCache(SHAPE)
    prefixes = PrefixCache(cache, 1000)
    keep(prefixes, cache, tokens(100))
    assert num_reused(prefixes, cache, tokens(100)) == 99
    assert num_reused(prefixes, cache, tokens(80)) == 79


def test_short_prefixes_are_neither_kept_nor_reused():
    cache = KvCache(SHAPE)
    prefixes = PrefixCache(cache, 1000)
    keep(prefixes, cache, tokens(100))
    keep(prefixes, cache, tokens(63, 300))
    assert num_reused(prefixes, cache, tokens(63) + tokens(100, 500)) == 0
    assert num_reused(prefixes, cache, tokens(100, 300)) == 0
    assert prefixes.num_tokens == 100


def test_the_least_recently_used_sequences_are_evicted():
    cache = KvCache(SHAPE)
    prefixes = PrefixCache(cache, 300)
    keep(prefixes, cache, tokens(100, 1000))
    keep(prefixes, cache, tokens(100, 2000))
    keep(prefixes, cache, tokens(100, 3000))
    assert num_reused(prefixes, cache, tokens(200, 1000)) == 100
    keep(prefixes, cache, tokens(150, 4000))
    assert prefixes.num_tokens == 250
    assert num_reused(prefixes, cache, tokens(200, 1000)) == 100
    assert num_reused(prefixes, cache, tokens(200, 2000)) == 0
    assert num_reused(prefixes, cache, tokens(200, 3000)) == 0
    keep(prefixes, cache, tokens(500, 5000))
    assert (prefixes.num_tokens, num_reused(prefixes, cache, tokens(500, 5000))) == (300, 300)


def test_a_longer_sequence_replaces_its_own_prefix():
    cache = KvCache(SHAPE)
    prefixes = PrefixCache(cache, 1000)
    keep(prefixes, cache, tokens(100))
    keep(prefixes, cache, tokens(250))
    keep(prefixes, cache, tokens(180))
    assert prefixes.num_tokens == 250


def test_a_cache_of_size_0_keeps_nothing():
    cache = KvCache(SHAPE)
    prefixes = PrefixCache(cache, 0)
    keep(prefixes, cache, tokens(100))
    assert num_reused(prefixes, cache, tokens(100)) == 0


def scored(stage, params):
    """Run one request: its end and the scores of its tokens."""
    stage.open("a", replace(params, num_top=3))
    scores, end = [], None
    while end is None:
        for emit in stage.step({"a": CREDIT}):
            scores += emit.chunk.scores if emit.chunk else ()
            end = emit.end or end
    stage.close("a")
    return end, scores


@pytest.mark.model
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_chat_gets_the_same_replies_with_and_without_the_cache(
    stage, small_stage, prompts, temperature
):
    """Within the rounding of other matrix shapes, as for a request alone and in a batch."""
    sampling = Sampling(7, temperature=temperature)
    messages, num_prompt = [], 0
    for question in (STORY, "And what came of it?", "Say that in one sentence."):
        messages.append(Message("user", question))
        params = ThinkerParams(ChatPrompt(tuple(messages)), sampling, 24)
        end, scores = scored(small_stage, params)
        same_end, same_scores = scored(stage, params)
        assert (end.cached_tokens, same_end.cached_tokens >= num_prompt) == (0, True)
        assert replace(same_end, cached_tokens=0) == end
        for one, other in zip(scores, same_scores, strict=True):
            assert one.chosen.name == other.chosen.name
            assert one.chosen.logprob == pytest.approx(other.chosen.logprob, abs=2e-4)
        num_prompt = end.prompt_tokens
        text = b"".join(score.chosen.text_bytes or b"" for score in scores)
        messages.append(Message("assistant", text.decode("utf-8", "replace")))
