"""The transformer with small random weights: against the reference, in pieces, in batches."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from stages.kernels.attention import Segment
from stages.kernels.transformer import Transformer, TransformerConfig

CPU = torch.device("cpu")
PLAIN = TransformerConfig(
    vocab_size=97,
    hidden_size=48,
    intermediate_size=80,
    num_layers=3,
    num_heads=6,
    num_kv_heads=2,
    head_dim=8,
    max_tokens=2048,
    rope_theta=10_000.0,
    rms_eps=1e-5,
    tied_head=True,
)
FAMILIES = {
    "llama": (PLAIN, LlamaConfig, LlamaForCausalLM),
    "untied": (replace(PLAIN, tied_head=False), LlamaConfig, LlamaForCausalLM),
    "qwen2, biased": (replace(PLAIN, qkv_bias=True), Qwen2Config, Qwen2ForCausalLM),
    "qwen3, normed, wide heads": (
        replace(PLAIN, qk_norm=True, head_dim=16, tied_head=False, rope_theta=1e6),
        Qwen3Config,
        Qwen3ForCausalLM,
    ),
}


def reference(config, config_class, model_class):
    torch.manual_seed(1)
    settings = config_class(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        num_key_value_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        max_position_embeddings=config.max_tokens,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
        rms_norm_eps=config.rms_eps,
        tie_word_embeddings=config.tied_head,
    )
    model = model_class(settings).eval()
    for parameter in model.parameters():  # large enough that a wrong detail shows
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request):
    config, config_class, model_class = FAMILIES[request.param]
    model = reference(config, config_class, model_class)
    return Transformer(config, model.state_dict(), CPU, torch.float32), model


@pytest.fixture(scope="module")
def small():
    model = reference(*FAMILIES["llama"])
    return Transformer(PLAIN, model.state_dict(), CPU, torch.float32)


def tokens(seed, length):
    draw = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(97, (length,), generator=draw).tolist())


def read(model, cache, text, cuts=()):
    """Logits after `text`, read in pieces that end at `cuts`."""
    slot, logits = None, None
    edges = [0, *cuts, len(text)]
    for start, end in pairwise(edges):
        slot = cache.reserve(slot, start, end)
        logits = model.forward([Segment(slot, start, text[start:end])])
    cache.release(slot)
    return logits[0]


@torch.inference_mode()
def test_equals_the_reference(pair):
    model, expected = pair
    text = tokens(0, 40)
    want = expected(torch.tensor([text])).logits[0, -1]
    torch.testing.assert_close(read(model, model.new_cache(), text), want, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("cuts", [(1,), (7, 8, 30), tuple(range(1, 300))])
def test_a_prompt_in_pieces_equals_the_whole(small, cuts):
    text = tokens(2, 300)
    cache = small.new_cache()
    whole = read(small, cache, text)
    torch.testing.assert_close(read(small, cache, text, cuts), whole, atol=1e-4, rtol=0)
    assert cache.num_slabs == 0


def test_a_sequence_does_not_depend_on_its_neighbours(small):
    """Reading and writing together, in slots side by side and apart, of different lengths."""
    cache = small.new_cache()
    texts = [tokens(i, length) for i, length in enumerate([3, 250, 40, 41, 300, 9, 900])]
    slots = [cache.reserve(None, 0, len(text)) for text in texts]
    small.forward(
        [
            Segment(slot, 0, text[:-2])
            for slot, text in zip(slots, texts, strict=True)
            if len(text) != 40
        ]
    )
    small.forward([Segment(slots[2], 0, texts[2][:-2], want_logits=False)])
    mixed = [
        Segment(slot, len(text) - 2, text[-2:] if len(text) % 2 else text[-2:-1])
        for slot, text in zip(slots, texts, strict=True)
    ]
    logits = small.forward(mixed)
    for text, segment, row in zip(texts, mixed, logits, strict=True):
        alone = read(small, cache, text[: segment.start + len(segment.tokens)])
        torch.testing.assert_close(row, alone, atol=1e-4, rtol=0)


@pytest.mark.parametrize("lengths", [[40, 40, 40], [40, 41, 39], [40]])
def test_neighbours_of_one_length_and_of_several_write_as_alone(small, lengths):
    """One token each, so that keys and values go to one place in all slots or to several."""
    cache = small.new_cache()
    texts = [tokens(i, length) for i, length in enumerate(lengths)]
    slots = [cache.reserve(None, 0, len(text)) for text in texts]
    small.forward([Segment(slot, 0, text[:-2]) for slot, text in zip(slots, texts, strict=True)])
    for left in (2, 1):
        logits = small.forward(
            [
                Segment(slot, len(text) - left, text[len(text) - left :][:1])
                for slot, text in zip(slots, texts, strict=True)
            ]
        )
    for text, row in zip(texts, logits, strict=True):
        torch.testing.assert_close(row, read(small, cache, text), atol=1e-4, rtol=0)


def test_logits_come_in_order_and_only_where_wanted(small):
    cache = small.new_cache()
    texts = [tokens(i, 20 - i) for i in range(4)]
    slots = [cache.reserve(None, 0, 20) for _ in texts]
    segments = [
        Segment(slot, 0, text, want_logits=i in (1, 3))
        for i, (slot, text) in enumerate(zip(slots, texts, strict=True))
    ]
    logits = small.forward(segments[::-1])
    assert logits.shape == (2, PLAIN.vocab_size)
    torch.testing.assert_close(logits[0], read(small, cache, texts[3]), atol=1e-4, rtol=0)
    torch.testing.assert_close(logits[1], read(small, cache, texts[1]), atol=1e-4, rtol=0)
    assert small.forward([replace(segments[0], want_logits=False)]).shape == (0, 97)


def test_a_slot_grows_and_gives_its_memory_back(small):
    cache = small.new_cache()
    slot = cache.reserve(None, 0, 10)
    other = cache.reserve(None, 0, 10)
    assert slot.slab is other.slab
    assert cache.reserve(slot, 10, 256) is slot
    larger = cache.reserve(slot, 256, 257)
    assert larger.slab.capacity == 512
    assert cache.reserve(None, 0, 1) == slot  # the freed row is taken again
    for used in (slot, other, larger):
        cache.release(used)
    assert cache.num_slabs == 0


def test_no_slot_is_longer_than_the_context(small):
    cache = small.new_cache()
    cache.release(cache.reserve(None, 0, 2048))
    with pytest.raises(ValueError, match="2049 tokens"):
        cache.reserve(None, 0, 2049)


def test_bfloat16_weights_give_nearly_the_same(small):
    model = reference(*FAMILIES["llama"])
    rough = Transformer(PLAIN, model.state_dict(), CPU, torch.bfloat16)
    text = tokens(5, 30)
    ours = read(rough, rough.new_cache(), text).softmax(-1)
    exact = read(small, small.new_cache(), text).softmax(-1)
    assert (ours - exact).abs().max() < 0.05


def test_everything_stays_on_the_models_device():
    """On the meta device any tensor that was made elsewhere is an error."""
    model = reference(*FAMILIES["qwen3, normed, wide heads"])
    config = FAMILIES["qwen3, normed, wide heads"][0]
    far = Transformer(config, model.state_dict(), torch.device("meta"), torch.bfloat16)
    cache = far.new_cache()
    slots = [cache.reserve(None, 0, 30) for _ in range(2)]
    for start, text in ((0, tokens(0, 20)), (20, tokens(0, 1))):
        logits = far.forward([Segment(slot, start, text) for slot in slots])
    assert (logits.device.type, logits.dtype, logits.shape) == ("meta", torch.float32, (2, 97))


def test_a_missing_weight_is_named():
    with pytest.raises(KeyError, match="embed_tokens"):
        Transformer(PLAIN, {}, CPU, torch.float32)
