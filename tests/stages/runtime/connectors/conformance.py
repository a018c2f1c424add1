"""What every connector must do. A test module imports all of it and has a fixture `edge`.

`edge` has `sender`, `receiver`, `close()` and `stats()`, and holds 4 chunks per lane. It appends
"sender" or "receiver" to its list `woken` when it wakes that side.
"""

from stages.contract.messages import TextChunk
from stages.runtime.connectors.contract import LaneSignal

CHUNKS = [TextChunk(str(n)) for n in range(4)]


def received(edge):
    edge.sender.flush()
    return [(d.request_id, d.item) for d in edge.receiver.receive()]


def test_chunks_and_end_arrive_in_the_order_sent(edge):
    edge.sender.open_lane("a")
    for chunk in CHUNKS[:3]:
        edge.sender.send("a", chunk)
    edge.sender.finish("a")
    assert received(edge) == [*(("a", chunk) for chunk in CHUNKS[:3]), ("a", LaneSignal.END)]
    assert received(edge) == []


def test_credit_shrinks_with_each_chunk_and_comes_back_with_each_one_consumed(edge):
    edge.sender.open_lane("a")
    for left, chunk in zip((3, 2, 1, 0), CHUNKS, strict=True):
        edge.sender.send("a", chunk)
        assert edge.sender.credit("a") == left
    received(edge)
    assert edge.sender.credit("a") == 0
    edge.receiver.consumed("a")
    edge.receiver.flush()
    assert edge.sender.changed() == ["a"]
    assert edge.sender.credit("a") == 1
    assert edge.sender.changed() == []


def test_one_lane_without_credit_leaves_the_others_theirs(edge):
    edge.sender.open_lane("a")
    edge.sender.open_lane("b")
    for chunk in CHUNKS:
        edge.sender.send("a", chunk)
    assert edge.sender.credit("a") == 0
    assert edge.sender.credit("b") == 4


def test_a_lane_is_drained_when_its_end_is_consumed(edge):
    edge.sender.open_lane("a")
    edge.sender.send("a", CHUNKS[0])
    edge.sender.finish("a")
    received(edge)
    assert not edge.sender.is_drained("a")
    edge.receiver.consumed("a")
    edge.receiver.flush()
    edge.sender.changed()
    assert not edge.sender.is_drained("a")
    edge.receiver.consumed("a")
    edge.receiver.flush()
    assert edge.sender.changed() == ["a"]
    assert edge.sender.is_drained("a")


def test_after_a_cancel_chunks_are_dropped_and_counted_and_the_lane_is_drained(edge):
    edge.sender.open_lane("a")
    edge.sender.send("a", CHUNKS[0])
    edge.sender.flush()
    edge.receiver.cancel("a")
    edge.receiver.flush()
    assert edge.sender.changed() == ["a"]
    assert edge.sender.is_drained("a")
    edge.sender.send("a", CHUNKS[1])
    edge.sender.finish("a")
    assert received(edge) == []
    assert edge.stats().num_dropped == 1
    assert edge.stats().num_unread == 0


def test_a_lane_that_follows_a_cancelled_one_of_its_name_delivers(edge):
    edge.sender.open_lane("a")
    edge.sender.send("a", CHUNKS[0])
    edge.sender.flush()
    edge.receiver.cancel("a")
    edge.receiver.flush()
    edge.sender.changed()
    edge.sender.close_lane("a")
    assert received(edge) == []
    edge.sender.open_lane("a")
    edge.sender.send("a", CHUNKS[1])
    assert received(edge) == [("a", CHUNKS[1])]


def test_a_lane_that_was_cancelled_before_it_was_opened_and_is_forgotten_delivers(edge):
    edge.receiver.cancel("a")
    edge.receiver.flush()
    edge.sender.changed()
    assert received(edge) == []
    edge.sender.open_lane("a")
    edge.sender.send("a", CHUNKS[0])
    assert received(edge) == [("a", CHUNKS[0])]


def test_a_chunk_for_a_lane_that_is_not_open_is_dropped_and_counted(edge):
    edge.sender.send("a", CHUNKS[0])
    edge.sender.finish("a")
    assert received(edge) == []
    assert edge.stats().num_dropped == 1


def test_no_lane_is_lost_while_both_sides_are_there(edge):
    edge.sender.open_lane("a")
    edge.sender.send("a", CHUNKS[0])
    received(edge)
    assert not edge.sender.is_lost("a")
    assert not edge.sender.is_lost("b")


def test_closing_a_lane_early_frees_what_is_unread_and_tells_the_receiver(edge):
    edge.sender.open_lane("a")
    edge.sender.open_lane("b")
    edge.sender.send("a", CHUNKS[0])
    edge.sender.send("b", CHUNKS[1])
    edge.sender.close_lane("a")
    items = received(edge)
    assert items[-1] == ("a", LaneSignal.ABORT)
    assert ("b", CHUNKS[1]) in items
    assert edge.stats().num_lanes == 1


def test_closing_a_drained_lane_leaves_nothing_behind(edge):
    edge.sender.open_lane("a")
    edge.sender.finish("a")
    received(edge)
    edge.receiver.consumed("a")
    edge.receiver.flush()
    edge.sender.changed()
    edge.sender.close_lane("a")
    edge.receiver.cancel("a")
    assert received(edge) == []
    assert edge.stats().num_lanes == 0


def test_a_flush_wakes_the_other_side_once_for_everything(edge):
    edge.sender.open_lane("a")
    edge.sender.flush()
    assert edge.woken == []
    edge.sender.send("a", CHUNKS[0])
    edge.sender.send("a", CHUNKS[1])
    edge.sender.flush()
    edge.sender.flush()
    assert edge.woken == ["receiver"]
    edge.receiver.receive()
    edge.receiver.consumed("a")
    edge.receiver.consumed("a")
    edge.receiver.flush()
    edge.receiver.flush()
    assert edge.woken == ["receiver", "sender"]


def test_a_reset_follows_everything_that_was_sent_before(edge):
    edge.sender.open_lane("a")
    edge.sender.send("a", CHUNKS[0])
    edge.sender.reset()
    assert received(edge)[-1] == ("", LaneSignal.RESET)


def test_close_frees_everything_and_may_come_twice(edge):
    edge.sender.open_lane("a")
    edge.sender.send("a", CHUNKS[0])
    edge.close()
    edge.close()
    assert edge.stats().num_lanes == 0
    assert edge.stats().num_unread == 0
