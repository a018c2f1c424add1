from stages.models.llama.schedule import Writing, plan


def writing(name, num_tokens, num_cached=0, last_step=0):
    return Writing(name, None, [0] * num_tokens, None, None, num_cached, last_step)


def planned(ready, max_batch=8, max_step_tokens=64):
    parts = plan(ready, max_batch, max_step_tokens)
    return {w.request_id: count for w, count in parts}


def test_all_that_write_advance_together():
    ready = [writing(f"w{i}", 50 + i, 49 + i) for i in range(8)]
    assert planned(ready) == {f"w{i}": 1 for i in range(8)}


def test_a_long_prompt_is_cut():
    assert planned([writing("long", 1000)]) == {"long": 64}


def test_pieces_get_smaller_as_more_lies_before_them():
    assert planned([writing("long", 5000, 1000)]) == {"long": 32}


def test_the_shortest_prompt_goes_first():
    assert planned([writing("long", 900), writing("short", 40)]) == {"short": 40, "long": 24}


def test_prompts_advance_however_much_is_written():
    ready = [writing(f"w{i}", 2001, 2000) for i in range(20)] + [writing("new", 100)]
    parts = planned(ready, max_batch=32)
    assert parts["new"] == 16
    assert len(parts) < 10


def test_those_left_out_come_first_in_the_next_step():
    ready = [writing(str(i), 10, 9, last_step=i) for i in range(5)]
    assert planned(ready, max_batch=2) == {"0": 1, "1": 1}


def test_something_always_advances():
    assert planned([writing("end", 8001, 8000)]) == {"end": 1}
    assert planned([writing("end", 8002, 8000)], max_step_tokens=1) == {"end": 1}


def test_nothing_ready_is_no_step():
    assert planned([]) == {}
