"""`nano-omni voices` and `voices add NAME`: lists the voices, and downloads another one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from server.cli.commands.options import add_settings, load_settings
from server.cli.commands.terminal import print_line
from server.config.logs import configure_logs
from server.config.settings import SettingsError
from server.serving.deploy import fetch_voice, known_voices

if TYPE_CHECKING:
    from pathlib import Path

    from server.config.settings import Settings

EXAMPLES = """\
  nano-omni voices
  nano-omni voices add en_US-lessac-medium     download it from the public collection
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the voices folder and the subcommand `add`."""
    add_settings(parser, ("model", "voices_dir", "recordings_dir", "log_level"))
    actions = parser.add_subparsers(metavar="add NAME")
    add = actions.add_parser("add", help="download a voice from the public collection")
    add.add_argument("add", metavar="NAME", help="for example en_US-lessac-medium")
    add.add_argument("--voices-dir", default=argparse.SUPPRESS, help="the folder to put it in")
    parser.set_defaults(add=None)


def run(options: argparse.Namespace) -> int:
    """Download a voice if one is named, list all voices and return the exit status."""
    settings = load_settings(options).settings
    configure_logs(settings)
    if options.add is not None:
        print_line(str(_download(options.add, settings)))
    for voice in known_voices(settings):
        speakers = f", {len(voice.speakers)} speakers" if voice.speakers else ""
        licence = f", {voice.licence}" if voice.licence else ""
        print_line(
            f"{voice.name}  ({voice.language}, {voice.quality}, {voice.rate_hz} Hz"
            f"{speakers}{licence})"
        )
    return 0


def _download(name: str, settings: Settings) -> Path:
    """Download a voice. On a terminal, huggingface-hub shows its own progress bar."""
    try:
        return fetch_voice(name, settings)
    except OSError as error:
        raise SettingsError(f"cannot download {name}: {str(error).splitlines()[0]}") from error
