"""`nano-omni chat`: chat with a model. Each reply is printed and spoken while it is generated.

The command uses a running server (`--url`), or starts one in this process until the chat ends.
"""

from __future__ import annotations

import readline  # noqa: F401 - lets the user edit the line in input(), and adds a history
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.client.api import list_models, open_client
from server.cli.client.chat import Conversation
from server.cli.client.local import local_server
from server.cli.client.loudspeaker import CANNOT_PLAY, Loudspeaker
from server.cli.commands.options import MODEL_SETTINGS, add_settings, load_settings
from server.cli.commands.server_options import add_api_key, server_address
from server.cli.commands.terminal import print_line, spinner
from server.config.logs import configure_logs
from server.config.settings import SettingsError
from server.encoding.pcm import wav_header
from server.serving.deploy import build_service

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from server.cli.client.api import ServerAddress
    from server.config.settings import Settings

EXAMPLES = """\
  nano-omni chat                                     embedded models; Ctrl-D ends the chat
  nano-omni chat "What is the capital of France?"    ask one question
  nano-omni chat --url http://127.0.0.1:8000 -o all-replies.wav
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the question, the server, the model, the output file and the settings of the models."""
    parser.add_argument(
        "text", nargs="?", help="one question (without it, questions are read line by line)"
    )
    parser.add_argument("--url", help="use this running server, for example http://127.0.0.1:8000")
    add_api_key(parser)
    parser.add_argument(
        "--chat-model", metavar="NAME", help="the model (the first chat model of the server)"
    )
    parser.add_argument("--system", metavar="TEXT", help="the system prompt")
    parser.add_argument("--mute", action="store_true", help="text only, no voice")
    parser.add_argument("-o", "--output", type=Path, help="save the spoken replies as a WAV file")
    add_settings(parser, [name for name in MODEL_SETTINGS if not name.startswith("log_")])


def run(options: argparse.Namespace) -> int:
    """Chat until the input ends, then save the replies. Return the exit status."""
    settings = load_settings(options).settings.model_copy(update={"log_level": "error"})
    configure_logs(settings)  # log lines would disturb the chat
    if options.output is not None and options.output.suffix != ".wav":
        raise SettingsError(f"cannot write {options.output}: its name must end in .wav")
    with ExitStack() as stack:
        client = stack.enter_context(open_client(_server(options, settings, stack)))
        model = options.chat_model or _first_model(list_models(client).others)
        voice = "" if options.mute else settings.voice or "alloy"
        conversation = Conversation(client, model, voice)
        if options.system:
            conversation.messages.append({"role": "system", "content": options.system})
        all_pcm = bytearray()
        for text in [options.text] if options.text else _typed_lines():
            pcm, was_played = _answer(conversation, text)
            all_pcm += pcm
            if pcm and not was_played and options.output is None:
                sys.stderr.write(
                    f"{CANNOT_PLAY}; continuing in text only (-o FILE saves the voice)\n"
                )
                conversation.voice = ""
    if options.output is not None:
        options.output.write_bytes(wav_header(len(all_pcm)) + all_pcm)
    return 0


def _server(options: argparse.Namespace, settings: Settings, stack: ExitStack) -> ServerAddress:
    if options.url:
        return server_address(options)
    with spinner("loading the models (the first start also converts weights)"):
        return stack.enter_context(local_server(settings, build_service))


def _first_model(names: tuple[str, ...]) -> str:
    if not names:
        raise SettingsError("the server lists no chat model; name one with --chat-model")
    return names[0]


def _typed_lines() -> Iterator[str]:
    while True:
        try:
            text = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return
        if text.strip():
            yield text


def _answer(conversation: Conversation, text: str) -> tuple[bytes, bool]:
    """Print and play a reply. Return its samples, and whether a program played all of them.

    Ctrl-C on a terminal stops this reply only; the chat goes on.
    """
    speaker = Loudspeaker() if conversation.voice else None
    pcm = bytearray()
    parts = conversation.ask(text)
    try:
        for part in parts:
            sys.stdout.write(part.text)
            sys.stdout.flush()
            pcm += part.pcm
            if speaker is not None and part.pcm:
                speaker.feed(part.pcm)
        print_line("")
        if speaker is not None:
            speaker.close()
    except BaseException as error:
        if speaker is not None:
            speaker.stop()
        if not isinstance(error, KeyboardInterrupt) or not sys.stdin.isatty():
            raise
        print_line("")
    finally:
        parts.close()
    return bytes(pcm), speaker is not None and speaker.played_all
