"""The short load: who shares the requests, and what is said of what came."""

from functools import partial

import anyio

from server.cli.client.api import Target
from server.cli.client.bench import HeardSpeech, Load, bench
from server.cli.commands.bench import summary
from server.observe.player import ReceivedAudio
from tests.server.bench import fake_service
from tests.server.loopback import serving


def test_clients_share_the_requests_and_hear_their_sound():
    with serving(fake_service(port=0)) as server:
        load = Load(Target(server.url), "tts-1", "alloy", 3, 8)
        told = []
        found, took_s = anyio.run(partial(bench, load, lambda: told.append(1)))
    assert len(found) == len(told) == 8
    assert not any(heard.problem for heard in found)
    assert all(heard.audio_s > 0 for heard in found)
    assert 0 < max(heard.ended_s for heard in found) <= took_s


def test_a_refusal_is_counted_by_its_status():
    with serving(fake_service(port=0)) as server:
        load = Load(Target(server.url), "no-such-model", "alloy", 1, 2)
        found, took_s = anyio.run(partial(bench, load, lambda: None))
    assert summary(found, took_s)[0].endswith(", 2 x HTTP 404")


def test_the_summary_counts_listeners_who_ran_dry():
    smooth = HeardSpeech("", 1.0, [ReceivedAudio(0.5, 1.0), ReceivedAudio(1.0, 1.0)])
    dry = HeardSpeech("", 3.0, [ReceivedAudio(0.7, 1.0), ReceivedAudio(3.0, 1.0)])
    lines = summary([smooth, dry, HeardSpeech("HTTP 429")], 4.0)
    assert lines == [
        "requests     2 of 3 complete in 4.0 s, 1 x HTTP 429",
        "first audio  median 600, 95% 690, worst 700 ms",
        "real time    median 1.00, 95% 1.45, worst 1.50 of the sound's length until its end",
        "ran dry      1 of 2, 1.20 s silent (a buffer of 0.1 s)",
        "throughput   1.0 s of sound a second",
    ]
