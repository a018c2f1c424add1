"""The loudspeaker, with programs that stand in for players: all of it is heard, or nothing is."""

import os

import pytest

from server.cli.client.loudspeaker import Loudspeaker


@pytest.fixture
def players(tmp_path, monkeypatch):
    """Adds a player of a name: a shell script. No others are found."""
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
    return speaker.heard


def test_a_player_gets_all_samples(players, tmp_path):
    players("aplay", f"/bin/cat > {tmp_path}/heard")
    assert play(b"ab", b"cd")
    assert (tmp_path / "heard").read_bytes() == b"abcd"


def test_without_a_player_nothing_is_heard(players):
    assert not play(b"ab")


def test_a_player_without_a_device_is_not_the_last(players, tmp_path):
    players("paplay", "exit 1")
    players("aplay", "/bin/cat > /dev/null; exit 1")
    players("ffplay", f"/bin/cat > {tmp_path}/heard")
    sound = bytes(200_000)  # more than a pipe holds: the first breaks while it is written
    assert play(sound, b"cd")
    assert (tmp_path / "heard").read_bytes() == sound + b"cd"


def test_where_all_players_fail_nothing_is_heard(players):
    players("aplay", "exit 1")
    assert not play(bytes(200_000))


def test_it_stops_at_once_and_no_other_player_goes_on(players, tmp_path):
    os.mkfifo(tmp_path / "began")
    players("aplay", f"echo > {tmp_path}/began; exec /bin/sleep 1000")
    players("ffplay", f"/bin/cat > {tmp_path}/heard")
    speaker = Loudspeaker()
    speaker.feed(bytes(200_000))
    (tmp_path / "began").read_bytes()
    speaker.stop()
    assert not speaker.heard
    assert not (tmp_path / "heard").exists()
