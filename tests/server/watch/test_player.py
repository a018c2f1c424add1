"""What a player hears that starts 100 ms after the first sound was written."""

import pytest

from server.client.player import Piece, listen
from server.watch.player import BUFFER_S, Player


def played(*pieces):
    player = Player()
    for sound_s, at in pieces:
        player.take(sound_s, at)
    return player


def test_a_stream_that_keeps_up_has_no_underrun():
    assert played((0.2, 0.0), (0.2, 0.25), (0.2, 0.45)).num_underruns == 0


def test_a_piece_that_comes_at_the_last_moment_is_in_time():
    assert played((0.2, 5.0), (0.1, 5.3)).num_underruns == 0


def test_a_late_piece_is_an_underrun_as_long_as_it_was_late():
    player = played((0.2, 0.0), (0.2, 0.5), (0.2, 1.0))
    assert player.num_underruns == 2
    assert player.silent_s == pytest.approx(0.2 + 0.3)


def test_what_came_early_makes_up_for_what_comes_late():
    assert played((1.0, 0.0), (1.0, 0.01), (1.0, 2.05)).num_underruns == 0


def test_it_hears_what_the_benchmark_hears():
    pieces = [(0.1, 0.0), (0.3, 0.15), (0.1, 0.9), (0.5, 0.95), (0.1, 1.7), (0.1, 1.71)]
    heard = listen([Piece(at, sound_s) for sound_s, at in pieces], BUFFER_S)
    player = played(*pieces)
    assert player.num_underruns == heard.num_underruns > 0
    assert player.silent_s == pytest.approx(heard.silent_s)
