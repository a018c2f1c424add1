"""`nano-omni say`: speaks a text without a server, aloud as it is generated, or into a file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from server.cli.client.loudspeaker import CANNOT_PLAY, PROGRAMS, Loudspeaker
from server.cli.commands.options import MODEL_SETTINGS, add_settings, load_settings
from server.cli.commands.terminal import print_line, spinner
from server.cli.local_speech import speak_locally
from server.config.logs import configure_logs
from server.encoding.formats import FORMATS, whole_file
from server.serving.deploy import build_service, speaking_model

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from server.cli.local_speech import LocalSpeech
    from server.config.settings import Settings

    OnSamples = Callable[[bytes], object]
    Speak = Callable[[OnSamples], LocalSpeech]

DEFAULT_FILE = Path("out.wav")
EXAMPLES = """\
  nano-omni say "Hello there."
  nano-omni say "Hello there." -o hello.mp3 --captions hello.vtt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the text, the output files and the settings of the models."""
    parser.add_argument("text", help="the text to speak")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        help=f"write this file; its name must end in .{', .'.join(FORMATS)} (by default the text is"
        f" played by {' or '.join(PROGRAMS)}; if none of them can play, {DEFAULT_FILE} is written)",
    )
    parser.add_argument("--captions", type=Path, help="write the time of each word, as WebVTT")
    add_settings(parser, MODEL_SETTINGS)


def run(options: argparse.Namespace) -> int:
    """Speak the text and return the exit status. On an error no file is written."""
    settings = load_settings(options).settings
    configure_logs(settings)
    path: Path | None = options.output
    if path is not None and path.suffix.removeprefix(".") not in FORMATS:
        raise ValueError(f"cannot write {path}: its name must end in .{', .'.join(FORMATS)}")
    speak = partial(_speak, settings, options.text, options.captions is not None)
    speech = _play(speak) if path is None else _save(path, speak)
    if options.captions is not None:
        options.captions.write_text(speech.webvtt(), encoding="utf-8")
    return 0


def _speak(settings: Settings, text: str, captions: bool, on_samples: OnSamples) -> LocalSpeech:
    voice = settings.voice or "alloy"
    alone = {"models": (speaking_model(settings),), "voice": "", "max_running": 1}
    service = build_service(settings.model_copy(update=alone))
    speak = partial(speak_locally, captions=captions, on_samples=on_samples)
    return anyio.run(speak, service, text, voice)


def _play(speak: Speak) -> LocalSpeech:
    speaker = Loudspeaker()
    try:
        with spinner("speaking"):
            speech = speak(speaker.feed)
            speaker.close()
    except BaseException:
        speaker.stop()
        raise
    if not speaker.played_all:
        print_line(f"{CANNOT_PLAY}; writing a file instead")
        _write(DEFAULT_FILE, speech)
    return speech


def _save(path: Path, speak: Speak) -> LocalSpeech:
    with spinner("speaking"):
        speech = speak(lambda _: None)
    _write(path, speech)
    return speech


def _write(path: Path, speech: LocalSpeech) -> None:
    path.write_bytes(whole_file(bytes(speech.pcm), path.suffix.removeprefix(".")))
    print_line(f"{path}: {speech.audio_s:.2f} s")
