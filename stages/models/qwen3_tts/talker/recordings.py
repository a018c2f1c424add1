"""Recordings of voices to be copied: `NAME.wav` in a folder, with `NAME.json` beside it.

The WAV file is mono, 24 kHz, 16 bits. The JSON file has the transcript and the language. A
recording exists when its WAV file does: that file is written last and removed first. Torch-free.
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
    from collections.abc import Sequence
    from pathlib import Path


Samples = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True, slots=True)
class Recording:
    """`samples` are float32 [n] at 24 kHz. An empty `transcript` means that there is none."""

    samples: Samples
    transcript: str


@dataclass(frozen=True, slots=True)
class RecordedVoice:
    """A recording without its samples. `language` is a BCP 47 tag."""

    name: str
    language: str
    has_transcript: bool
    file: VoiceFile


def write_recording(
    folder: Path, name: str, samples: Samples, transcript: str, language: str
) -> None:
    """Write a recording; creates the folder. Raises FileExistsError if the name is taken."""
    folder.mkdir(parents=True, exist_ok=True)
    audio_path, json_path = folder / f"{name}.wav", folder / f"{name}.json"
    if audio_path.exists():
        raise FileExistsError(f"a voice {name!r} exists already; choose another name or delete it")
    metadata = {"transcript": transcript, "language": language}
    json_path.write_text(json.dumps(metadata), encoding="utf-8")
    part = folder / f"{name}.part"
    with wave.open(str(part), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(OUTPUT_RATE_HZ)
        file.writeframes(np.rint(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    part.replace(audio_path)


def read_recording(path: Path) -> Recording:
    """Read the recording whose WAV file is `path`. Raises OSError or ValueError."""
    try:
        with wave.open(str(path), "rb") as file:
            shape = file.getnchannels(), file.getsampwidth(), file.getframerate()
            if shape != (1, 2, OUTPUT_RATE_HZ):
                raise ValueError(f"{path} is not mono, 16 bits, {OUTPUT_RATE_HZ} Hz")
            data = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{path} is not a WAV file: {error}") from error
    samples: Samples = data.astype(np.float32) / np.float32(32767)
    return Recording(samples, str(read_json(path.with_suffix(".json")).get("transcript", "")))


def find_recordings(folder: Path) -> list[RecordedVoice]:
    """All recordings of a folder, ordered by name. Empty if the folder does not exist."""
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.glob("*.wav")):
        metadata = read_json(path.with_suffix(".json"))
        file = VoiceFile(str(path), path.stat().st_mtime_ns)
        has_transcript = bool(metadata.get("transcript"))
        language = str(metadata.get("language", ""))
        found.append(RecordedVoice(path.stem, language, has_transcript, file))
    return found


def remove_recording(folder: Path, name: str) -> None:
    """Remove a recording. Raises FileNotFoundError if there is none of that name."""
    (folder / f"{name}.wav").unlink()
    (folder / f"{name}.json").unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class RecordingFolder:
    """Implements `VoiceUploads` with the recordings of a folder."""

    folder: Path

    def names(self) -> Sequence[str]:
        """The names of the recordings."""
        return [recording.name for recording in find_recordings(self.folder)]

    def add(self, name: str, samples: Samples, transcript: str, language: str) -> None:
        """Write a recording. Raises FileExistsError if the name is taken."""
        write_recording(self.folder, name, samples, transcript, language)

    def remove(self, name: str) -> None:
        """Remove a recording. Raises FileNotFoundError if there is none of that name."""
        remove_recording(self.folder, name)
