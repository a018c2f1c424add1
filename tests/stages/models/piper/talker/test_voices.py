"""Voices of every layout: found, listed, loaded when they are first used, and downloaded."""

import gc
import hashlib
import json
import logging
from itertools import pairwise

import numpy as np
import pytest
import structlog
import torch

from stages.contract.errors import RequestError
from stages.contract.messages import Code2WavParams, TalkerParams, TextChunk, VoiceFile
from stages.kernels.convolution import Parameters
from stages.models.piper.code2wav import Code2WavStage
from stages.models.piper.code2wav_config import Code2WavConfig
from stages.models.piper.download import add_voice
from stages.models.piper.hifigan import HifiGan
from stages.models.piper.settings import PiperSettings
from stages.models.piper.talker import TalkerStage
from stages.models.piper.talker_config import TalkerConfig
from stages.models.piper.voice_file import voice_file
from stages.models.piper.voices import current_voices, find_voices
from stages.weights.onnx import read_onnx
from tests.stages.credit import CREDIT
from tests.stages.models.parameters import talker_params
from tests.stages.weights.onnx_writer import write_decoder_alone, write_voice

TEXT = "Hello there, my friend. This is a test of a voice."
SHAPES = [("low", 1), ("medium", 1), ("medium", 3), ("high", 1), ("high", 2)]


@pytest.fixture(autouse=True)
def as_configured():
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture
def logged():
    lines = []

    def keep(_logger, _method, event):
        lines.append(event)
        raise structlog.DropEvent

    before = structlog.get_config()
    everything = structlog.make_filtering_bound_logger(logging.DEBUG)
    structlog.configure(processors=[keep], wrapper_class=everything)
    yield lines
    structlog.configure(**before)


@pytest.fixture(scope="module")
def stages():
    """A talker and a code2wav without configured voices."""
    talker = TalkerStage(TalkerConfig({}, "cpu", max_loaded_voices=2))
    code2wav = Code2WavStage(Code2WavConfig({}, "cpu", max_loaded_voices=2))
    for stage in (talker, code2wav):
        stage.load()
        stage.warm()
    return talker, code2wav


def frames_of(talker, file, text=TEXT, **params):
    talker.open("a", talker_params(PiperSettings, "any", seed=1, file=file, **params))
    talker.feed("a", TextChunk(text))
    talker.end_input("a")
    chunks = []
    while True:
        (*emits,) = talker.step({"a": CREDIT})
        chunks += [emit.chunk for emit in emits if emit.chunk is not None]
        if any(emit.end is not None for emit in emits):
            talker.close("a")
            return chunks


def samples_of(code2wav, file, chunks, speaker=0):
    code2wav.open("a", Code2WavParams("any", speaker, file))
    waiting, audio = list(chunks), []
    while True:
        while waiting and code2wav.wants_chunk("a"):
            code2wav.feed("a", waiting.pop(0))
            if not waiting:
                code2wav.end_input("a")
        for emit in code2wav.step({"a": CREDIT}) if code2wav.ready("a", CREDIT) else ():
            if emit.end is not None:
                code2wav.close("a")
                return np.concatenate(audio)
            audio.append(emit.chunk.samples)


@pytest.mark.parametrize(("quality", "num_speakers"), SHAPES)
def test_every_layout_speaks_from_its_file(tmp_path, stages, quality, num_speakers):
    talker, code2wav = stages
    file = voice_file(write_voice(tmp_path, "v", quality, num_speakers))
    sounds = []
    for speaker in range(num_speakers):
        chunks = frames_of(talker, file, speaker=speaker)
        sounds.append(samples_of(code2wav, file, chunks, speaker))
        assert len(sounds[-1]) > 2_000
        assert np.abs(sounds[-1]).max() > 50
    for one, other in pairwise(sounds):
        assert len(one) != len(other) or not np.array_equal(one, other)


@pytest.mark.parametrize(("quality", "num_speakers"), SHAPES)
def test_the_decoder_equals_onnxruntime(tmp_path, quality, num_speakers):
    import onnxruntime

    decoder = write_decoder_alone(tmp_path, quality, num_speakers)
    voice = read_onnx(write_voice(tmp_path, "v", quality, num_speakers))
    ours = HifiGan(Parameters(voice, torch.device("cpu"), torch.float32))
    session = onnxruntime.InferenceSession(str(decoder), providers=["CPUExecutionProvider"])
    frames = np.random.default_rng(1).normal(size=(40, ours.channels)).astype(np.float32)
    for speaker in {0, num_speakers - 1}:
        feeds = {"frames": frames.T[None]}
        if num_speakers > 1:
            feeds["speaker"] = voice.tensors["emb_g.weight"][speaker][None, :, None]
        expected = session.run(None, feeds)[0].squeeze()
        whole = ours.decode(torch.tensor(frames), 0, 40, speaker=speaker).numpy()
        assert np.abs(expected).max() > 0.01
        np.testing.assert_allclose(whole, expected, rtol=0, atol=2e-5)
        part = ours.decode(torch.tensor(frames), 16, 32, 20, speaker).numpy()
        np.testing.assert_allclose(part, expected[16 * ours.hop : 32 * ours.hop], atol=2e-5)


