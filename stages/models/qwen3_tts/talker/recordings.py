"""Recordings of voices to be copied: in a folder, `NAME.wav` with `NAME.json` beside it.

The sound is mono, 24 kHz, 16 bits; the JSON has the transcript and the language. A recording is
there when its sound is: it is written last and removed first. Torch-free.
"""

from __future__ import annotations

import json
import wave
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stages.contract.messages import OUTPUT_RATE_HZ, VoiceFile
from stages.weights.json_file import read_json

if TYPE_CHECKING:
    from pathlib import Path


Samples = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True, slots=True)
class Recording:
    """`samples` are float32 [n] at 24 kHz. An empty transcript is none."""

    samples: Samples
    transcript: str


@dataclass(frozen=True, slots=True)
class RecordedVoice:
    """What is known of a recording without reading its sound. `language` is a BCP 47 tag."""

    name: str
    language: str
    has_transcript: bool
    file: VoiceFile


def write_recording(
    folder: Path, name: str, samples: Samples, transcript: str, language: str
) -> None:
    """Put a recording into the folder, which is made. FileExistsError where the name is taken."""
    folder.mkdir(parents=True, exist_ok=True)
    described = {"transcript": transcript, "language": language}
    sound, description = folder / f"{name}.wav", folder / f"{name}.json"
    if sound.exists():
        raise FileExistsError(f"there is a voice {name!r} already")
    description.write_text(json.dumps(described), encoding="utf-8")
    part = folder / f"{name}.part"
    with wave.open(str(part), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(OUTPUT_RATE_HZ)
        file.writeframes(np.rint(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    part.replace(sound)


def read_recording(path: Path) -> Recording:
    """The recording whose sound is `path`. Raises OSError or ValueError."""
    try:
        with wave.open(str(path), "rb") as file:
            shape = file.getnchannels(), file.getsampwidth(), file.getframerate()
            if shape != (1, 2, OUTPUT_RATE_HZ):
                raise ValueError(f"{path} is not mono, 16 bits, {OUTPUT_RATE_HZ} Hz")
            data = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{path} is no WAV file: {error}") from error
    samples: Samples = data.astype(np.float32) / np.float32(32767)
    return Recording(samples, str(read_json(path.with_suffix(".json")).get("transcript", "")))


def find_recordings(folder: Path) -> list[RecordedVoice]:
    """Those of the folder, by name."""
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.glob("*.wav")):
        described = read_json(path.with_suffix(".json"))
        file = VoiceFile(str(path), path.stat().st_mtime_ns)
        transcript = bool(described.get("transcript"))
        found.append(RecordedVoice(path.stem, str(described.get("language", "")), transcript, file))
    return found


def remove_recording(folder: Path, name: str) -> None:
    """Take a recording out of the folder. FileNotFoundError where it is not there."""
    (folder / f"{name}.wav").unlink()
    (folder / f"{name}.json").unlink(missing_ok=True)
