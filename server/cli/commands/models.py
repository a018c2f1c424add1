"""`nano-omni models`: lists the models, their stages and their voices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.cli.commands.options import MODEL_SETTINGS, add_settings, load_settings
from server.cli.commands.terminal import print_line, spinner
from server.config.logs import configure_logs
from server.serving.deploy import build_deployment
from server.serving.names import assign_aliases

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
        models = build_deployment(settings.model_copy(update={"replicas": 1})).models
        aliases = assign_aliases(models, settings.aliases)
    for model in models:
        also = f"  (also: {', '.join(names)})" if (names := aliases[model.model_id]) else ""
        print_line(f"{model.model_id}{also}")
        for pipeline in model.pipelines:
            outputs = " and ".join(sorted(pipeline.outputs, reverse=True))
            print_line(f"  {pipeline.inputs} to {outputs}: {', '.join(pipeline.roles)}")
        print_line(f"  voices: {', '.join(voice.name for voice in model.voices)}")
    return 0
