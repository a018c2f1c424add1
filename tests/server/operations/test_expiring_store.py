"""What is kept for later is there until it expires, and never too much of it."""

from server.operations.shared.expiring_store import ExpiringStore


def test_a_value_is_there_until_it_expires():
    clock = [100.0]
    kept = ExpiringStore(now=lambda: clock[0])
    kept.put("a", "text", 4, expires_at=110)
    clock[0] = 109.9
    assert kept.get("a") == "text"
    clock[0] = 110.0
    assert kept.get("a") is None
    assert not kept.drop("a")


def test_of_too_many_the_oldest_go():
    kept = ExpiringStore(max_items=2, now=lambda: 0.0)
    for name in "abc":
        kept.put(name, name, 1, 1)
    assert [kept.get(name) for name in "abc"] == [None, "b", "c"]


def test_of_too_much_the_oldest_go():
    kept = ExpiringStore(max_chars=10, now=lambda: 0.0)
    kept.put("a", "a", 6, 1)
    kept.put("b", "b", 4, 1)
    assert kept.drop("b")
    kept.put("c", "c", 4, 1)
    assert kept.get("a") == "a"
    kept.put("d", "d", 1, 1)
    assert [kept.get(name) for name in "acd"] == [None, "c", "d"]
    kept.put("e", "e", 11, 1)
    assert kept.get("e") is None
