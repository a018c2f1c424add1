"""The short load: how clients share the requests, and the summary of the results."""

from functools import partial

import anyio

from server.cli.client.api import ServerAddress
from server.cli.client.bench import Load, SpeechResult, run_load
from server.cli.commands.bench import summary
from server.observe.player import ReceivedAudio
from tests.server.bench import fake_service
from tests.server.loopback import serving


def test_clients_share_the_requests_and_receive_audio():
    with serving(fake_service(port=0)) as server:
        load = Load(ServerAddress(server.url), "tts-1", "alloy", 3, 8)
        done = []
        results, took_s = anyio.run(partial(run_load, load, lambda: done.append(1)))
    assert len(results) == len(done) == 8
    assert not any(result.error for result in results)
    assert all(result.audio_s > 0 for result in results)
    assert 0 < max(result.took_s for result in results) <= took_s


def test_refusals_are_counted_by_status():
    with serving(fake_service(port=0)) as server:
        load = Load(ServerAddress(server.url), "no-such-model", "alloy", 1, 2)
        results, took_s = anyio.run(partial(run_load, load, lambda: None))
    assert summary(results, took_s)[0].endswith(", 2 x HTTP 404")


def test_the_summary_counts_streams_that_ran_dry():
    smooth = SpeechResult("", 1.0, [ReceivedAudio(0.5, 1.0), ReceivedAudio(1.0, 1.0)])
    dry = SpeechResult("", 3.0, [ReceivedAudio(0.7, 1.0), ReceivedAudio(3.0, 1.0)])
    lines = summary([smooth, dry, SpeechResult("HTTP 429")], 4.0)
    assert lines == [
        "requests     2 of 3 complete in 4.0 s, 1 x HTTP 429",
        "first audio  median 600, 95% 690, worst 700 ms",
        "real time    median 1.00, 95% 1.45, worst 1.50 (time taken / length of the audio)",
        "ran dry      1 of 2, silent for 1.20 s in total (playback buffer: 0.1 s)",
        "throughput   1.0 s of audio per second",
    ]
