"""The command line: `nano-omni serve`, `say`, `models`, `voices` and `plan`.

Options beat the environment (see `settings.py`). Errors are one line and a status that is not 0.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from server.app import VERSION
from server.errors import ServerError
from server.logs import configure_logs
from server.planning import Load, parse_stage, report, simulate
from server.say import say
from server.serve import listen, note_openness, serve
from server.service import Service
from server.settings import Settings, SettingsError, load_settings
from stages.errors import OmniError
from stages.pipelines.build import build
from stages.pipelines.config import BuildConfig, Placement, RayCluster
from stages.talker.catalogue import current_voices
from stages.talker.hub import add_voice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.pipelines.deployment import Deployment

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

LOAD_OPTIONS = ("rate", "stream_s", "first_s", "chunk_s", "run_s", "seed", "cells")
DEFAULT_LAYOUT = ("talker=1:3:19", "code2wav=1:3:24")  # as measured: docs/log.md
VOICES_DIR = "where other Piper voices are (~/.local/share/nano-omni/voices)"
SETTING_OPTIONS = (
    "host",
    "port",
    "api_keys_file",
    "model",
    "device",
    "dtype",
    "executor",
    "ray_address",
    "voice",
    "voices_dir",
    "log_level",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        settings = load_settings(_given(options))
        configure_logs(settings)
        _run(options, settings)
    except KeyboardInterrupt:
        return 130
    except (SettingsError, ServerError, OmniError, OSError, ValueError) as error:
        return _fail(str(error))
    return 0


def _run(options: argparse.Namespace, settings: Settings) -> None:
    match options.command:
        case "serve":
            _serve(settings)
        case "say":
            _say(settings, options.text, options.output, options.captions)
        case "models":
            _models(settings)
        case "voices":
            _voices(settings, options.add)
        case "plan":
            _plan(options)


def _serve(settings: Settings) -> None:
    note_openness(settings)
    try:
        listener = listen(settings)
    except OSError as error:
        place = f"{settings.host}:{settings.port}"
        raise SettingsError(f"cannot listen on {place}: {error.strerror}; try --port") from error
    anyio.run(serve, _service(settings), listener, _tell)


def _say(settings: Settings, text: str, path: Path, captions: Path | None) -> None:
    voice = settings.voice or "alloy"
    model = "piper-joe" if settings.model == "embedded" else settings.model
    speaking = settings.model_copy(update={"model": model, "voice": ""})
    seconds = anyio.run(say, _service(speaking), text, voice, path, captions)
    _tell(f"{path}: {seconds:.2f} s")


def _models(settings: Settings) -> None:
    for pipeline in _deploy(settings).pipelines:
        _tell(f"{pipeline.model_id}  (also: {', '.join(pipeline.aliases)})")
        _tell(f"  stages: {', '.join(pipeline.stage_names)}")
        _tell(f"  voices: {', '.join(voice.name for voice in pipeline.voices)}")


def _voices(settings: Settings, add: str | None) -> None:
    """What there is in the voices folder; first with one more from the public collection."""
    if add is not None:
        try:
            _tell(f"{add_voice(add, settings.voices_dir)}")
        except OSError as error:
            raise SettingsError(f"cannot fetch {add}: {str(error).splitlines()[0]}") from error
    for voice in current_voices(settings.voices_dir):
        speakers = f", {len(voice.speakers)} speakers" if voice.speakers else ""
        licence = f", {voice.licence}" if voice.licence else ""
        _tell(
            f"{voice.name}  ({voice.language}, {voice.quality}, {voice.rate_hz} Hz"
            f"{speakers}{licence})"
        )


def _plan(options: argparse.Namespace) -> None:
    given = {name: getattr(options, name) for name in LOAD_OPTIONS}
    load = Load(**{name: value for name, value in given.items() if value is not None})
    stages = [parse_stage(text) for text in options.stage or DEFAULT_LAYOUT]
    _tell(report(simulate(stages, load)))


def _service(settings: Settings) -> Service:
    return Service(settings, partial(_deploy, settings))


def _deploy(settings: Settings) -> Deployment:
    config = BuildConfig(
        settings.cache_dir,
        _placement(settings, "thinker"),
        replace(_placement(settings, "talker"), dtype="auto"),
        _placement(settings, "code2wav"),
        settings.phonemizer,
        settings.voices_dir,
        settings.voice,
        settings.max_loaded_voices,
    )
    return build(settings.model, config)


def _placement(settings: Settings, stage: str) -> Placement:
    """Where a stage runs: what was set for it alone, or else for all."""
    given = settings.model_dump()

    def chosen(name: str) -> Any:
        own = given.get(f"{stage}_{name}")
        return given[name] if own is None else own

    return Placement(
        device=chosen("device"),
        dtype=chosen("dtype"),
        replicas=chosen("replicas"),
        executor=settings.executor,
        cpus=chosen("cpus"),
        gpus=chosen("gpus"),
        ray=RayCluster(settings.ray_address, settings.ray_namespace),
    )


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _fail(message: str) -> int:
    sys.stderr.write(f"nano-omni: {message}\n")
    return 1


def _given(options: argparse.Namespace) -> dict[str, object]:
    """The options that were given and are settings."""
    chosen = vars(options)
    return {name: chosen[name] for name in SETTING_OPTIONS if chosen.get(name) is not None}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("nano-omni", description="Models that think, talk and sound.")
    parser.add_argument("--version", action="version", version=f"nano-omni {VERSION}")
    commands = parser.add_subparsers(dest="command")
    serve_parser = commands.add_parser("serve", help="answer on HTTP")
    serve_parser.add_argument("--host", help="the address to listen on (127.0.0.1)")
    serve_parser.add_argument("--port", type=int, help="the port to listen on (8000)")
    serve_parser.add_argument("--api-keys-file", help="who may use it: one key a line (anyone)")
    say_parser = commands.add_parser("say", help="speak a text into a file: wav, mp3, ...")
    say_parser.add_argument("text")
    say_parser.add_argument("-o", "--output", type=Path, default=Path("out.wav"))
    say_parser.add_argument("--captions", type=Path, help="write what is heard when, as WebVTT")
    models_parser = commands.add_parser("models", help="list the models and their voices")
    for command in (serve_parser, say_parser, models_parser):
        _add_model_options(command)
    _add_voices_parser(commands)
    _add_plan_parser(commands)
    return parser


def _add_plan_parser(commands: Commands) -> None:
    plan_parser = commands.add_parser("plan", help="simulate a layout under load")
    plan_parser.add_argument(
        "--stage",
        action="append",
        metavar="NAME=WORKERS:STEP_MS:AUDIO_S_MS[:BATCH]",
        help="in order; what a step costs at all and per second of audio (the embedded ones)",
    )
    plan_parser.add_argument("--rate", type=float, required=True, help="streams a second")
    plan_parser.add_argument("--stream-s", type=float, help="audio of a stream (10)")
    plan_parser.add_argument("--first-s", type=float, help="audio of its first chunk (0.2)")
    plan_parser.add_argument("--chunk-s", type=float, help="of the others (0.75)")
    plan_parser.add_argument("--run-s", type=float, help="how long streams come (60)")
    plan_parser.add_argument("--cells", type=int, help="how often the layout is there (1)")
    plan_parser.add_argument("--seed", type=int, help="of the arrivals (0)")


def _add_voices_parser(commands: Commands) -> None:
    voices_parser = commands.add_parser("voices", help="list the voices, or fetch another one")
    voices_parser.add_argument("--voices-dir", help=VOICES_DIR)
    actions = voices_parser.add_subparsers(dest="action")
    add_parser = actions.add_parser("add", help="fetch a voice from the public Piper collection")
    add_parser.add_argument("--voices-dir", default=argparse.SUPPRESS, help=VOICES_DIR)
    add_parser.add_argument("add", metavar="NAME", help="as in en_US-lessac-medium")
    voices_parser.set_defaults(add=None)


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help="what to run: embedded or fake (embedded)")
    parser.add_argument("--device", help="auto, cpu or cuda:N (auto)")
    parser.add_argument("--dtype", help="auto, float32 or bfloat16 (auto)")
    parser.add_argument("--executor", help="thread, process or ray (thread)")
    parser.add_argument("--ray-address", help="the cluster to join (a local one is started)")
    parser.add_argument("--voice", help="the default voice")
    parser.add_argument("--voices-dir", help=VOICES_DIR)
    parser.add_argument("--log-level", help="debug, info, warning or error (info)")


if __name__ == "__main__":
    sys.exit(main())
