"""`nano-omni voices` and `voices add NAME`: the voices folder."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from server.cli.commands.options import add_settings, load_given
from server.cli.commands.terminal import tell
from server.config.logs import configure_logs
from server.config.settings import SettingsError
from stages.models.piper.download import add_voice
from stages.models.piper.voices import current_voices

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = """\
  nano-omni voices
  nano-omni voices add en_US-lessac-medium     from the public Piper collection
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where they are, and `add`."""
    add_settings(parser, ("voices_dir", "log_level"))
    actions = parser.add_subparsers(metavar="add NAME")
    add = actions.add_parser("add", help="fetch a voice from the public Piper collection")
    add.add_argument("add", metavar="NAME", help="as in en_US-lessac-medium")
    add.add_argument("--voices-dir", default=argparse.SUPPRESS, help="where to put it")
    parser.set_defaults(add=None)


def run(options: argparse.Namespace) -> int:
    """List them, first with one more where that is wished; the exit status."""
    settings = load_given(options).settings
    configure_logs(settings)
    if options.add is not None:
        tell(str(_added(options.add, settings.voices_dir)))
    for voice in current_voices(settings.voices_dir):
        speakers = f", {len(voice.speakers)} speakers" if voice.speakers else ""
        licence = f", {voice.licence}" if voice.licence else ""
        tell(
            f"{voice.name}  ({voice.language}, {voice.quality}, {voice.rate_hz} Hz"
            f"{speakers}{licence})"
        )
    return 0


def _added(name: str, folder: Path) -> Path:
    """huggingface-hub shows its own progress on a terminal."""
    try:
        return add_voice(name, folder)
    except OSError as error:
        raise SettingsError(f"cannot fetch {name}: {str(error).splitlines()[0]}") from error
