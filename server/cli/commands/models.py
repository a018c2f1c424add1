"""`nano-omni models`: the models and their voices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.cli.commands.options import MODEL, add_settings, load_given
from server.cli.commands.starting import deploy
from server.cli.commands.terminal import tell, waiting
from server.config.logs import configure_logs

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni models
  nano-omni models --model fake
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What there is to run."""
    add_settings(parser, MODEL)


def run(options: argparse.Namespace) -> int:
    """List them; the exit status."""
    settings = load_given(options).settings
    configure_logs(settings)
    with waiting("looking"):
        # One worker each: how many pay depends on the device, and only torch knows what `auto` is.
        one = {"talker_replicas": 1, "code2wav_replicas": 1}
        pipelines = deploy(settings.model_copy(update=one)).pipelines
    for pipeline in pipelines:
        tell(f"{pipeline.model_id}  (also: {', '.join(pipeline.aliases)})")
        tell(f"  stages: {', '.join(pipeline.stage_names)}")
        tell(f"  voices: {', '.join(voice.name for voice in pipeline.voices)}")
    return 0
