"""The options of the thinker, with its real weights: scores, bias, penalties, JSON."""

import json

import pytest
import torch

from stages.contract.messages import Candidate, ChatPrompt, Message, Sampling, ThinkerParams
from stages.kernels.attention import Segment
from stages.models.llama.grammar import check_schema
from tests.stages.credit import CREDIT

pytestmark = pytest.mark.model
GREEDY = Sampling(0, temperature=0)
CITY = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "people": {"type": "integer"},
        "rivers": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
    "required": ["city", "people", "rivers"],
    "additionalProperties": False,
}


@pytest.fixture
def ask():
    def make(question="What is the capital of France?", sampling=GREEDY, max_tokens=24, **options):
        prompt = ChatPrompt((Message("user", question),))
        return ThinkerParams(prompt, sampling, max_tokens, **options)

    return make


def run(stage, requests):
    """Runs requests side by side: for each its chunks and its end."""
    names = [str(i) for i in range(len(requests))]
    for name, params in zip(names, requests, strict=True):
        stage.open(name, params)
    chunks, ends = {name: [] for name in names}, {}
    while ready := [name for name in names if stage.ready(name, CREDIT)]:
        for emit in stage.step(dict.fromkeys(ready, CREDIT)):
            if emit.end:
                ends[emit.request_id] = emit.end
            elif emit.chunk:
                chunks[emit.request_id].append(emit.chunk)
    for name in names:
        stage.close(name)
    return [(chunks[name], ends[name]) for name in names]


def text_of(chunks):
    return "".join(chunk.text for chunk in chunks)


def scores_of(chunks):
    return [score for chunk in chunks for score in chunk.scores]


def next_logprobs(transformer, tokens):
    """Log probabilities of the token after `tokens`, from one forward pass over all of them."""
    slot = transformer.new_cache().reserve(None, 0, len(tokens))
    return transformer.forward([Segment(slot, 0, tuple(tokens))])[0].log_softmax(-1)


def test_scores_are_those_of_a_direct_forward(stage, ask, prompts, vocabulary, transformer):
    params = ask(num_top=5)
    [(chunks, end)] = run(stage, [params])
    scores = scores_of(chunks)
    assert len(scores) == end.completion_tokens == 7
    assert b"".join(score.chosen.text_bytes for score in scores).decode() == text_of(chunks)
    tokens = list(prompts.tokenize(params.prompt))
    for score in scores:
        want = next_logprobs(transformer, tokens)
        values, ids = want.topk(5)
        assert [c.logprob for c in score.top] == pytest.approx(values.tolist(), abs=1e-3)
        assert score.top[0] == score.chosen  # greedy
        assert {c.name for c in score.top} == {
            vocabulary.candidate(token, 0).name for token in ids.tolist()
        }
        tokens.append(int(want.argmax()))


def test_sampling_options_do_not_change_the_scores(stage, ask):
    shaped = Sampling(3, 1.5, 0.9, 40, 0.5, 0.5, ((260, -100.0),))
    plain, warm = run(stage, [ask(num_top=1), ask(sampling=shaped, num_top=1)])
    first, other = (scores_of(chunks)[0].top[0] for chunks, _ in (plain, warm))
    assert first.name == other.name
    assert first.logprob == pytest.approx(other.logprob, abs=1e-3)
    assert all(s.chosen.logprob <= s.top[0].logprob for s in scores_of(warm[0]))


def test_there_are_no_scores_unless_they_are_requested(stage, ask):
    [(chunks, _)] = run(stage, [ask()])
    assert scores_of(chunks) == []


def test_scores_end_where_a_stop_cuts_the_text(stage, ask):
    [(chunks, _)] = run(stage, [ask(num_top=0, stop=("France is",))])
    assert text_of(chunks) == "The capital of "
    assert [s.chosen.name for s in scores_of(chunks)] == ["The", " capital", " of", " France"]


