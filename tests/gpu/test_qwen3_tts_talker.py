"""The talker on a GPU: frames of the public package, graphs, batches, and no waiting in a step."""

import pytest
import torch

from stages.contract.messages import TextChunk, VoiceFile
from stages.models.qwen3_tts.settings import QwenSettings
from stages.models.qwen3_tts.talker.config import QwenTalkerConfig
from stages.models.qwen3_tts.talker.recordings import write_recording
from stages.models.qwen3_tts.talker.stage import QwenTalkerStage
from tests.qwen3_tts.cases import CASES, REFERENCE_TEXT, reference_audio
from tests.stages.credit import CREDIT
from tests.stages.models.parameters import talker_params
from tests.stages.models.qwen3_tts.talker.driver import Driver, eight_speeches, params

TEXT = "The other thing is in the house, and nothing else is there."


def started(folder, capture=None, dtype="float32", max_rows=8, device="cuda"):
    config = QwenTalkerConfig(folder, device, dtype, max_rows, max_tokens=512)
    stage = QwenTalkerStage(config, capture)
    stage.load()
    stage.warm()
    return stage


def without_graphs(work):
    """In place of a capture: runs the work itself each time."""
    return work


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_greedy_frames_are_the_packages(case, checkpoints, values, tmp_path):
    file = None
    if case.kind == "base":
        transcript = REFERENCE_TEXT if case.in_context else ""
        write_recording(tmp_path, "ann", reference_audio(), transcript, "en")
        file = VoiceFile(str(tmp_path / "ann.wav"), 0)
    options = talker_params(
        QwenSettings,
        case.speaker,
        0,
        language=case.language_name,
        instructions=case.instructions,
        file=file,
    )
    stage = started(checkpoints[case.kind])
    frames = Driver(stage, {"a": (options, [case.text])}).run().frames["a"]
    assert frames == values[f"{case.name}.codes"].tolist()


@pytest.mark.parametrize("kind", ["custom_voice", "sampled"])
def test_graphs_and_batches_change_no_code(kind, checkpoints):
    expected = {}
    for request_id, speech in eight_speeches().items():
        alone = started(checkpoints[kind], without_graphs, max_rows=1)
        expected |= Driver(alone, {request_id: speech}).run().frames
    stage = started(checkpoints[kind])
    assert Driver(stage, eight_speeches()).run().frames == expected
    assert Driver(stage, eight_speeches()).run().frames == expected


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")  # torch calls it a prototype
def test_codes_stay_on_the_device_and_a_step_waits_only_for_its_event(checkpoints):
    stage = started(checkpoints["custom_voice"], max_rows=4)
    for request_id in "abc":
        stage.open(request_id, params())
        stage.feed(request_id, TextChunk(TEXT))
        stage.end_input(request_id)
    torch.cuda.set_sync_debug_mode("error")  # raises where an operation waits for the device
    try:  # the first step reads the prompts
        emits = [emit for _ in range(10) for emit in stage.step(dict.fromkeys("abc", CREDIT))]
        emits += [emit for _ in range(5) for emit in stage.step(dict.fromkeys("ab", CREDIT))]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(emits) == 10 * 3 + 5 * 2
    assert {emit.chunk.codes.device.type for emit in emits} == {"cuda"}


def test_bfloat16_works(checkpoints):
    stage = started(checkpoints["sampled"], dtype="bfloat16")
    frames = Driver(stage, eight_speeches(), max_frames=20).run().frames
    assert {len(codes) for codes in frames.values()} == {20}
    assert all(0 <= code < 256 for codes in frames.values() for frame in codes for code in frame)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="no second CUDA device")
def test_a_second_device_uses_its_own_graphs(checkpoints):
    expected = Driver(started(checkpoints["sampled"]), eight_speeches()).run().frames
    stage = started(checkpoints["sampled"], device="cuda:1")
    driver = Driver(stage, eight_speeches()).run()
    assert driver.frames == expected
    assert {c.codes.device.index for chunks in driver.chunks.values() for c in chunks} == {1}
