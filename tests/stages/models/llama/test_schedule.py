"""Plans of steps: which requests advance, and by how many tokens."""

from stages.models.llama.schedule import ThinkerRequest, plan


def request(name, num_tokens, num_cached=0, last_step=0):
    return ThinkerRequest(name, None, [0] * num_tokens, None, None, num_cached, last_step)


def planned(ready, max_batch=8, max_step_tokens=64):
    parts = plan(ready, max_batch, max_step_tokens)
    return {request.request_id: count for request, count in parts}


def test_all_replies_advance_together():
    ready = [request(f"w{i}", 50 + i, 49 + i) for i in range(8)]
    assert planned(ready) == {f"w{i}": 1 for i in range(8)}


def test_a_long_prompt_is_cut():
    assert planned([request("long", 1000)]) == {"long": 64}


def test_pieces_get_smaller_as_more_tokens_are_before_them():
    assert planned([request("long", 5000, 1000)]) == {"long": 32}


def test_the_shortest_prompt_goes_first():
    assert planned([request("long", 900), request("short", 40)]) == {"short": 40, "long": 24}


def test_prompts_advance_beside_any_number_of_replies():
    ready = [request(f"w{i}", 2001, 2000) for i in range(20)] + [request("new", 100)]
    parts = planned(ready, max_batch=32)
    assert parts["new"] == 16
    assert len(parts) < 10


def test_requests_that_waited_longest_come_first():
    ready = [request(str(i), 10, 9, last_step=i) for i in range(5)]
    assert planned(ready, max_batch=2) == {"0": 1, "1": 1}


def test_at_least_one_request_advances():
    assert planned([request("end", 8001, 8000)]) == {"end": 1}
    assert planned([request("end", 8002, 8000)], max_step_tokens=1) == {"end": 1}


def test_without_ready_requests_there_is_no_plan():
    assert planned([]) == {}
