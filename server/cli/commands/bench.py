"""`nano-omni bench URL`: sends a short load and prints latency, gaps and throughput."""

from __future__ import annotations

from collections import Counter
from functools import partial
from statistics import quantiles
from typing import TYPE_CHECKING

import anyio

from server.cli.client.api import list_models, open_client
from server.cli.client.bench import Load, run_load
from server.cli.commands.server_options import add_server_url, add_speech_model, server_address
from server.cli.commands.terminal import print_line, progress_bar
from server.cli.selftest.run import SPEECH_MODEL
from server.observe.player import BUFFER_S

if TYPE_CHECKING:
    import argparse

    from server.cli.client.bench import SpeechResult

EXAMPLES = """\
  nano-omni bench http://127.0.0.1:8000
  nano-omni bench https://example.org --clients 16 --requests 64 --speech-model kokoro
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the server, the model, the voice and the size of the load."""
    add_server_url(parser)
    add_speech_model(parser)
    parser.add_argument("--clients", type=_count, default=4, help="number of clients (4)")
    parser.add_argument(
        "--requests", type=_count, default=16, help="total requests, shared by the clients (16)"
    )


def run(options: argparse.Namespace) -> int:
    """Run the load and print the summary. Return 0 if every request was complete, else 1."""
    server = server_address(options)
    with open_client(server) as client:
        model = options.speech_model or next(iter(list_models(client).speech), SPEECH_MODEL)
    load = Load(server, model, options.voice, options.clients, options.requests)
    with progress_bar("speaking", load.num_requests) as step:
        results, took_s = anyio.run(partial(run_load, load, step))
    for line in summary(results, took_s):
        print_line(line)
    return 1 if any(result.error for result in results) else 0


def summary(results: list[SpeechResult], took_s: float) -> list[str]:
    """The lines to print: errors, first audio, real-time factor, underruns and throughput."""
    complete = [result for result in results if not result.error]
    errors = Counter(result.error for result in results if result.error)
    counts = "".join(f", {count} x {error}" for error, count in errors.items())
    lines = [f"requests     {len(complete)} of {len(results)} complete in {took_s:.1f} s{counts}"]
    if not complete:
        return lines
    playbacks = [result.playback for result in complete]
    first_audio_ms = [1000 * result.arrivals[0].at_s for result in complete]
    real_time_factors = [result.took_s / result.audio_s for result in complete]
    num_dry = sum(playback.num_underruns > 0 for playback in playbacks)
    silent_s = sum(playback.silent_s for playback in playbacks)
    dry = f"{num_dry} of {len(complete)}, silent for {silent_s:.2f} s in total"
    audio_s = sum(result.audio_s for result in complete)
    return [
        *lines,
        f"first audio  {_spread(first_audio_ms, '.0f')} ms",
        f"real time    {_spread(real_time_factors, '.2f')} (time taken / length of the audio)",
        f"ran dry      {dry} (playback buffer: {BUFFER_S:g} s)",
        f"throughput   {audio_s / took_s:.1f} s of audio per second",
    ]


def _spread(values: list[float], format_: str) -> str:
    cuts = quantiles(values, n=20, method="inclusive") if len(values) > 1 else values * 19
    median, high = cuts[9], cuts[18]
    return f"median {median:{format_}}, 95% {high:{format_}}, worst {max(values):{format_}}"


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(f"{text} is too small: the minimum is 1")
    return value
