"""What every stage must do. A test module imports all of it and has a fixture `subject`.

`subject` is a `Subject`: a loaded stage, and at least three requests that it can run.
"""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from stages.contract.errors import RequestError
from stages.contract.messages import To
from stages.contract.stage import Credit, as_request_error

PLENTY, ONE, NONE = Credit(8, 8), Credit(1, 1), Credit(0, 0)
MAX_TURNS = 20_000


@dataclass
class Subject:
    """A stage, and its requests by id: what each is opened with, and its chunks."""

    stage: Any
    requests: dict[str, tuple[Any, list[Any]]]


class Driver:
    """Runs requests of a subject as a worker does, and checks what the stage emits."""

    def __init__(self, subject):
        self.stage = subject.stage
        self.requests = subject.requests
        self.waiting = {}  # input, None for its end; of the open requests
        self.ends = {}
        self.num_emitted = Counter()  # by request

    def open(self, *request_ids):
        for request_id in request_ids:
            params, chunks = self.requests[request_id]
            self.stage.open(request_id, params)
            self.waiting[request_id] = [*chunks, None]

    def close(self, request_id):
        del self.waiting[request_id]
        self.stage.close(request_id)

    def turn(self, credit):
        """Feed, then step what is ready with this credit each. Returns whether there was any."""
        for request_id, waiting in self.waiting.items():
            self._feed(request_id, waiting)
        ready = {rid: credit for rid in self.waiting if self.stage.ready(rid, credit)}
        if ready:
            self._step(ready)
        return bool(ready)

    def _feed(self, request_id, waiting):
        while waiting:
            if waiting[0] is None:
                self.stage.end_input(request_id)
            elif self.stage.wants_chunk(request_id):
                self.stage.feed(request_id, waiting[0])
            else:
                return
            waiting.pop(0)

    def _step(self, ready):
        sent, ended = Counter(), set()
        for emit in self.stage.step(ready):
            assert emit.request_id in ready
            assert emit.request_id not in ended, "something follows the end"
            if emit.chunk is not None:
                self.num_emitted[emit.request_id] += 1
                sent.update((emit.request_id, to) for to in To if to in emit.to)
                assert emit.to in (To.CLIENT, To.NEXT, To.BOTH)
            if emit.end is not None:
                self.ends[emit.request_id] = emit.end
                ended.add(emit.request_id)
        for request_id, credit in ready.items():
            assert sent[request_id, To.CLIENT] <= max(0, credit.client)
            assert sent[request_id, To.NEXT] <= max(0, credit.next)
        for request_id in ended:
            self.close(request_id)

    def run(self, credit=PLENTY):
        """Take turns until no request is open."""
        for _ in range(MAX_TURNS):
            if not self.waiting:
                return self.results()
            self.turn(credit)
        raise AssertionError(f"{sorted(self.waiting)} do not end")

    def idle(self, credit):
        """Take turns until no request is ready."""
        for _ in range(MAX_TURNS):
            if not self.turn(credit):
                return
        raise AssertionError(f"with {credit} a request stays ready for ever")

    def results(self):
        """The ends, without what depends on earlier requests."""
        ends = {request_id: asdict(end) for request_id, end in self.ends.items()}
        for end in ends.values():
            end.pop("cached_tokens", None)
        return ends


@pytest.fixture
def driver(subject):
    """Closes what a test leaves open."""
    driver = Driver(subject)
    yield driver
    for request_id in list(driver.waiting):
        driver.close(request_id)


@pytest.fixture
def expected(subject):
    """The ends of all requests, each run alone."""
    driver = Driver(subject)
    for request_id in subject.requests:
        driver.open(request_id)
        driver.run()
    return driver.results()


@pytest.mark.parametrize("credit", [PLENTY, ONE])
def test_requests_side_by_side_end_as_they_do_alone(driver, expected, credit):
    driver.open(*driver.requests)
    assert driver.run(credit) == expected


@pytest.mark.parametrize("credit", [NONE, Credit(8, 0), Credit(0, 8), Credit(-1, 8)])
def test_a_request_that_lacks_credit_is_idle_until_there_is_credit(driver, expected, credit):
    driver.open(*driver.requests)
    driver.idle(credit)
    assert driver.run(ONE) == expected


def test_one_request_that_lacks_credit_does_not_hold_up_the_others(driver, expected):
    held, *others = driver.requests
    driver.open(held, *others)
    driver.idle(NONE)
    waiting = driver.waiting.pop(held)
    driver.run()
    driver.waiting[held] = waiting
    assert driver.run() == expected


def test_a_request_may_be_closed_early_and_its_id_used_again(driver, expected):
    aborted, *others = driver.requests
    driver.open(aborted, *others)
    driver.turn(ONE)
    if aborted in driver.waiting:
        driver.close(aborted)
    driver.run()
    driver.open(aborted)
    assert driver.run() == expected


def test_a_request_that_cannot_be_opened_leaves_nothing_behind(driver, expected):
    bad, *others = driver.requests
    driver.open(*others)
    with pytest.raises(RequestError), as_request_error(bad):
        driver.stage.open(bad, object())
    driver.open(bad)
    assert driver.run() == expected
