"""The real voice and its reference, once per session, and a worker small enough to read."""

import json
from pathlib import Path

import numpy as np
import pytest

from stages.contract.messages import TalkerParams, TextChunk
from stages.models.piper.vits import Vits
from tests.stages.credit import CREDIT


@pytest.fixture(scope="session")
def vits(parameters):
    return Vits(parameters)


@pytest.fixture(scope="session")
def speak(talker):
    """Run whole requests through the talker, side by side.

    `requests` maps an id to its parameters and the parts of its text; the result maps it to its
    chunks and its end.
    """

    def run(requests: dict[str, tuple[TalkerParams, list[str]]]):
        chunks, ends = {rid: [] for rid in requests}, {}
        texts = {rid: list(parts) for rid, (_, parts) in requests.items()}
        for rid, (params, _) in requests.items():
            talker.open(rid, params)
        while len(ends) < len(requests):
            for rid in requests.keys() - ends.keys():
                while texts[rid] and talker.wants_chunk(rid):
                    talker.feed(rid, TextChunk(texts[rid].pop(0)))
                    if not texts[rid]:
                        talker.end_input(rid)
            ready = [rid for rid in requests if rid not in ends and talker.ready(rid, CREDIT)]
            for emit in talker.step(dict.fromkeys(ready, CREDIT)):
                if emit.end is not None:
                    ends[emit.request_id] = emit.end
                    talker.close(emit.request_id)
                else:
                    chunks[emit.request_id].append(emit.chunk)
        return {rid: (chunks[rid], ends[rid]) for rid in requests}

    return run


@pytest.fixture
def toy_voice(tmp_path):
    """A voice's settings without weights."""
    settings = {
        "audio": {"sample_rate": 16000},
        "espeak": {"voice": "de"},
        "language": {"code": "de_DE"},
        "inference": {"noise_scale": 0.5, "length_scale": 1.25, "noise_w": 0.75},
        "num_speakers": 1,
        "phoneme_id_map": {"_": [0], "^": [1], "$": [2], "a": [5], "\u0303": [6]},
    }

    def write(**changes):
        path = tmp_path / "toy.onnx"
        Path(f"{path}.json").write_text(json.dumps(settings | changes))
        return path

    return write


@pytest.fixture(scope="session")
def reference(voice_path):
    """The same file in onnxruntime, with both noises 0: ids and length scale to samples."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(voice_path), providers=["CPUExecutionProvider"])

    def run(ids: list[int], length_scale: float = 1.0):
        feeds = {
            "input": np.array([ids]),
            "input_lengths": np.array([len(ids)]),
            "scales": np.array([0, length_scale, 0], dtype=np.float32),
        }
        return session.run(None, feeds)[0].squeeze()

    return run
