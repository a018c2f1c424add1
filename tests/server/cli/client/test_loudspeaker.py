"""The loudspeaker, with shell scripts as players: it plays all samples, or says that it cannot."""

import os

import pytest

from server.cli.client.loudspeaker import Loudspeaker


@pytest.fixture
def players(tmp_path, monkeypatch):
    """Adds a player: a shell script with a given name. No other players are found."""
    monkeypatch.setenv("PATH", f"{tmp_path}")

    def add(name, script):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return add


def play(*sounds):
    speaker = Loudspeaker()
    for sound in sounds:
        speaker.feed(sound)
    speaker.close()
    return speaker.played_all


def test_a_player_gets_all_samples(players, tmp_path):
    players("aplay", f"/bin/cat > {tmp_path}/played")
    assert play(b"ab", b"cd")
    assert (tmp_path / "played").read_bytes() == b"abcd"


def test_without_a_player_nothing_is_played(players):
    assert not play(b"ab")


def test_if_a_player_fails_the_next_one_plays_everything(players, tmp_path):
    players("paplay", "exit 1")
    players("aplay", "/bin/cat > /dev/null; exit 1")
    players("ffplay", f"/bin/cat > {tmp_path}/played")
    pcm = bytes(200_000)  # more than a pipe holds, so the write to the first player fails
    assert play(pcm, b"cd")
    assert (tmp_path / "played").read_bytes() == pcm + b"cd"


def test_if_all_players_fail_nothing_is_played(players):
    players("aplay", "exit 1")
    assert not play(bytes(200_000))


def test_stop_ends_the_player_and_starts_no_other(players, tmp_path):
    os.mkfifo(tmp_path / "started")
    players("aplay", f"echo > {tmp_path}/started; exec /bin/sleep 1000")
    players("ffplay", f"/bin/cat > {tmp_path}/played")
    speaker = Loudspeaker()
    speaker.feed(bytes(200_000))
    (tmp_path / "started").read_bytes()
    speaker.stop()
    assert not speaker.played_all
    assert not (tmp_path / "played").exists()
