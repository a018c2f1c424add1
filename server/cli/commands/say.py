"""`nano-omni say`: speaks a text aloud while it is made, or into a file, without a server."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from server.cli.client.loudspeaker import PROGRAMS, Loudspeaker
from server.cli.commands.options import MODEL, add_settings, load_given
from server.cli.commands.starting import service_of
from server.cli.commands.terminal import tell, waiting
from server.cli.local_speech import say
from server.config.logs import configure_logs
from server.encoding.formats import FORMATS, whole_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from server.cli.local_speech import Said
    from server.config.settings import Settings

    Hear = Callable[[bytes], object]
    Speak = Callable[[Hear], Said]

FILE = Path("out.wav")
EXAMPLES = """\
  nano-omni say "Hello there."
  nano-omni say "Hello there." -o hello.mp3 --captions hello.vtt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The text, and where it goes."""
    parser.add_argument("text")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        help=f"write a file: .{', .'.join(FORMATS)} (aloud by {' or '.join(PROGRAMS)}; "
        f"where none of them can, {FILE})",
    )
    parser.add_argument("--captions", type=Path, help="write what is heard when, as WebVTT")
    add_settings(parser, MODEL)


def run(options: argparse.Namespace) -> int:
    """Speak; the exit status. Nothing is written where something fails."""
    settings = load_given(options).settings
    configure_logs(settings)
    path: Path | None = options.output
    if path is not None and path.suffix.removeprefix(".") not in FORMATS:
        raise ValueError(f"cannot write {path}: its name must end in .{', .'.join(FORMATS)}")
    speak = partial(_speak, settings, options.text, options.captions is not None)
    said = _aloud(speak) if path is None else _into(path, speak)
    if options.captions is not None:
        options.captions.write_text(said.webvtt(), encoding="utf-8")
    return 0


def _speak(settings: Settings, text: str, captions: bool, hear: Hear) -> Said:
    voice = settings.voice or "alloy"
    model = "piper-joe" if settings.model == "embedded" else settings.model
    speaking = settings.model_copy(update={"model": model, "voice": "", "max_running": 1})
    return anyio.run(partial(say, captions=captions, hear=hear), service_of(speaking), text, voice)


def _aloud(speak: Speak) -> Said:
    speaker = Loudspeaker()
    try:
        with waiting("speaking"):
            said = speak(speaker.feed)
            speaker.close()
    except BaseException:
        speaker.stop()
        raise
    if not speaker.heard:
        tell("there is nothing here that could play it (no sound device, or no player)")
        _write(FILE, said)
    return said


def _into(path: Path, speak: Speak) -> Said:
    with waiting("speaking"):
        said = speak(lambda _: None)
    _write(path, said)
    return said


def _write(path: Path, said: Said) -> None:
    path.write_bytes(whole_file(bytes(said.sound), path.suffix.removeprefix(".")))
    tell(f"{path}: {said.seconds:.2f} s")
