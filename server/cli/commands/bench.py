"""`nano-omni bench URL`: a short load, and how soon and how smoothly the server spoke under it."""

from __future__ import annotations

from collections import Counter
from functools import partial
from statistics import quantiles
from typing import TYPE_CHECKING

import anyio

from server.cli.client.api import client_of, offer_of
from server.cli.client.bench import Load, bench
from server.cli.commands.target import add_target, target_of
from server.cli.commands.terminal import progress, tell
from server.cli.selftest.run import SPEECH_MODEL
from server.observe.player import BUFFER_S

if TYPE_CHECKING:
    import argparse

    from server.cli.client.bench import HeardSpeech

EXAMPLES = """\
  nano-omni bench http://127.0.0.1:8000
  nano-omni bench https://example.org --clients 16 --requests 64 --speech-model kokoro
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which server, by which names, and how much."""
    add_target(parser)
    parser.add_argument("--speech-model", metavar="NAME", help="the first that speaks")
    parser.add_argument("--voice", metavar="NAME", default="alloy", help="a voice it has (alloy)")
    parser.add_argument("--clients", type=_count, default=4, help="how many at once (4)")
    parser.add_argument("--requests", type=_count, default=16, help="how many in all (16)")


def run(options: argparse.Namespace) -> int:
    """Measure; 0 where every request was complete."""
    target = target_of(options)
    with client_of(target) as client:
        model = options.speech_model or next(iter(offer_of(client).speech), SPEECH_MODEL)
    load = Load(target, model, options.voice, options.clients, options.requests)
    with progress("speaking", load.num_requests) as step:
        found, took_s = anyio.run(partial(bench, load, step))
    for line in summary(found, took_s):
        tell(line)
    return 1 if any(heard.problem for heard in found) else 0


def summary(found: list[HeardSpeech], took_s: float) -> list[str]:
    """What came of it, for people."""
    good = [heard for heard in found if not heard.problem]
    problems = Counter(heard.problem for heard in found if heard.problem)
    counts = "".join(f", {count} x {problem}" for problem, count in problems.items())
    lines = [f"requests     {len(good)} of {len(found)} complete in {took_s:.1f} s{counts}"]
    if not good:
        return lines
    plays = [heard.listening for heard in good]
    first_ms = [1000 * heard.pieces[0].at_s for heard in good]
    factors = [heard.ended_s / heard.audio_s for heard in good]
    dry = sum(play.num_underruns > 0 for play in plays)
    silent_s = sum(play.silent_s for play in plays)
    audio_s = sum(heard.audio_s for heard in good)
    return [
        *lines,
        f"first audio  {_spread(first_ms, '.0f')} ms",
        f"real time    {_spread(factors, '.2f')} of the sound's length until its end",
        f"ran dry      {dry} of {len(good)}, {silent_s:.2f} s silent (a buffer of {BUFFER_S:g} s)",
        f"throughput   {audio_s / took_s:.1f} s of sound a second",
    ]


def _spread(values: list[float], form: str) -> str:
    cuts = quantiles(values, n=20, method="inclusive") if len(values) > 1 else values * 19
    median, high = cuts[9], cuts[18]
    return f"median {median:{form}}, 95% {high:{form}}, worst {max(values):{form}}"


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(f"{text} is less than 1")
    return value
