"""The order in which requests are served."""

import pytest

from stages.runtime.playback_order import Playback


def playback_at(times):
    return Playback(clock=lambda: times[0], margin_s=1.0)


def test_newcomers_are_served_first_in_their_order():
    now = [0.0]
    playback = playback_at(now)
    for request_id in ("listener", "old", "new"):
        playback.open(request_id)
        now[0] += 1
    playback.emit("listener", 5.0)
    assert playback.most_urgent(["listener", "new", "old"]) == "old"


def step(playback, now, request_id, sound_s):
    """A step of 0.1 s for a request."""
    playback.most_urgent([request_id])
    now[0] += 0.1
    playback.emit(request_id, sound_s)


@pytest.mark.parametrize(
    ("listeners", "first"),
    [
        ({"a": 1 + 0.19}, "a"),
        ({"a": 1 + 0.21}, "new"),
        ({"a": 1 + 0.25, "b": 1 + 0.29}, "a"),
        ({"a": 1 + 0.25, "b": 1 + 0.31}, "new"),
        ({"b": 1 + 0.31, "c": 1 + 0.32, "a": 1 + 0.33}, "b"),
    ],
)
def test_newcomers_are_served_before_listeners_who_are_still_in_time(listeners, first):
    now = [0.0]
    playback = playback_at(now)
    playback.open("before")
    for _ in range(100):  # the mean of the steps' times comes to 0.1 s
        step(playback, now, "before", 0.1)
    for number, (request_id, left_s) in enumerate(listeners.items(), 1):
        playback.open(request_id)
        step(playback, now, request_id, left_s + 0.1 * (len(listeners) - number))
    playback.open("new")
    assert playback.most_urgent(["new", *listeners]) == first


@pytest.mark.parametrize(
    ("left_s", "order"),
    [
        (1 + 0.19, ["near", "far", "old", "new"]),
        (1 + 0.21, ["old", "near", "far", "new"]),
        (1 + 0.31, ["old", "new", "near", "far"]),
    ],
)
def test_as_many_newcomers_are_served_first_as_listeners_can_wait_for(left_s, order):
    now = [0.0]
    playback = playback_at(now)
    playback.open("near")
    for _ in range(100):
        step(playback, now, "near", 0.1)
    playback.open("far")
    step(playback, now, "far", 5.0)
    playback.emit("near", left_s - playback.left_s("near"))
    for request_id in ("old", "new"):
        playback.open(request_id)
        now[0] += 1e-6
    assert playback.most_urgent_first(["far", "new", "near", "old"]) == order
    assert playback.most_urgent(["far", "new", "near", "old"]) == order[0]


def test_the_sound_that_a_listener_has_left_is_never_negative():
    now = [0.0]
    playback = playback_at(now)
    playback.open("a")
    assert playback.left_s("a") == 0.0
    playback.emit("a", 2.0)
    now[0] += 0.5
    assert playback.left_s("a") == 1.5
    now[0] += 5
    assert playback.left_s("a") == 0.0


def test_a_listener_that_ran_dry_has_all_of_the_next_emission_left():
    now = [0.0]
    playback = playback_at(now)
    playback.open("a")
    playback.emit("a", 1.0)
    now[0] = 11.0
    playback.emit("a", 5.0)
    assert playback.left_s("a") == 5.0


def test_a_listener_that_was_fed_after_an_underrun_is_not_the_most_urgent():
    now = [0.0]
    playback = playback_at(now)
    for request_id in ("was_dry", "near"):
        playback.open(request_id)
        playback.emit(request_id, 1.0 if request_id == "was_dry" else 12.0)
    now[0] = 11.0
    playback.emit("was_dry", 5.0)
    assert playback.most_urgent_first(["was_dry", "near"]) == ["near", "was_dry"]


def test_of_two_listeners_the_one_with_less_sound_left_is_served_first():
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


def test_a_step_that_serves_several_is_counted_once():
    now = [0.0]
    one, many = playback_at(now), playback_at(now)
    for playback in (one, many):
        for request_id in "abc":
            playback.open(request_id)
        playback.most_urgent("abc")
    now[0] += 0.5
    one.emit("a", 1.0)
    for request_id in "abc":
        many.emit(request_id, 1.0)
    assert many.step_s == one.step_s > 0.02
