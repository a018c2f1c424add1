"""`nano-omni chat`: talk with a model; its reply is written, and spoken while it is written.

With a server that runs (`--url`), or with one of its own for as long as the chat goes on.
"""

from __future__ import annotations

import readline  # noqa: F401 - input() can then be edited, and has a history
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.client.api import client_of, offer_of
from server.cli.client.chat import Conversation
from server.cli.client.local import serving_here
from server.cli.client.loudspeaker import Loudspeaker
from server.cli.commands.options import MODEL, add_settings, load_given
from server.cli.commands.starting import service_of
from server.cli.commands.target import add_key, target_of
from server.cli.commands.terminal import tell, waiting
from server.config.logs import configure_logs
from server.config.settings import SettingsError
from server.encoding.pcm import wav_header

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from server.cli.client.api import Target
    from server.config.settings import Settings

EXAMPLES = """\
  nano-omni chat                                     models of its own; Ctrl-D ends it
  nano-omni chat "What is the capital of France?"    one question
  nano-omni chat --url http://127.0.0.1:8000 -o all-replies.wav
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whom to talk to, and how."""
    parser.add_argument("text", nargs="?", help="ask this only (else what is typed, line by line)")
    parser.add_argument("--url", help="a server that runs, as in http://127.0.0.1:8000")
    add_key(parser)
    parser.add_argument("--chat-model", metavar="NAME", help="its model (the first that chats)")
    parser.add_argument("--system", metavar="TEXT", help="what the model is told first")
    parser.add_argument("--mute", action="store_true", help="text only")
    parser.add_argument("-o", "--output", type=Path, help="keep what is said in this WAV file")
    add_settings(parser, [name for name in MODEL if not name.startswith("log_")])


def run(options: argparse.Namespace) -> int:
    """Chat until there is nothing more to say; the exit status."""
    settings = load_given(options).settings.model_copy(update={"log_level": "error"})
    configure_logs(settings)  # a talk is no place for a log
    if options.output is not None and options.output.suffix != ".wav":
        raise SettingsError(f"cannot write {options.output}: its name must end in .wav")
    with ExitStack() as stack:
        client = stack.enter_context(client_of(_target(options, settings, stack)))
        model = options.chat_model or _chat_model(offer_of(client).others)
        voice = "" if options.mute else settings.voice or "alloy"
        talk = Conversation(client, model, voice)
        if options.system:
            talk.messages.append({"role": "system", "content": options.system})
        said = bytearray()
        for text in [options.text] if options.text else _typed():
            sound, heard = _answer(talk, text)
            said += sound
            if sound and not heard and options.output is None:
                sys.stderr.write("nothing here can play it: text only (-o FILE keeps the voice)\n")
                talk.voice = ""
    if options.output is not None:
        options.output.write_bytes(wav_header(len(said)) + said)
    return 0


def _target(options: argparse.Namespace, settings: Settings, stack: ExitStack) -> Target:
    if options.url:
        return target_of(options)
    with waiting("loading the models (the first time weights are converted)"):
        return stack.enter_context(serving_here(settings, service_of))


def _chat_model(names: tuple[str, ...]) -> str:
    if not names:
        raise SettingsError("the server has no model that chats; name one with --chat-model")
    return names[0]


def _typed() -> Iterator[str]:
    while True:
        try:
            text = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return
        if text.strip():
            yield text


def _answer(talk: Conversation, text: str) -> tuple[bytes, bool]:
    """Write a reply and speak it; its sound, and whether it was heard. Ctrl-C stops only it."""
    speaker = Loudspeaker() if talk.voice else None
    sound = bytearray()
    pieces = talk.ask(text)
    try:
        for piece in pieces:
            sys.stdout.write(piece.text)
            sys.stdout.flush()
            sound += piece.sound
            if speaker is not None and piece.sound:
                speaker.feed(piece.sound)
        tell("")
        if speaker is not None:
            speaker.close()
    except BaseException as error:
        if speaker is not None:
            speaker.stop()
        if not isinstance(error, KeyboardInterrupt) or not sys.stdin.isatty():
            raise
        tell("")
    finally:
        pieces.close()
    return bytes(sound), speaker is not None and speaker.heard
