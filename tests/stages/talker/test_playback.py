"""Who is served first."""

from stages.playback import GUARD_S, Playback


def playback_at(times):
    return Playback(clock=lambda: times[0])


def test_newcomers_come_first_in_their_order():
    now = [0.0]
    playback = playback_at(now)
    for request_id in ("listener", "old", "new"):
        playback.open(request_id)
        now[0] += 1
    playback.emit("listener", 5.0)
    assert playback.most_urgent(["listener", "new", "old"]) == "old"


def test_a_listener_who_is_about_to_run_dry_comes_before_newcomers():
    now = [0.0]
    playback = playback_at(now)
    playback.open("listener")
    playback.emit("listener", 1.0)
    playback.open("new")
    now[0] = 1.0 - GUARD_S + 0.01
    assert playback.most_urgent(["new", "listener"]) == "listener"


def test_of_two_listeners_the_one_with_less_left_comes_first():
    now = [0.0]
    playback = playback_at(now)
    for request_id, seconds in (("far", 3.0), ("near", 2.0)):
        playback.open(request_id)
        playback.emit(request_id, seconds)
    assert playback.most_urgent(["far", "near"]) == "near"
    playback.emit("near", 2.0)
    assert playback.most_urgent(["far", "near"]) == "far"
    playback.close("near")
    assert playback.most_urgent(["far"]) == "far"
