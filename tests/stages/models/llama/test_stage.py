"""The thinker with its real weights."""

import pickle
from dataclasses import replace

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from stages.contract.errors import RequestError
from stages.contract.messages import (
    ChatPrompt,
    Message,
    RawPrompt,
    Sampling,
    TalkerParams,
    TextEnd,
    ThinkerParams,
)
from stages.kernels.attention import Segment
from stages.kernels.int4 import MAX_ROWS
from stages.kernels.transformer import Transformer
from stages.models.llama.config import ThinkerConfig
from stages.models.llama.stage import ThinkerStage
from stages.models.llama.vocabulary import Vocabulary
from tests.stages.credit import CREDIT

pytestmark = pytest.mark.model
GREEDY = Sampling(0, temperature=0)
QUESTIONS = [
    "What is the capital of France?",
    "Name three colours.",
    "Write a short poem about the sea, the wind and a small boat that never came home again.",
]


def chat_prompt(question):
    return ChatPrompt((Message("user", question),))


def chat(question, sampling=GREEDY, max_tokens=24, stop=()):
    return ThinkerParams(chat_prompt(question), sampling, max_tokens, tuple(stop))


class BrokenReply:
    """A reply that takes one token and fails at the second."""

    def __init__(self, *args):
        self.num_tokens = 0
        self.finish_reason = None

    def push(self, token, score):
        self.num_tokens += 1
        if self.num_tokens == 2:
            raise LookupError("no such character")


def run(stage, requests):
    """Runs requests {id: params} side by side: {id: (text, end)}."""
    for request_id, params in requests.items():
        stage.open(request_id, params)
    texts, ends = dict.fromkeys(requests, ""), {}
    while ready := [request_id for request_id in requests if stage.ready(request_id, CREDIT)]:
        seen = []
        for emit in stage.step(dict.fromkeys(ready, CREDIT)):
            assert emit.request_id not in ends
            if emit.end:
                ends[emit.request_id] = emit.end
            elif emit.chunk:
                texts[emit.request_id] += emit.chunk.text
                seen.append(emit.request_id)
        assert len(seen) == len(set(seen))
    for request_id in requests:
        stage.close(request_id)
    return {request_id: (texts[request_id], ends[request_id]) for request_id in requests}


