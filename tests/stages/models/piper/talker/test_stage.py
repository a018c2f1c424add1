"""The talker as a worker uses it: order, flow control, seeds, speed, ends and errors."""

import pytest
import torch

from stages.contract.errors import RequestError
from stages.contract.messages import SpeechEnd, TalkerParams, TextChunk
from stages.models.piper.settings import PiperSettings
from stages.models.piper.talker import TalkerStage
from stages.models.piper.talker_config import TalkerConfig
from stages.models.piper.talker_request import CONTEXT_FRAMES
from stages.runtime.cores import FIRST_SOUNDS
from tests.stages.credit import CREDIT
from tests.stages.models.parameters import talker_params

pytestmark = pytest.mark.model

TEXT = "Hello there, my friend. The birch canoe slid on the smooth planks!\nGood bye."


def params(**changes):
    return talker_params(PiperSettings, "joe", **({"seed": 7} | changes))


def frames_of(chunks):
    return torch.cat([chunk.frames for chunk in chunks])


def test_pieces_come_in_slices_with_their_ends_marked(speak):
    chunks, end = speak({"a": (params(), [TEXT])})["a"]
    firsts = [chunk.first for chunk in chunks]
    assert firsts == [True, *(chunk.last for chunk in chunks[:-1])]
    assert chunks[-1].last
    assert sum(firsts) == 3
    assert [chunk.pause_s for chunk in chunks if chunk.last] == [0.2, 0.2, 0.0]
    assert len(chunks[0].frames) == 5 + CONTEXT_FRAMES
    assert end == SpeechEnd(num_frames=len(frames_of(chunks)))
    assert chunks[0].frames.shape[1] == 192
    assert chunks[0].frames.dtype == torch.float32


def test_the_same_seed_gives_the_same_frames_in_a_crowd_and_however_text_comes(speak):
    alone = frames_of(speak({"a": (params(), [TEXT])})["a"][0])
    crowd = speak(
        {
            "x": (params(seed=1), ["Something else is said here, and it takes a while."]),
            "a": (params(), list(TEXT)),
            "y": (params(seed=7, speed=1.5), ["Another voice, at another pace."]),
        }
    )
    torch.testing.assert_close(frames_of(crowd["a"][0]), alone, rtol=0, atol=0)
    other = frames_of(speak({"b": (params(seed=8), [TEXT])})["b"][0])
    assert other.shape != alone.shape or not torch.equal(other, alone)


LONG = "The train leaves from the second platform at a quarter past nine, and is rarely on time."


@pytest.mark.parametrize(
    ("num_open", "slice_frames"), [(1, 5), (2, 16), (8, 16), (9, 64), (18, 128)]
)
def test_the_first_slice_is_larger_when_more_requests_are_open(talker, num_open, slice_frames):
    ids = [str(number) for number in range(num_open)]
    for request_id in ids:
        talker.open(request_id, params())
    talker.feed("0", TextChunk(LONG))
    talker.end_input("0")
    (emit,) = talker.step({"0": CREDIT})
    for request_id in ids:
        talker.close(request_id)
    assert len(emit.chunk.frames) == slice_frames + CONTEXT_FRAMES


def test_a_request_that_began_alone_keeps_small_slices_when_others_come(talker):
    talker.open("a", params())
    talker.feed("a", TextChunk(LONG))
    talker.end_input("a")
    sizes = [len(emit.chunk.frames) for emit in talker.step({"a": CREDIT})]
    for number in range(20):
        talker.open(str(number), params())
    sizes += [len(emit.chunk.frames) for emit in talker.step({"a": CREDIT})]
    for request_id in ("a", *map(str, range(20))):
        talker.close(request_id)
    assert sizes == [5 + CONTEXT_FRAMES, 16]


def test_talkers_of_a_process_share_the_voice(talker, monkeypatch):
    monkeypatch.setattr("stages.models.piper.talker.read_onnx", None)  # reading again would fail
    other = TalkerStage(TalkerConfig(device="cpu"))
    other.load()
    other.open("a", params())
    other.close("a")


def test_talkers_of_a_process_count_each_others_requests(talker):
    other = TalkerStage(TalkerConfig(device="cpu"))
    other.load()
    for number in range(9):
        (talker if number % 2 else other).open(str(number), params())
    talker.feed("1", TextChunk(LONG))
    talker.end_input("1")
    (emit,) = talker.step({"1": CREDIT})
    for number in range(9):
        (talker if number % 2 else other).close(str(number))
    assert len(emit.chunk.frames) == 64 + CONTEXT_FRAMES


