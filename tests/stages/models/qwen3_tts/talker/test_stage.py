"""The stage as a worker sees it: company, rows, text in pieces, ends, limits and errors."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from stages.contract.errors import CheckpointError, RequestError
from stages.contract.messages import (
    Caption,
    SpeechEnd,
    TalkerParams,
    TextChunk,
    TextSpan,
    VoiceFile,
)
from stages.models.qwen3_tts.talker.config import QwenTalkerConfig
from stages.models.qwen3_tts.talker.recordings import write_recording
from stages.models.qwen3_tts.talker.stage import QwenTalkerStage
from tests.qwen3_tts.cases import CASES, REFERENCE_TEXT, reference_audio
from tests.qwen3_tts.checkpoint import write_checkpoint
from tests.stages.models.qwen3_tts.talker.driver import Driver, Recording

NUM_FRAMES = 60
TEXTS = [
    "The other thing is in the house.",
    "Nothing.",
    "In the other house, there is the thing; and the other thing, too.",
    "So it is.",
    "\u4f60\u597d\uff0c the house.",
    "Here and there, and in the end there is nothing at all to be found in here.",
    "Who?",
    "The thing, then.",
]
VOICES = ["ryan", "vivian", "eric"]


def params(voice="ryan", seed=1, **changes):
    return TalkerParams(voice, seed, **changes)


def started(folder, capture=None, **changes):
    stage = QwenTalkerStage(QwenTalkerConfig(folder, max_tokens=256, **changes), capture)
    stage.load()
    stage.warm()
    return stage


def eight():
    """Eight different speeches."""
    return {
        f"r{i}": (params(VOICES[i % 3], seed=i, language="english" if i % 2 else ""), [text])
        for i, text in enumerate(TEXTS)
    }


def alone(folder, speeches):
    """The frames of each when nobody else is there."""
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
            language="" if case.language == "Auto" else case.language.lower(),
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
    # 16 bits of the recording move what is read of it, not what is chosen.
    assert driver.frames["a"] == values[f"{case.name}.codes"].tolist()
    unheard = [chunk.codes.tolist() for chunk in driver.chunks["a"] if not chunk.audible]
    assert unheard == ([values["reference.codes"].tolist()] if transcript else [])
    if transcript:
        assert not driver.chunks["a"][0].audible


def recorded(folder, name, seconds):
    """The options of a speech with a recording's voice."""
    audio = np.resize(reference_audio(), int(seconds * 24_000))
    write_recording(folder, name, audio, REFERENCE_TEXT, "en")
    return params(name, file=VoiceFile(str(folder / f"{name}.wav"), 0))


def test_others_speak_while_a_voice_is_copied(checkpoints, tmp_path):
    ann, bob = recorded(tmp_path, "ann", 1.0), recorded(tmp_path, "bob", 5.0)
    stage = started(checkpoints["base"])
    expected = Driver(stage, {"b": (bob, [TEXTS[2] * 3])}, max_frames=5).run().frames["b"]
    stage = started(checkpoints["base"])
    emits = {"a": [], "b": []}
    for request_id, options in (("a", ann), ("b", bob)):
        num_before = len(emits["a"])
        stage.open(request_id, options)
        stage.feed(request_id, TextChunk(TEXTS[2] * 3))
        stage.end_input(request_id)
        while not emits[request_id]:
            ready = [other for other in emits if other in stage._speeches and stage.ready(other)]
            for emit in stage.step(dict.fromkeys(ready, 8)):
                emits[emit.request_id].append(emit.chunk)
    # A frame in each step: 11 parts of 0.48 s, and those of the networks that read them.
    assert len(emits["a"]) - num_before > 15
    while len(emits["b"]) < 6:
        emits["b"] += [emit.chunk for emit in stage.step({"b": 8})]
    assert [chunk.codes.tolist()[0] for chunk in emits["b"][1:]] == expected
    assert emits["b"][0].codes.shape == (63, 6)
    for request_id in emits:
        stage.close(request_id)


def test_a_voice_that_two_wait_for_is_copied_once(checkpoints, tmp_path):
    ann = recorded(tmp_path, "ann", 1.0), ["So."]
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
def test_what_copies_voices_is_missed_at_the_start(file, name, tmp_path):
    folder = write_checkpoint(tmp_path / "base", "base")
    tensors = load_file(folder / file)
    del tensors[name]
    save_file(tensors, folder / file)
    with pytest.raises(CheckpointError, match=name):
        started(folder)


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
def test_eight_together_get_the_codes_that_each_gets_alone(
    sampled, checkpoints, sampling_checkpoint
):
    folder = sampling_checkpoint if sampled else checkpoints["custom_voice"]
    expected = alone(folder, eight())
    together = Driver(started(folder), eight()).run()
    assert together.frames == expected
    assert together.num_steps < NUM_FRAMES + 5  # they did run at once


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
def test_recorded_steps_give_the_same_codes_as_the_code_that_was_recorded(
    sampled, checkpoints, sampling_checkpoint
):
    folder = sampling_checkpoint if sampled else checkpoints["custom_voice"]
    expected = Driver(started(folder), eight()).run().frames
    recording = Recording()
    stage = started(folder, recording, max_rows=8)
    # 1, 2, 4 and 8 rows, and only one reach, as no speech has more than 256 positions.
    assert recording.num_captures == 8
    assert Driver(stage, eight()).run().frames == expected
    assert Driver(stage, eight()).run().frames == expected  # nothing is left of those before