def test_a_folder_of_voices_is_found_and_broken_voices_are_logged(tmp_path, logged):
    write_voice(tmp_path, "en_US-good-low", "low")
    write_voice(tmp_path / "deep" / "er", "en_US-many-medium", "medium", 3)
    for name in ("no_settings", "truncated", "not_onnx", "empty", "joe", "odd"):
        write_voice(tmp_path, name)
    (tmp_path / "no_settings.onnx.json").unlink()
    whole = (tmp_path / "truncated.onnx").read_bytes()
    (tmp_path / "truncated.onnx").write_bytes(whole[:-10])
    (tmp_path / "not_onnx.onnx").write_bytes(b"<html>no such file</html>")
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "odd.onnx.json").write_text("[]")
    found = find_voices(tmp_path)
    assert sorted(found) == ["en_US-good-low", "en_US-many-medium", "joe"]
    assert found["en_US-many-medium"].speakers == ("s0", "s1", "s2")
    assert len(logged) == 6
    assert all(line["event"] == "voice_skipped" and line["reason"] for line in logged)
    names = sorted(line["file"].rpartition("/")[2].split(".")[0] for line in logged)
    assert names == ["empty", "joe", "no_settings", "not_onnx", "odd", "truncated"]


def test_the_bundled_voice_comes_first_and_its_card_names_a_licence(tmp_path):
    (joe,) = current_voices(tmp_path / "nothing here")
    assert (joe.name, joe.quality, joe.rate_hz, joe.licence) == ("joe", "medium", 22050, "CC0")
    assert current_voices(None) == (joe,)


def test_a_file_that_is_replaced_is_another_voice(tmp_path, stages):
    talker, _ = stages
    path = write_voice(tmp_path, seed=1)
    before, old = voice_file(path), frames_of(talker, voice_file(path))
    write_voice(tmp_path, seed=2)
    after = VoiceFile(str(path), before.changed_ns + 1)
    new = frames_of(talker, after)
    assert len(old[0].frames) != len(new[0].frames) or not torch.equal(old[0].frames, new[0].frames)


def test_a_voice_whose_file_is_gone_fails_its_request(tmp_path, stages):
    talker, _ = stages
    path = write_voice(tmp_path)
    file = voice_file(path)
    path.unlink()
    with pytest.raises((RequestError, FileNotFoundError)):
        talker.open("a", TalkerParams("gone", 1, file=VoiceFile(file.path, 5)))


def test_code2wav_workers_of_a_process_share_a_decoder_while_one_holds_it(tmp_path, monkeypatch):
    read = []

    def counted(path):
        read.append(path)
        return read_onnx(path)

    monkeypatch.setattr("stages.models.piper.code2wav.read_onnx", counted)
    path = write_voice(tmp_path, "v", "low")
    config = Code2WavConfig({"v": path}, "cpu", "float32")
    workers = [Code2WavStage(config), Code2WavStage(config)]
    for worker in workers:
        worker.load()
    assert len(read) == 1
    other = Code2WavStage(Code2WavConfig({"v": path}, "cpu", "bfloat16"))
    other.load()
    assert len(read) == 2
    del worker, workers
    gc.collect()
    Code2WavStage(config).load()
    assert len(read) == 3


@pytest.fixture
def collection(tmp_path):
    """The public collection, in a folder."""
    root = tmp_path / "hub"
    inside = "en/en_US/toy/low/en_US-toy-low"
    path = write_voice(root / "en/en_US/toy/low", "en_US-toy-low", "low")
    path.with_name("MODEL_CARD").write_text("# Toy\n* License: CC-BY 4.0\n")
    files = {}
    for file in (f"{inside}.onnx", f"{inside}.onnx.json", "en/en_US/toy/low/MODEL_CARD"):
        digest = hashlib.md5((root / file).read_bytes()).hexdigest()
        files[file] = {"md5_digest": digest}
    listing = {"en_US-toy-low": {"files": files, "aliases": ["toy-old"]}}
    (root / "voices.json").write_text(json.dumps(listing))
    return root


@pytest.mark.parametrize("name", ["en_US-toy-low", "toy-old"])
def test_a_voice_is_downloaded_from_the_collection(collection, tmp_path, name):
    asked = []

    def fetch(file):
        asked.append(file)
        return collection / file

    path = add_voice(name, tmp_path / "voices", fetch)
    assert path == tmp_path / "voices" / "en_US-toy-low" / "en_US-toy-low.onnx"
    assert asked[-1].endswith(".onnx")
    _, toy = current_voices(tmp_path / "voices")
    assert (toy.name, toy.licence, toy.rate_hz) == ("en_US-toy-low", "CC-BY 4.0", 16000)
    assert not list((tmp_path / "voices").rglob("*.part"))


@pytest.mark.parametrize("name", ["en_US-toy-lo", "../../etc/passwd", "", "en_US-toy-low/x"])
def test_an_unknown_name_never_becomes_a_path(collection, tmp_path, name):
    with pytest.raises(ValueError, match=r"no voice .*en_US-toy-low"):
        add_voice(name, tmp_path / "voices", lambda file: collection / file)
    assert not (tmp_path / "voices").exists()


def test_a_file_with_a_wrong_checksum_is_refused(collection, tmp_path):
    card = collection / "en/en_US/toy/low/MODEL_CARD"
    card.write_text("something else")
    with pytest.raises(ValueError, match="MODEL_CARD is not the file"):
        add_voice("en_US-toy-low", tmp_path / "voices", lambda file: collection / file)
