"""Finds voices: the one that comes with the installation, and those in a folder.

Every `.onnx` file with its `.onnx.json`, in the folder or below it, is a voice with the name of the
file. A file that is not a complete voice is skipped, with a warning in the log. Torch-free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from stages.models.piper.voice_file import bundled_voices, list_voices, read_voice
from stages.weights.onnx import check_onnx

if TYPE_CHECKING:
    from pathlib import Path

    from stages.contract.model import VoiceSpec
    from stages.models.piper.voice_file import PiperVoice

log = structlog.get_logger(__name__)


def find_voices(folder: Path | None) -> dict[str, PiperVoice]:
    """All voices by name, the bundled one first. If two have one name, the first is taken."""
    found: dict[str, PiperVoice] = {}
    for name, path in [*_bundled().items(), *_in_folder(folder)]:
        try:
            if name in found:
                raise ValueError(f"there is already a voice {name!r}; rename the file")
            voice = read_voice(path)
            check_onnx(path)
        except (OSError, ValueError) as error:
            log.warning("voice_skipped", file=str(path), reason=str(error))
            continue
        found[name] = voice
    return found


def current_voices(folder: Path | None) -> tuple[VoiceSpec, ...]:
    """The voices that a client may choose from, read again from their files."""
    return list_voices(find_voices(folder))


def _bundled() -> dict[str, Path]:
    try:
        return bundled_voices()
    except FileNotFoundError:
        return {}


def _in_folder(folder: Path | None) -> list[tuple[str, Path]]:
    if folder is None or not folder.is_dir():
        return []
    return [(path.stem, path) for path in sorted(folder.rglob("*.onnx")) if path.is_file()]
