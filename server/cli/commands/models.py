"""`nano-omni models`: lists the models, their stages and their voices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.cli.commands.options import MODEL_SETTINGS, add_settings, load_settings
from server.cli.commands.starting import build_deployment
from server.cli.commands.terminal import print_line, spinner
from server.config.logs import configure_logs

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni models
  nano-omni models --model fake
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the settings that choose the models."""
    add_settings(parser, MODEL_SETTINGS)


def run(options: argparse.Namespace) -> int:
    """List the models and return the exit status. No weights are loaded."""
    settings = load_settings(options).settings
    configure_logs(settings)
    with spinner("reading the models"):
        # Set the replicas: the default depends on the device, and resolving `auto` imports torch.
        one_replica = settings.model_copy(update={"replicas": 1})
        pipelines = build_deployment(one_replica).pipelines
    for pipeline in pipelines:
        print_line(f"{pipeline.model_id}  (also: {', '.join(pipeline.aliases)})")
        print_line(f"  stages: {', '.join(pipeline.stage_names)}")
        print_line(f"  voices: {', '.join(voice.name for voice in pipeline.voices)}")
    return 0