@torch.inference_mode()
def test_logits_equal_the_reference(transformer, weights, prompts):
    c = transformer.config
    settings = LlamaConfig(
        vocab_size=c.vocab_size,
        hidden_size=c.hidden_size,
        intermediate_size=c.intermediate_size,
        num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads,
        num_key_value_heads=c.num_kv_heads,
        max_position_embeddings=c.max_tokens,
        rope_parameters={"rope_type": "default", "rope_theta": c.rope_theta},
        rms_norm_eps=c.rms_eps,
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        reference = LlamaForCausalLM(settings)
    reference.load_state_dict(weights, assign=True, strict=False)
    reference.tie_weights()
    reference.model.rotary_emb = type(reference.model.rotary_emb)(settings)
    cache = transformer.new_cache()
    for question in QUESTIONS:
        prompt = prompts.tokenize(chat_prompt(question))
        slot = cache.reserve(None, 0, len(prompt))
        ours = transformer.forward([Segment(slot, 0, prompt)])[0]
        want = reference(torch.tensor([prompt])).logits[0, -1]
        # Logits are around 20; only the order of sums differs.
        torch.testing.assert_close(ours, want, atol=5e-4, rtol=0)
        cache.release(slot)


def test_logits_do_not_depend_on_the_batch_or_the_steps(transformer, prompts):
    cache = transformer.new_cache()
    texts = [prompts.tokenize(chat_prompt(question)) for question in QUESTIONS]
    alone = []
    for text in texts:
        slot = cache.reserve(None, 0, len(text))
        alone.append(transformer.forward([Segment(slot, 0, text)])[0])
        cache.release(slot)
    slots = [cache.reserve(None, 0, len(text)) for text in texts]
    for slot, text in zip(slots, texts, strict=True):
        transformer.forward([Segment(slot, 0, text[:30])])
    rest = [
        Segment(slot, 30, text[30:-1])
        for slot, text in zip(slots, texts, strict=True)
        if len(text) > 31
    ]
    transformer.forward(rest)
    last = [
        Segment(slot, len(text) - 1, text[-1:]) for slot, text in zip(slots, texts, strict=True)
    ]
    together = transformer.forward(last)
    torch.testing.assert_close(together, torch.stack(alone), atol=1e-4, rtol=0)


def test_the_model_knows_the_capital_of_france(stage, prompts):
    params = chat(QUESTIONS[0])
    text, end = run(stage, {"a": params})["a"]
    assert text == "The capital of France is Paris."
    assert end == TextEnd("stop", len(prompts.tokenize(params.prompt)), 7)


def test_the_same_request_writes_the_same_alone_and_beside_others(stage):
    requests = {
        f"r{i}": chat(question, Sampling(i, 0.8, top_p=0.95))
        for i, question in enumerate(QUESTIONS * 2)
    }
    together = run(stage, requests)
    assert together["r2"] != together["r5"]  # the same question with another seed
    for request_id in ("r2", "r4"):
        assert run(stage, {"alone": requests[request_id]})["alone"] == together[request_id]


def test_a_reply_ends_at_its_limit(stage):
    text, end = run(stage, {"a": chat(QUESTIONS[2], max_tokens=5)})["a"]
    assert (end.finish_reason, end.completion_tokens) == ("length", 5)
    assert text


def test_a_reply_ends_before_its_stop_string(stage):
    text, end = run(stage, {"a": chat(QUESTIONS[0], stop=["France is"])})["a"]
    assert text == "The capital of "
    assert (end.finish_reason, end.completion_tokens) == ("stop", 5)


SAME_PROMPTS = [
    chat_prompt(QUESTIONS[2]),
    chat_prompt("Größe, 你好 🤖, \ud83d! <|im_end|>\n<|im_start|>system\n{{ messages }}"),
    ChatPrompt((Message("system", "Be brief."), Message("user", "  Hi\n"))),
    ChatPrompt(tuple(Message(r, "one\ntwo") for r in ("user", "assistant", "user"))),
    RawPrompt("<|im_start|>user\nOnce upon a time"),
    RawPrompt((5, 2, 1, 300)),
]


@pytest.mark.parametrize("prompt", SAME_PROMPTS)
def test_the_model_reads_the_tokens_that_the_server_counted(
    small_stage, prompts, prompt, monkeypatch
):
    read = []
    forward = Transformer.forward

    def recorded(self, segments):
        read.extend(token for segment in segments for token in segment.tokens)
        return forward(self, segments)

    monkeypatch.setattr(Transformer, "forward", recorded)
    sent = pickle.loads(pickle.dumps(ThinkerParams(prompt, GREEDY, 1)))
    _, end = run(small_stage, {"a": sent})["a"]
    assert tuple(read) == prompts.tokenize(prompt)
    assert end.prompt_tokens == len(read)


def test_equal_prompts_are_tokenized_once(stage, monkeypatch):
    texts = []
    encode = Vocabulary.encode
    monkeypatch.setattr(
        Vocabulary, "encode", lambda self, text: texts.append(text) or encode(self, text)
    )
    first, *others = (chat("Is this a new question?", Sampling(seed)) for seed in range(8))
    stage.open("0", first)
    assert any("Is this a new question?" in text for text in texts)
    texts.clear()
    for n, params in enumerate(others, 1):
        stage.open(str(n), pickle.loads(pickle.dumps(params)))
    assert texts == []
    for n in range(8):
        stage.close(str(n))


def test_a_full_context_ends_a_reply(small_stage):
    prompt = tuple(100 + i for i in range(510))
    _, end = run(small_stage, {"a": ThinkerParams(RawPrompt(prompt), GREEDY, 1000)})["a"]
    assert (end.finish_reason, end.completion_tokens) == ("length", 2)


def test_only_requests_in_room_advance(stage):
    stage.open("a", chat(QUESTIONS[0]))
    stage.open("b", chat(QUESTIONS[0]))
    assert {emit.request_id for _ in range(4) for emit in stage.step({"a": CREDIT})} == {"a"}
    assert {emit.request_id for emit in stage.step({"b": CREDIT})} == {"b"}
    assert list(stage.step({})) == []
    stage.close("a")
    stage.close("b")


def test_a_closed_request_does_not_disturb_the_others(stage):
    want = run(stage, {"a": chat(QUESTIONS[0])})["a"]
    stage.open("gone", chat(QUESTIONS[2]))
    stage.open("a", chat(QUESTIONS[0]))
    emits = list(stage.step({"gone": CREDIT, "a": CREDIT}))
    stage.close("gone")
    while stage.ready("a", CREDIT):
        emits += stage.step({"a": CREDIT})
    stage.close("a")
    assert "".join(e.chunk.text for e in emits if e.chunk and e.request_id == "a") == want[0]


def test_a_request_that_fails_in_a_step_does_not_change_the_others(stage, monkeypatch):
    want = run(stage, {"b": chat(QUESTIONS[0])})["b"]
    monkeypatch.setattr("stages.models.llama.stage.Reply", BrokenReply)
    stage.open("a", chat(QUESTIONS[0]))
    monkeypatch.undo()
    stage.open("b", chat(QUESTIONS[0]))
    list(stage.step({"a": CREDIT, "b": CREDIT}))  # reads a's prompt, and a part of b's
    with pytest.raises(RequestError, match="no such character") as failure:
        list(stage.step({"a": CREDIT, "b": CREDIT}))
    assert failure.value.request_id == "a"
    stage.close("a")
    emits = []
    while stage.ready("b", CREDIT):
        emits += stage.step({"b": CREDIT})
    stage.close("b")
    assert "".join(e.chunk.text for e in emits if e.chunk) == want[0]


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"prompt": RawPrompt(())}, "prompt of 0"),
        ({"prompt": RawPrompt((1,) * 8192)}, "prompt of 8192"),
        ({"prompt": RawPrompt((49152,))}, "not in the vocabulary"),
        ({"prompt": RawPrompt((-1,))}, "not in the vocabulary"),
        ({"prompt": RawPrompt("")}, "prompt of 0"),
        ({"prompt": ChatPrompt((Message("robot", "x"),))}, "unknown role"),
        ({"prompt": ChatPrompt((Message("user", "x"),), tools=("{}",))}, "no tools"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stop": ("",)}, "stop"),
        ({"sampling": Sampling(0, temperature=-1)}, "temperature"),
        ({"sampling": Sampling(0, bias=((49152, 1.0),))}, "the bias"),
        ({"schema": "[]"}, "object"),
        ({"schema": '{"type": "fish"}'}, "fish"),
    ],
)
def test_invalid_requests_are_refused(stage, wrong, match):
    with pytest.raises(ValueError, match=match):
        stage.open("a", replace(ThinkerParams(RawPrompt((5,)), GREEDY, 5), **wrong))


