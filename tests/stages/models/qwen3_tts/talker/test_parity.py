"""The talker with small random weights, against what the public package computes from them."""

import pytest
import torch

from stages.kernels.attention import Span
from stages.kernels.kv_cache import Slot
from stages.models.qwen3_tts.talker.model_config import read_config
from stages.models.qwen3_tts.talker.prompt import SPEAKER, PromptBuilder, Reference
from stages.models.qwen3_tts.talker.text_tokenizer import TextTokenizer
from tests.qwen3_tts.cases import CASES, REFERENCE_TEXT, TEXTS

TOLERANCE = 1e-4  # float32, for values around 1


def prompt_of(folder, case):
    """The prompt, and the whole text stream."""
    tokenizer = TextTokenizer(folder)
    reference = None
    if case.kind == "base":
        reference = Reference(REFERENCE_TEXT if case.in_context else "", 17)
    prompt = PromptBuilder(read_config(folder), tokenizer).build(
        speaker=case.speaker,
        language=case.language_name,
        instructions=case.instructions,
        reference=reference,
    )
    config = read_config(folder)
    stream = [*prompt.transcript_tokens, *tokenizer.encode(case.text), config.text.eos]
    stream += [config.text.pad] * (prompt.num_stream_tokens - len(stream))
    return prompt, stream


def embedded(talker, prompt, stream, values):
    config = talker.config
    text = torch.tensor([*prompt.text, *stream[: prompt.num_stream_tokens]])
    state = talker.embed_text(text)
    beside = state[-len(prompt.codes) - prompt.num_stream_tokens :]
    for row, code in zip(beside, prompt.codes, strict=False):
        row += (
            values["reference.speaker"]
            if code == SPEAKER
            else talker.embed_codes(torch.tensor([code]))[0]
        )
    beside[len(prompt.codes)] += talker.embed_codes(torch.tensor([config.control.bos]))[0]
    if prompt.num_reference_frames:
        beside[len(prompt.codes) + 1 :] += talker.embed_frames(values["reference.codes"])
    return state


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_prompts_and_greedy_frames_are_the_packages(case, checkpoints, values, make_batch):
    folder = checkpoints[case.kind]
    talker, predictor, batch = make_batch(folder)
    prompt, stream = prompt_of(folder, case)
    state = embedded(talker, prompt, stream, values)
    torch.testing.assert_close(state, values[f"{case.name}.prompt"], rtol=0, atol=TOLERANCE)
    rest = torch.tensor(stream[prompt.num_stream_tokens :] or [talker.config.text.pad])
    trailing = talker.embed_text(rest)
    torch.testing.assert_close(trailing, values[f"{case.name}.trailing"], rtol=0, atol=TOLERANCE)

    row = 2
    last = batch.prefill([Span(Slot(batch.slab, row), 0, len(state))], [state])
    logits = [talker.logits(last)[0]]
    batch.claim(row, len(state))
    batch.begin(row, last[0], seed=0)
    batch.set_text(row, 0, rest)
    batch.active[row] = True
    predictor.prepare(3)
    expected = values[f"{case.name}.codes"]
    frames = []
    for _ in range(len(expected)):
        batch.predict(3)
        frames.append(batch.frames[row].clone())
        batch.advance(3, 128)
        logits.append(talker.logits(batch.hidden[row : row + 1])[0])
    assert torch.stack(frames).tolist() == expected.tolist()
    stored = values[f"{case.name}.logits"]
    ours = torch.stack(logits[: len(stored)])
    torch.testing.assert_close(ours, stored, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("case", CASES[:1], ids=lambda case: case.name)
def test_the_code_predictors_logits_are_the_packages(case, checkpoints, values, make_batch):
    talker, predictor, batch = make_batch(checkpoints[case.kind])
    prompt, stream = prompt_of(checkpoints[case.kind], case)
    state = embedded(talker, prompt, stream, values)
    last = batch.prefill([Span(Slot(batch.slab, 0), 0, len(state))], [state])
    found = []

    def greedy(logits, group):
        found.append(logits[0])
        return logits.argmax(-1)

    predictor.prepare(1)
    frame = predictor(last, values[f"{case.name}.codes"][0, :1], greedy)
    expected = values[f"{case.name}.predictor_logits"][: len(found)]
    torch.testing.assert_close(torch.stack(found), expected, rtol=0, atol=TOLERANCE)
    assert frame[0].tolist() == values[f"{case.name}.codes"][0].tolist()


def test_the_tokenizer_is_the_packages(checkpoints, values):
    tokenizer = TextTokenizer(checkpoints["base"])
    for i, text in enumerate(TEXTS):
        assert tokenizer.encode(text) == values[f"text.{i}"].tolist()
