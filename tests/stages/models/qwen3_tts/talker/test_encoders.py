"""The encoders of recordings against the public package, and the files of recordings."""

import numpy as np
import pytest
import torch

from stages.contract.errors import CheckpointError
from stages.models.qwen3_tts.talker.codec_encoder import CodecEncoder
from stages.models.qwen3_tts.talker.model_config import read_config
from stages.models.qwen3_tts.talker.recordings import (
    find_recordings,
    read_recording,
    remove_recording,
    write_recording,
)
from stages.models.qwen3_tts.talker.speaker_encoder import SpeakerEncoder
from stages.weights.safetensors import Weights
from tests.qwen3_tts.cases import reference_audio

CPU = torch.device("cpu")


def result_of(parts):
    """Run all parts. Returns the result."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            return end.value


def test_the_speakers_embedding_is_the_packages(checkpoints, values):
    folder = checkpoints["base"]
    encoder = SpeakerEncoder(read_config(folder).speaker_encoder, Weights(folder), CPU)
    embedding = result_of(encoder(torch.from_numpy(reference_audio())))
    torch.testing.assert_close(embedding, values["reference.speaker"], rtol=0, atol=1e-3)


def test_the_recordings_codes_are_the_packages(checkpoints, values):
    encoder = CodecEncoder(checkpoints["base"] / "speech_tokenizer", CPU)
    audio = torch.from_numpy(reference_audio())
    codes = result_of(encoder(audio))
    assert codes.tolist() == values["reference.codes"].tolist()
    assert len(codes) == encoder.num_frames(len(audio))


def test_a_checkpoint_without_a_speaker_encoder_says_so(checkpoints):
    folder = checkpoints["custom_voice"]
    with pytest.raises(CheckpointError, match="speaker_encoder"):
        SpeakerEncoder(read_config(folder).speaker_encoder, Weights(folder), CPU)


def test_a_recording_is_found_read_and_removed(tmp_path):
    audio = reference_audio()
    write_recording(tmp_path / "new", "ann", audio, "In the house.", "en")
    (found,) = find_recordings(tmp_path / "new")
    assert (found.name, found.language, found.has_transcript) == ("ann", "en", True)
    recording = read_recording(tmp_path / "new" / "ann.wav")
    assert recording.transcript == "In the house."
    np.testing.assert_allclose(recording.samples, audio, atol=1 / 32767)
    with pytest.raises(FileExistsError, match="ann"):
        write_recording(tmp_path / "new", "ann", audio, "", "en")
    remove_recording(tmp_path / "new", "ann")
    assert find_recordings(tmp_path / "new") == []
    with pytest.raises(FileNotFoundError):
        remove_recording(tmp_path / "new", "ann")
