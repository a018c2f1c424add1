"""The talker stage as a worker sees it: batches, rows, text in pieces, ends, limits and errors."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from stages.contract.errors import CheckpointError, RequestError
from stages.contract.messages import (
    Caption,
    SpeechEnd,
    TextChunk,
    TextSpan,
    VoiceFile,
)
from stages.models.qwen3_tts.talker.config import QwenTalkerConfig
from stages.models.qwen3_tts.talker.recordings import write_recording
from stages.models.qwen3_tts.talker.stage import QwenTalkerStage
from stages.models.qwen3_tts.talker.text_tokenizer import TextTokenizer
from tests.qwen3_tts.cases import CASES, REFERENCE_TEXT, reference_audio
from tests.qwen3_tts.checkpoint import write_checkpoint
from tests.stages.credit import CREDIT
from tests.stages.models.qwen3_tts.talker.driver import (
    TEXTS,
    Driver,
    RecordingCapture,
    eight_speeches,
    params,
)

NUM_FRAMES = 60


def started(folder, capture=None, **changes):
    stage = QwenTalkerStage(QwenTalkerConfig(folder, **{"max_tokens": 256, **changes}), capture)
    stage.load()
    stage.warm()
    return stage


def frames_alone(folder, speeches):
    """The frames of each speech when it runs alone."""
    frames = {}
    for request_id, speech in speeches.items():
        stage = started(folder, max_rows=1)
        frames |= Driver(stage, {request_id: speech}).run().frames
    return frames


def test_the_greedy_frames_are_the_packages(checkpoints, values, tmp_path):
    for case in (case for case in CASES if case.kind != "base"):
        stage = started(checkpoints[case.kind])
        options = params(
            case.speaker,
            language=case.language_name,
            instructions=case.instructions,
        )
        frames = Driver(stage, {"a": (options, [case.text])}).run().frames["a"]
        assert frames == values[f"{case.name}.codes"].tolist(), case.name


@pytest.mark.parametrize("transcript", ["", REFERENCE_TEXT])
def test_a_copied_voices_frames_are_the_packages(transcript, checkpoints, values, tmp_path):
    write_recording(tmp_path, "ann", reference_audio(), transcript, "en")
    file = VoiceFile(str(tmp_path / "ann.wav"), 0)
    case = next(c for c in CASES if c.name == ("in_context" if transcript else "x_vector"))
    stage = started(checkpoints["base"])
    options = params("ann", language="english", file=file)
    driver = Driver(stage, {"a": (options, [case.text])}).run()
    # Rounding the recording to 16 bits changes the embeddings, but no code.
    assert driver.frames["a"] == values[f"{case.name}.codes"].tolist()
    context = [chunk.codes.tolist() for chunk in driver.chunks["a"] if not chunk.audible]
    assert context == ([values["reference.codes"].tolist()] if transcript else [])
    if transcript:
        assert not driver.chunks["a"][0].audible


def params_of_recording(folder, name, seconds):
    """The parameters of a speech with the voice of a new recording."""
    audio = np.resize(reference_audio(), int(seconds * 24_000))
    write_recording(folder, name, audio, REFERENCE_TEXT, "en")
    return params(name, file=VoiceFile(str(folder / f"{name}.wav"), 0))


def test_other_requests_get_frames_while_a_voice_is_copied(checkpoints, tmp_path):
    ann, bob = params_of_recording(tmp_path, "ann", 1.0), params_of_recording(tmp_path, "bob", 5.0)
    stage = started(checkpoints["base"])
    expected = Driver(stage, {"b": (bob, [TEXTS[2] * 3])}, max_frames=5).run().frames["b"]
    stage = started(checkpoints["base"])
    emits, opened = {"a": [], "b": []}, []
    for request_id, options in (("a", ann), ("b", bob)):
        num_before = len(emits["a"])
        stage.open(request_id, options)
        opened.append(request_id)
        stage.feed(request_id, TextChunk(TEXTS[2] * 3))
        stage.end_input(request_id)
        while not emits[request_id]:
            ready = [other for other in opened if stage.ready(other, CREDIT)]
            for emit in stage.step(dict.fromkeys(ready, CREDIT)):
                emits[emit.request_id].append(emit.chunk)
    # "a" gets a frame in each step: 11 parts of 0.48 s, and the parts of the transformer.
    assert len(emits["a"]) - num_before > 15
    while len(emits["b"]) < 6:
        emits["b"] += [emit.chunk for emit in stage.step({"b": CREDIT})]
    assert [chunk.codes.tolist()[0] for chunk in emits["b"][1:]] == expected
    assert emits["b"][0].codes.shape == (63, 6)
    for request_id in emits:
        stage.close(request_id)


def test_a_voice_that_two_requests_need_is_copied_once(checkpoints, tmp_path):
    ann = params_of_recording(tmp_path, "ann", 1.0), ["So."]
    alone = Driver(started(checkpoints["base"]), {"a": ann}, max_frames=3).run()
    stage = started(checkpoints["base"])
    both = Driver(stage, dict.fromkeys("ab", ann), max_frames=3).run()
    again = Driver(stage, {"a": ann}, max_frames=3).run()
    assert both.frames == dict.fromkeys("ab", alone.frames["a"])
    assert both.num_steps == alone.num_steps > again.num_steps
    assert again.frames == alone.frames


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("model.safetensors", "speaker_encoder.asp.tdnn.conv.weight"),
        (
            "speech_tokenizer/model.safetensors",
            "encoder.encoder_transformer.layers.1.mlp.fc1.weight",
        ),
    ],
)
def test_a_missing_tensor_of_an_encoder_is_named_at_start(file, name, tmp_path):
    folder = write_checkpoint(tmp_path / "base", "base")
    tensors = load_file(folder / file)
    del tensors[name]
    save_file(tensors, folder / file)
    with pytest.raises(CheckpointError, match=name):
        started(folder)


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
def test_eight_requests_together_get_the_same_codes_as_alone(
    sampled, checkpoints, sampling_checkpoint
):
    folder = sampling_checkpoint if sampled else checkpoints["custom_voice"]
    expected = frames_alone(folder, eight_speeches())
    together = Driver(started(folder), eight_speeches()).run()
    assert together.frames == expected
    assert together.num_steps < NUM_FRAMES + 5  # they ran at the same time


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
def test_replayed_steps_give_the_same_codes_as_direct_ones(
    sampled, checkpoints, sampling_checkpoint
):
    folder = sampling_checkpoint if sampled else checkpoints["custom_voice"]
    expected = Driver(started(folder), eight_speeches()).run().frames
    capture = RecordingCapture()
    stage = started(folder, capture, max_rows=8)
    # 1, 2, 4 and 8 rows, and one attention length, because max_tokens is 256.
    assert capture.num_captures == 8
    assert Driver(stage, eight_speeches()).run().frames == expected
    assert (
        Driver(stage, eight_speeches()).run().frames == expected
    )  # nothing is left of the requests before


def test_requests_that_come_and_go_do_not_change_the_others(sampling_checkpoint):
    expected = frames_alone(sampling_checkpoint, eight_speeches())
    stage = started(sampling_checkpoint, max_rows=3)
    together = Driver(stage, eight_speeches()).run()
    assert together.frames == expected
    assert stage.num_free_rows == 3


def test_another_seed_gives_different_codes(sampling_checkpoint):
    stage = started(sampling_checkpoint)
    speeches = {str(seed): (params(seed=seed), ["The thing."]) for seed in (1, 2, 1 + 2**40)}
    frames = Driver(stage, speeches | {"again": speeches["1"]}).run().frames
    assert frames["again"] == frames["1"]
    assert frames["1"] != frames["2"]
    assert frames["1"] != frames[str(1 + 2**40)]


def test_text_in_pieces_gives_the_same_frames_as_the_whole(checkpoints):
    text = TEXTS[2]
    folder = checkpoints["custom_voice"]
    whole = Driver(started(folder), {"a": (params(), [text])}).run().frames["a"]
    for pieces in (list(text), [text[:7], text[7:8], text[8:]], [text[:-2], "", text[-2:]]):
        assert Driver(started(folder), {"a": (params(), pieces)}).run().frames["a"] == whole


def test_speech_begins_before_the_text_is_complete_and_waits_for_its_tokens(checkpoints):
    stage = started(checkpoints["custom_voice"])
    stage.open("a", params())
    assert not stage.ready("a", CREDIT)
    stage.feed("a", TextChunk("The"))
    assert not stage.ready("a", CREDIT)  # it may still become "Then"
    stage.feed("a", TextChunk(" house is"))
    frames = []
    while stage.ready("a", CREDIT):
        frames += [emit.chunk for emit in stage.step({"a": CREDIT})]
    num_tokens = len(TextTokenizer(checkpoints["custom_voice"]).encode("The house"))
    assert len(frames) == num_tokens - 1  # the first is read with the prompt
    stage.end_input("a")
    assert stage.ready("a", CREDIT)
    stage.close("a")


def test_a_speech_ends_where_the_model_says_so_and_frees_its_row(checkpoints, values):
    stage = started(checkpoints["voice_design"], max_rows=1)
    case = next(case for case in CASES if case.kind == "voice_design")
    speech = params("", instructions=case.instructions), [case.text]
    driver = Driver(stage, {"a": speech, "b": speech}).run()
    expected = values["design.codes"].tolist()
    assert 2 <= len(expected) < NUM_FRAMES
    assert driver.frames == {"a": expected, "b": expected}
    assert driver.ends == dict.fromkeys("ab", SpeechEnd(len(expected)))


def test_one_caption_for_the_whole_text_comes_with_the_last_frame(checkpoints, values):
    stage = started(checkpoints["voice_design"])
    case = next(case for case in CASES if case.kind == "voice_design")
    options = params("", instructions=case.instructions, captions=True)
    chunks = Driver(stage, {"a": (options, [f"  {case.text} "])}).run().chunks["a"]
    expected = values["design.codes"].tolist()
    assert [chunk.codes.tolist()[0] for chunk in chunks] == expected
    assert [chunk.caption for chunk in chunks[:-1]] == [None] * (len(expected) - 1)
    assert chunks[-1].caption == Caption(TextSpan(2, 2 + len(case.text), 0, len(expected)))


def test_markup_is_removed_unless_clean_is_off(checkpoints):
    stage = started(checkpoints["custom_voice"])
    speeches = {
        "marked": (params(), ["The **thing**."]),
        "plain": (params(clean=False), ["The thing."]),
        "verbatim": (params(clean=False), ["The **thing**."]),
    }
    frames = Driver(stage, speeches, max_frames=20).run().frames
    assert frames["marked"] == frames["plain"]
    assert frames["verbatim"] != frames["plain"]


@pytest.mark.parametrize("text", ["", " \n", "**"])
def test_a_text_without_words_ends_normally(text, checkpoints):
    stage = started(checkpoints["custom_voice"])
    driver = Driver(stage, {"a": (params(), [text])}).run()
    assert driver.ends == {"a": SpeechEnd(0)}
    assert driver.frames == {"a": []}


def test_a_speech_that_does_not_end_fails_alone(checkpoints):
    config = QwenTalkerConfig(checkpoints["custom_voice"], max_tokens=40)
    stage = QwenTalkerStage(config)
    stage.load()
    long = params(), ["The thing."]
    driver = Driver(stage, {"a": long, "b": long}).run()
    assert "did not end" in str(driver.errors["a"])
    assert driver.errors.keys() == {"a", "b"}
    assert driver.frames["a"] == driver.frames["b"]
    assert stage.num_free_rows == 16


def test_a_long_prompt_is_prefilled_in_several_steps(checkpoints):
    instructions = "Say it " + "in anger, " * 40  # about 330 tokens; a step takes 64 of them
    long = params("vivian", instructions=instructions), ["Nothing there."]
    speeches = {"b": (params(), [TEXTS[0]]), "a": long}
    folder = checkpoints["custom_voice"]
    alone = Driver(started(folder, max_tokens=512), {"a": long}, max_frames=20).run()
    together = Driver(started(folder, max_tokens=512), speeches, max_frames=20).run()
    assert together.frames["a"] == alone.frames["a"]
    assert together.num_steps >= 4 + len(alone.frames["a"])


def test_an_unknown_voice_or_language_fails_the_request(checkpoints):
    stage = started(checkpoints["custom_voice"])
    for options in (params("nobody"), params(language="klingon")):
        with pytest.raises(RequestError):
            stage.open("a", options)
    stage.open("a", params())
    stage.close("a")
    base = started(checkpoints["base"])
    with pytest.raises(RequestError):
        base.open("a", params("nobody"))


def test_closing_early_frees_the_row(checkpoints):
    stage = started(checkpoints["custom_voice"], max_rows=1)
    stage.open("a", params())
    stage.feed("a", TextChunk(TEXTS[0]))
    list(stage.step({"a": CREDIT}))
    assert stage.num_free_rows == 0
    stage.open("b", params())
    stage.feed("b", TextChunk(TEXTS[0]))
    assert not stage.ready("b", CREDIT)
    stage.close("a")
    assert stage.ready("b", CREDIT)
    stage.close("b")
    assert stage.num_free_rows == 1


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda folder: (folder / "vocab.json").unlink(), "tokenizer"),
        (lambda folder: (folder / "config.json").write_text("{}"), "no Qwen3-TTS"),
        (lambda folder: (folder / "config.json").write_text("{"), "not valid JSON"),
        (lambda folder: _cut(folder / "model.safetensors"), "not a complete safetensors"),
        (lambda folder: _drop(folder / "model.safetensors"), "codec_head"),
        (lambda folder: _change(folder / "config.json"), "hidden|text_embedding"),
    ],
)
def test_a_checkpoint_that_cannot_be_used_says_why(spoil, message, tmp_path):
    folder = write_checkpoint(tmp_path / "spoilt", "custom_voice")
    spoil(folder)
    with pytest.raises(CheckpointError, match=message):
        QwenTalkerStage(QwenTalkerConfig(folder)).load()


def _cut(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _drop(path):
    tensors = load_file(path)
    del tensors["talker.codec_head.weight"]
    save_file(tensors, path)


def _change(path):
    path.write_text(path.read_text().replace('"text_hidden_size": 40', '"text_hidden_size": 48'))


def test_bfloat16_weights_work(checkpoints):
    stage = QwenTalkerStage(
        QwenTalkerConfig(checkpoints["custom_voice"], dtype="bfloat16", max_tokens=256)
    )
    stage.load()
    frames = Driver(stage, {"a": (params(), [TEXTS[0]])}, max_frames=5).run().frames["a"]
    assert torch.tensor(frames).shape == (5, 6)