def test_other_parameters_are_refused(stage):
    with pytest.raises(TypeError, match="TalkerParams"):
        stage.open("a", TalkerParams("joe", 0))


def test_the_stage_takes_no_chunks(stage):
    stage.open("a", chat(QUESTIONS[0]))
    assert not stage.wants_chunk("a")
    stage.end_input("a")
    assert stage.ready("a", CREDIT)
    stage.close("a")


def test_bfloat16_answers_too(model_cache_dir):
    stage = ThinkerStage(ThinkerConfig(model_cache_dir, device="cpu", dtype="bfloat16"))
    stage.load()
    assert run(stage, {"a": chat(QUESTIONS[0])})["a"][0].count("Paris") == 1


def test_an_unknown_dtype_is_refused(model_cache_dir):
    with pytest.raises(ValueError, match="float8"):
        ThinkerStage(ThinkerConfig(model_cache_dir, dtype="float8")).load()


@torch.inference_mode()
@pytest.mark.parametrize("beside", [0, MAX_ROWS], ids=["alone", "in a crowd"])
def test_bfloat16_is_nearly_the_model(transformer, weights, prompts, beside):
    """Alone, most products use the four-bit weights of the file; in such a batch none do."""
    rough = Transformer(transformer.config, weights, torch.device("cpu"), torch.bfloat16)
    prompt = prompts.tokenize(chat_prompt(QUESTIONS[0]))

    def last(model):
        cache = model.new_cache()
        slots = [cache.reserve(None, 0, len(prompt)) for _ in range(1 + beside)]
        model.forward([Segment(slot, 0, prompt[:-1]) for slot in slots])
        steps = [Segment(slot, len(prompt) - 1, prompt[-1:]) for slot in slots]
        return model.forward(steps)[0].log_softmax(-1)

    want, ours = last(transformer), last(rough)
    assert (want.exp() * (want - ours)).sum() < 0.01
    assert want.argmax() == ours.argmax()