def test_every_slice_lets_the_decoder_make_the_next_step_of_the_ramp(speak):
    chunks, _ = speak({"a": (params(), [LONG, " ", LONG])})["a"]
    sizes, held = [], 0
    for chunk in chunks:
        held += len(chunk.frames)
        sizes.append(held if chunk.last else held - CONTEXT_FRAMES)
        held = 0 if chunk.last else CONTEXT_FRAMES
    ends = [number for number, chunk in enumerate(chunks) if chunk.last]
    whole = [size for number, size in enumerate(sizes) if number not in ends]
    assert whole == [5, 16, 32, 64, 256]  # a whole phrase lies between the last two


def test_speed_divides_durations(speak):
    def num_frames(speed):
        return speak({"a": (params(speed=speed), [TEXT])})["a"][1].num_frames

    normal = num_frames(1.0)
    for speed in (0.25, 2.0, 4.0):
        assert num_frames(speed) == pytest.approx(normal / speed, abs=3)


def test_without_noise_the_seed_does_not_matter(speak):
    quiet = {"noise_scale": 0.0, "noise_w": 0.0}
    one, two = (
        frames_of(speak({"a": (params(seed=seed, **quiet), ["Hello."])})["a"][0]) for seed in (1, 2)
    )
    assert torch.equal(one, two)


@pytest.mark.parametrize("text", ["", "... 😀 ---", "\n\n"])
def test_text_without_anything_to_speak_ends_normally(speak, text):
    assert speak({"a": (params(), [text])})["a"] == ([], SpeechEnd(0))


def test_other_stages_give_way_only_to_the_first_words(talker, monkeypatch):
    monkeypatch.setattr(FIRST_SOUNDS, "made_here", True)
    talker.open("a", params())
    talker.feed("a", TextChunk("... "))
    list(talker.step({"a": CREDIT}))
    assert FIRST_SOUNDS.num_coming == 0
    talker.feed("a", TextChunk("Good morning to you, and how are you? "))
    list(talker.step({"a": CREDIT}))
    assert FIRST_SOUNDS.num_coming == 1
    FIRST_SOUNDS.end("a")  # as code2wav does when it is heard
    list(talker.step({"a": CREDIT}))
    assert FIRST_SOUNDS.num_coming == 0
    talker.close("a")


def test_no_stage_gives_way_to_a_closed_request(talker, monkeypatch):
    monkeypatch.setattr(FIRST_SOUNDS, "made_here", True)
    talker.open("a", params())
    talker.feed("a", TextChunk("Good morning to you, and how are you? "))
    list(talker.step({"a": CREDIT}))
    assert FIRST_SOUNDS.num_coming == 1
    talker.close("a")
    assert FIRST_SOUNDS.num_coming == 0


def test_speech_starts_while_text_is_still_written(talker):
    talker.open("a", params())
    talker.feed("a", TextChunk("Good morning to you, and"))
    assert talker.ready("a", CREDIT)
    assert [emit.chunk.first for emit in talker.step({"a": CREDIT})] == [True]
    talker.close("a")


def test_the_talker_takes_only_as_much_text_as_it_can_speak_soon(talker):
    talker.open("a", params())
    fed = 0
    while talker.wants_chunk("a"):
        talker.feed("a", TextChunk("One more sentence. "))
        fed += 1
    assert fed < 10
    talker.close("a")


def test_a_step_emits_at_most_one_chunk_of_one_request(talker):
    for rid in ("a", "b"):
        talker.open(rid, params())
        talker.feed(rid, TextChunk(TEXT))
        talker.end_input(rid)
    served = []
    for _ in range(4):
        emits = list(talker.step({"a": CREDIT, "b": CREDIT}))
        assert len(emits) == 1
        served.append(emits[0].request_id)
    assert set(served) == {"a", "b"}
    talker.close("a")
    talker.close("b")


def test_an_unknown_voice_fails_its_request(talker):
    with pytest.raises(RequestError, match="no_such_voice"):
        talker.open("a", TalkerParams("no_such_voice", seed=0))


def test_an_exception_fails_its_request(talker):
    talker.open("a", params(speed=0.0))
    talker.feed("a", TextChunk("Hello."))
    talker.end_input("a")
    with pytest.raises(RequestError) as error:
        list(talker.step({"a": CREDIT}))
    assert error.value.request_id == "a"
    talker.close("a")
