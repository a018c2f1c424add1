"""What a listener hears of a stream: when it starts, underruns, and how long it is silent."""

import pytest

from server.observe.player import Listening, ReceivedAudio, listen


def test_audio_that_is_early_plays_without_a_gap():
    pieces = [ReceivedAudio(1.0, 0.5), ReceivedAudio(1.2, 0.5), ReceivedAudio(1.9, 0.5)]

    assert listen(pieces) == Listening(1.0, 2.5, 0, 0.0)


def test_a_piece_that_arrives_at_the_last_moment_is_in_time():
    assert listen([ReceivedAudio(1.0, 0.5), ReceivedAudio(1.5, 0.5)]).num_underruns == 0


def test_a_late_piece_is_an_underrun_and_moves_the_end():
    heard = listen([ReceivedAudio(0.0, 1.0), ReceivedAudio(1.25, 1.0)])

    assert heard == Listening(0.0, 2.25, 1, 0.25)


def test_a_buffer_hides_delays_shorter_than_itself():
    pieces = [ReceivedAudio(0.0, 1.0), ReceivedAudio(1.09, 1.0), ReceivedAudio(2.05, 1.0)]

    assert listen(pieces).num_underruns == 1
    assert listen(pieces, buffer_s=0.1) == Listening(0.1, 3.1, 0, 0.0)


def test_later_delays_are_counted_from_the_end_of_an_underrun():
    pieces = [
        ReceivedAudio(0.0, 0.1),
        ReceivedAudio(0.5, 0.1),
        ReceivedAudio(0.55, 0.1),
        ReceivedAudio(0.8, 0.1),
    ]

    heard = listen(pieces)

    assert heard.num_underruns == 2
    assert heard.silent_s == pytest.approx(0.4 + 0.1)


def test_playback_starts_at_the_latest_with_the_last_piece():
    assert listen([ReceivedAudio(2.0, 1.0)], buffer_s=0.1).started_s == 2.0
    assert (
        listen([ReceivedAudio(2.0, 1.0), ReceivedAudio(2.04, 1.0)], buffer_s=0.1).started_s == 2.04
    )


def test_nothing_to_play_is_an_error():
    with pytest.raises(ValueError, match="nothing to play"):
        listen([])