def test_a_candidate_has_a_name_and_bytes_unless_it_is_a_control_token(vocabulary):
    assert vocabulary.candidate(2, -1.5) == Candidate("<|im_end|>", None, -1.5)
    tokens = vocabulary.encode("🤖")
    candidates = [vocabulary.candidate(token, 0.0) for token in tokens]
    assert len(candidates) > 1
    assert b"".join(candidate.text_bytes for candidate in candidates).decode() == "🤖"
    assert all("\ufffd" in candidate.name for candidate in candidates)


def test_bias_forbids_and_forces_a_token(stage, ask, vocabulary):
    [paris] = vocabulary.encode(" Paris")
    [rome] = vocabulary.encode(" Rome")
    without, forced = run(
        stage,
        [
            ask(sampling=Sampling(0, 0.0, bias=((paris, -100.0),))),
            ask(sampling=Sampling(0, 0.0, bias=((rome, 100.0),)), max_tokens=3),
        ],
    )
    assert "Paris" not in text_of(without[0])
    assert text_of(forced[0]) == " Rome Rome Rome"


def test_penalties_keep_a_reply_from_repeating_itself(stage, ask, vocabulary):
    question = "Write a list of rules for a game."
    free, penalised = run(
        stage,
        [
            ask(question, max_tokens=48),
            ask(question, Sampling(0, 0.0, frequency_penalty=2.0, presence_penalty=2.0), 48),
        ],
    )

    def share(chunks):
        tokens = vocabulary.encode(text_of(chunks))
        return len(set(tokens)) / len(tokens)

    assert share(penalised[0]) > share(free[0])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_reply_follows_its_schema(stage, ask, temperature):
    question = "Describe Paris as JSON."
    requests = [
        ask(question, Sampling(seed, temperature), 300, schema=json.dumps(CITY))
        for seed in range(3)
    ]
    for chunks, end in run(stage, requests):
        if end.finish_reason == "stop":
            found = json.loads(text_of(chunks))
            assert list(found) == ["city", "people", "rivers"]
            assert isinstance(found["people"], int)
            assert len(found["rivers"]) <= 2
        else:
            assert text_of(chunks).startswith("{")


def test_a_schema_of_any_object_gives_an_object(stage, ask):
    schema = '{"type": "object"}'
    question = 'Give me {"name": "Ann", "age": 5} as JSON.'
    [(chunks, end)] = run(stage, [ask(question, max_tokens=200, schema=schema)])
    assert end.finish_reason == "stop"
    assert isinstance(json.loads(text_of(chunks)), dict)


def test_all_options_give_the_same_alone_and_in_a_crowd(stage, ask):
    everything = Sampling(5, 0.9, 0.95, 50, 0.3, 0.2, ((260, -5.0),))
    crowd = [
        ask(sampling=everything, num_top=3),
        ask("Name three colours.", Sampling(1)),
        ask("Describe Paris as JSON.", everything, 40, schema=json.dumps(CITY)),
        ask("Name three colours.", Sampling(2, presence_penalty=1.0), stop=("and",)),
    ]
    together = run(stage, crowd)
    for params, (chunks, end) in zip(crowd, together, strict=True):
        [(alone, alone_end)] = run(stage, [params])
        assert (text_of(alone), alone_end) == (text_of(chunks), end)
        ours, want = (
            torch.tensor([s.chosen.logprob for s in scores_of(part)]) for part in (chunks, alone)
        )
        torch.testing.assert_close(ours, want, atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "fish"}',
        '{"not": {}}',
        '{"$ref": "http://127.0.0.1/x"}',
        '{"$ref": "#"}',
        '{"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]}',
        "[]",
        "{",
    ],
)
def test_an_invalid_or_unsupported_schema_is_refused(schema):
    with pytest.raises(ValueError, match=r"."):
        check_schema(schema)


@pytest.mark.parametrize("schema", ["{}", '{"type": "object"}', json.dumps(CITY)])
def test_a_supported_schema_is_accepted(schema):
    check_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(a?){500}a{500}$"},
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(1500)}},
    ],
)
def test_a_schema_that_would_become_too_large_is_refused_before_the_reply(schema):
    with pytest.raises(ValueError, match=r"(?i)error"):
        check_schema(json.dumps(schema))
