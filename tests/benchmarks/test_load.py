"""When clients ask, on a clock that jumps and without a server."""

import asyncio

import pytest

from benchmarks.capacity import highest_good
from benchmarks.http_client import Trace
from benchmarks.load import Client, Plan, listeners, poisson, run, together
from tests.virtual_clock import VirtualClockLoop

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class FakeServer:
    """Answers after `takes_s` with `audio_s` of sound, `room` requests at once and no more."""

    def __init__(self, takes_s, audio_s=1.0, room=100):
        self.takes_s, self.audio_s, self.room = takes_s, audio_s, room
        self.asked_s = []
        self.running = 0

    async def send(self, _body):
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        self.asked_s.append(began_s)
        if self.running >= self.room:
            return Trace(began_s, [(began_s, b"HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n")])
        self.running += 1
        await asyncio.sleep(self.takes_s)
        self.running -= 1
        size = round(self.audio_s * 48_000)
        body = f"{size:x}\r\n".encode() + bytes(size) + b"\r\n0\r\n\r\n"
        return Trace(began_s, [(loop.time(), HEAD + body)])


def outcomes_of(server, clients):
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(run(Plan(0, "/", "pcm", 24_000, clients), server.send))


def bodies(count):
    return [{"number": k} for k in range(count)]


def test_clients_of_a_closed_loop_ask_again_as_soon_as_they_are_answered():
    server = FakeServer(takes_s=2.0)

    outcomes = outcomes_of(server, together(bodies(6), 2))

    assert server.asked_s == [0, 0, 2, 2, 4, 4]
    assert all(outcome.first_audio_s == 2.0 for outcome in outcomes)


def test_arrivals_of_an_open_loop_do_not_wait_for_answers():
    clients = poisson(bodies(50), rate_per_s=5.0, seed=3)
    server = FakeServer(takes_s=100.0)

    outcomes_of(server, clients)

    assert server.asked_s == pytest.approx([client.start_s for client in clients])


def test_arrivals_follow_their_seed_and_their_rate():
    first, again, other = (poisson(bodies(2000), 5.0, seed) for seed in (1, 1, 2))

    assert first == again
    assert first != other
    assert first[-1].start_s == pytest.approx(400, rel=0.1)


def test_listeners_play_to_the_end_before_they_ask_again():
    server = FakeServer(takes_s=0.5, audio_s=3.0)

    outcomes_of(server, listeners(bodies(4), 2, audio_s=3.0))

    assert server.asked_s == pytest.approx([0, 1.5, 3.5, 5.0])


def test_a_listener_who_is_refused_goes_away():
    server = FakeServer(takes_s=1.0, room=1)

    outcomes = outcomes_of(server, [Client(0.0, bodies(2), listens=True) for _ in range(2)])

    assert sorted(outcome.status for outcome in outcomes) == [200, 200, 429]


@pytest.mark.parametrize("holds", range(10))
def test_the_highest_number_that_is_held_is_found(holds):
    looked = []

    def good(number):
        looked.append(number)
        return number <= holds

    assert highest_good([2, 4, 6, 8], good, probes=4) == holds // 2 * 2
    assert len(looked) <= 3


def test_the_search_stops_after_its_probes():
    assert highest_good(list(range(1, 100)), lambda _: True, probes=2) == 75
