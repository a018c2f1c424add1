"""Stop strings: found however the text is cut, and never let out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.models.llama.stop import StopFilter

LETTERS = st.text("ab\n", max_size=30)
STOPS = st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=4)


def expected(text, stops):
    """The definition, character by character: the text before the first stop that is complete."""
    for end in range(1, len(text) + 1):
        starts = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if starts:
            return text[: min(starts)], True
    return text, False


def pushed(pieces, stops):
    stop_filter = StopFilter(stops)
    out = []
    for piece in pieces:
        out.append(stop_filter.push(piece))
        if stop_filter.stopped:
            break
    return [*out, stop_filter.flush()], stop_filter.stopped


@given(st.lists(LETTERS, max_size=12), STOPS)
def test_what_comes_out_does_not_depend_on_the_cuts(pieces, stops):
    out, stopped = pushed(pieces, stops)
    assert ("".join(out), stopped) == expected("".join(pieces), stops)


@given(LETTERS, STOPS)
def test_text_is_held_back_only_while_it_may_begin_a_stop(text, stops):
    stop_filter = StopFilter(stops)
    out = ""
    for i, character in enumerate(text):
        out += stop_filter.push(character)
        if stop_filter.stopped:
            break
        held = text[len(out) : i + 1]
        assert not held or any(stop.startswith(held) for stop in stops)


def test_text_that_turns_out_to_be_no_stop_is_let_out():
    assert pushed(["one\n", "\ntwo"], ["\n\n\n"]) == (["one", "\n\ntwo", ""], False)


def test_the_stop_itself_is_never_seen():
    assert pushed(["say ", "EN", "D now"], ["END"]) == (["say ", "", "", ""], True)


def test_an_empty_stop_is_refused():
    with pytest.raises(ValueError, match="empty"):
        StopFilter(["ok", ""])
