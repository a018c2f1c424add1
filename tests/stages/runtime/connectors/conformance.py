"""What every connector must do. A test module imports all of it and gives the fixture `edge`.

`edge` has `sender`, `receiver`, `close()`, `stats()`, holds 4 chunks a lane, and `rung` is a list
to which it appends "sender" or "receiver" when it wakes that end.
"""

from stages.contract.messages import TextChunk
from stages.runtime.connectors.contract import LaneSignal

CHUNKS = [TextChunk(str(n)) for n in range(4)]


def received(edge):
    edge.sender.flush()
    return [(d.request_id, d.item) for d in edge.receiver.receive()]


def test_chunks_and_end_arrive_in_the_order_sent(edge):
    edge.sender.open("a")
    for chunk in CHUNKS[:3]:
        edge.sender.send("a", chunk)
    edge.sender.end("a")
    assert received(edge) == [*(("a", chunk) for chunk in CHUNKS[:3]), ("a", LaneSignal.END)]
    assert received(edge) == []


def test_room_shrinks_with_each_chunk_and_comes_back_with_each_one_consumed(edge):
    edge.sender.open("a")
    for left, chunk in zip((3, 2, 1, 0), CHUNKS, strict=True):
        edge.sender.send("a", chunk)
        assert edge.sender.room("a") == left
    received(edge)
    assert edge.sender.room("a") == 0
    edge.receiver.consumed("a")
    edge.receiver.flush()
    assert edge.sender.changed() == ["a"]
    assert edge.sender.room("a") == 1
    assert edge.sender.changed() == []


def test_one_lane_without_room_leaves_the_others_theirs(edge):
    edge.sender.open("a")
    edge.sender.open("b")
    for chunk in CHUNKS:
        edge.sender.send("a", chunk)
    assert edge.sender.room("a") == 0
    assert edge.sender.room("b") == 4


def test_a_lane_is_drained_when_its_end_is_consumed(edge):
    edge.sender.open("a")
    edge.sender.send("a", CHUNKS[0])
    edge.sender.end("a")
    received(edge)
    assert not edge.sender.drained("a")
    edge.receiver.consumed("a")
    edge.receiver.flush()
    edge.sender.changed()
    assert not edge.sender.drained("a")
    edge.receiver.consumed("a")
    edge.receiver.flush()
    assert edge.sender.changed() == ["a"]
    assert edge.sender.drained("a")


def test_after_a_hang_up_chunks_are_dropped_and_counted_and_the_lane_is_drained(edge):
    edge.sender.open("a")
    edge.sender.send("a", CHUNKS[0])
    edge.sender.flush()
    edge.receiver.hang_up("a")
    edge.receiver.flush()
    assert edge.sender.changed() == ["a"]
    assert edge.sender.drained("a")
    edge.sender.send("a", CHUNKS[1])
    edge.sender.end("a")
    assert received(edge) == []
    assert edge.stats().num_dropped == 1
    assert edge.stats().num_unread == 0


def test_a_chunk_for_a_lane_that_is_not_open_is_dropped_and_counted(edge):
    edge.sender.send("a", CHUNKS[0])
    edge.sender.end("a")
    assert received(edge) == []
    assert edge.stats().num_dropped == 1


def test_nothing_is_lost_while_both_ends_are_there(edge):
    edge.sender.open("a")
    edge.sender.send("a", CHUNKS[0])
    received(edge)
    assert not edge.sender.lost("a")
    assert not edge.sender.lost("b")


def test_closing_a_lane_early_frees_what_is_unread_and_tells_the_receiver(edge):
    edge.sender.open("a")
    edge.sender.open("b")
    edge.sender.send("a", CHUNKS[0])
    edge.sender.send("b", CHUNKS[1])
    edge.sender.close("a")
    items = received(edge)
    assert items[-1] == ("a", LaneSignal.FAIL)
    assert ("b", CHUNKS[1]) in items
    assert edge.stats().num_lanes == 1


def test_closing_a_drained_lane_leaves_nothing_behind(edge):
    edge.sender.open("a")
    edge.sender.end("a")
    received(edge)
    edge.receiver.consumed("a")
    edge.receiver.flush()
    edge.sender.changed()
    edge.sender.close("a")
    edge.receiver.hang_up("a")
    assert received(edge) == []
    assert edge.stats().num_lanes == 0


def test_a_flush_wakes_the_other_end_once_for_everything(edge):
    edge.sender.open("a")
    edge.sender.flush()
    assert edge.rung == []
    edge.sender.send("a", CHUNKS[0])
    edge.sender.send("a", CHUNKS[1])
    edge.sender.flush()
    edge.sender.flush()
    assert edge.rung == ["receiver"]
    edge.receiver.receive()
    edge.receiver.consumed("a")
    edge.receiver.consumed("a")
    edge.receiver.flush()
    edge.receiver.flush()
    assert edge.rung == ["receiver", "sender"]


def test_a_new_sender_has_no_lanes_and_says_so_after_everything_that_came_before(edge):
    edge.sender.open("a")
    edge.sender.send("a", CHUNKS[0])
    edge.sender.reset()
    assert received(edge)[-1] == ("", LaneSignal.RESET)


def test_close_frees_everything_and_may_come_twice(edge):
    edge.sender.open("a")
    edge.sender.send("a", CHUNKS[0])
    edge.close()
    edge.close()
    assert edge.stats().num_lanes == 0
    assert edge.stats().num_unread == 0