def test_those_who_come_and_go_change_nothing_for_the_others(sampling_checkpoint):
    expected = alone(sampling_checkpoint, eight())
    stage = started(sampling_checkpoint, max_rows=3)
    together = Driver(stage, eight()).run()
    assert together.frames == expected
    assert stage.num_free_rows == 3


def test_another_seed_gives_other_codes(sampling_checkpoint):
    stage = started(sampling_checkpoint)
    speeches = {str(seed): (params(seed=seed), ["The thing."]) for seed in (1, 2, 1 + 2**40)}
    frames = Driver(stage, speeches | {"again": speeches["1"]}).run().frames
    assert frames["again"] == frames["1"]
    assert frames["1"] != frames["2"]
    assert frames["1"] != frames[str(1 + 2**40)]


def test_text_in_pieces_is_spoken_as_the_whole_is(checkpoints):
    text = TEXTS[2]
    folder = checkpoints["custom_voice"]
    whole = Driver(started(folder), {"a": (params(), [text])}).run().frames["a"]
    for pieces in (list(text), [text[:7], text[7:8], text[8:]], [text[:-2], "", text[-2:]]):
        assert Driver(started(folder), {"a": (params(), pieces)}).run().frames["a"] == whole


def test_speech_begins_before_the_text_is_complete_and_waits_for_what_it_reads(checkpoints):
    stage = started(checkpoints["custom_voice"])
    stage.open("a", params())
    assert not stage.ready("a")
    stage.feed("a", TextChunk("The"))
    assert not stage.ready("a")  # it may still become "Then"
    stage.feed("a", TextChunk(" house is"))
    frames = []
    while stage.ready("a"):
        frames += [emit.chunk for emit in stage.step({"a": 8})]
    tokens = len(stage._vocabulary.encode("The house"))
    assert len(frames) == tokens - 1  # the first is read with the prompt
    stage.end_input("a")
    assert stage.ready("a")
    stage.close("a")


def test_a_speech_ends_where_the_model_says_so_and_its_row_is_free(checkpoints, values):
    stage = started(checkpoints["voice_design"], max_rows=1)
    case = next(case for case in CASES if case.kind == "voice_design")
    speech = params("", instructions=case.instructions), [case.text]
    driver = Driver(stage, {"a": speech, "b": speech}).run()
    expected = values["design.codes"].tolist()
    assert 2 <= len(expected) < NUM_FRAMES
    assert driver.frames == {"a": expected, "b": expected}
    assert driver.ends == dict.fromkeys("ab", SpeechEnd(len(expected)))


def test_a_caption_comes_with_the_last_frame_for_all_that_was_said(checkpoints, values):
    stage = started(checkpoints["voice_design"])
    case = next(case for case in CASES if case.kind == "voice_design")
    options = params("", instructions=case.instructions, captions=True)
    chunks = Driver(stage, {"a": (options, [f"  {case.text} "])}).run().chunks["a"]
    expected = values["design.codes"].tolist()
    assert [chunk.codes.tolist()[0] for chunk in chunks] == expected
    assert [chunk.caption for chunk in chunks[:-1]] == [None] * (len(expected) - 1)
    assert chunks[-1].caption == Caption(TextSpan(2, 2 + len(case.text), 0, len(expected)))


def test_markup_is_not_read_unless_it_is_asked_for(checkpoints):
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
def test_nothing_to_speak_is_a_normal_end(text, checkpoints):
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


def test_a_long_prompt_is_read_in_steps_while_others_speak(checkpoints):
    folder = checkpoints["custom_voice"]
    told = params("vivian", instructions="Say it " + "in anger, " * 15), ["Nothing there."]
    expected = Driver(started(folder), {"a": told}, max_frames=20).run().frames["a"]
    stage = started(folder)
    stage._step_tokens = 16
    driver = Driver(stage, {"b": (params(), [TEXTS[0]]), "a": told}, max_frames=20).run()
    assert driver.frames["a"] == expected
    assert driver.num_steps >= 9 + len(expected)


def test_what_the_model_has_not_fails_the_request(checkpoints):
    stage = started(checkpoints["custom_voice"])
    for options in (params("nobody"), params(language="klingon")):
        with pytest.raises(RequestError):
            stage.open("a", options)
    stage.open("a", params())
    stage.close("a")
    base = started(checkpoints["base"])
    with pytest.raises(RequestError):
        base.open("a", params("nobody"))


def test_closing_early_gives_the_row_back(checkpoints):
    stage = started(checkpoints["custom_voice"], max_rows=1)
    stage.open("a", params())
    stage.feed("a", TextChunk(TEXTS[0]))
    list(stage.step({"a": 8}))
    assert stage.num_free_rows == 0
    stage.open("b", params())
    stage.feed("b", TextChunk(TEXTS[0]))
    assert not stage.ready("b")
    stage.close("a")
    assert stage.ready("b")
    stage.close("b")
    assert stage.num_free_rows == 1


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda folder: (folder / "vocab.json").unlink(), "tokenizer"),
        (lambda folder: (folder / "config.json").write_text("{}"), "no Qwen3-TTS"),
        (lambda folder: (folder / "config.json").write_text("{"), "no JSON"),
        (lambda folder: _cut(folder / "model.safetensors"), "no whole safetensors"),
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


def test_bfloat16_weights_speak_too(checkpoints):
    stage = QwenTalkerStage(
        QwenTalkerConfig(checkpoints["custom_voice"], dtype="bfloat16", max_tokens=256)
    )
    stage.load()
    frames = Driver(stage, {"a": (params(), [TEXTS[0]])}, max_frames=5).run().frames["a"]
    assert torch.tensor(frames).shape == (5, 6)
