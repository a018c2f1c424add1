"""What a face tells its worker."""

import anyio.lowlevel

from stages.errors import WorkerDiedError
from stages.executors.control import Credit
from stages.executors.face import Face


async def test_credit_is_told_once_a_turn():
    told = []
    face = Face(0, told.append)
    face.worker_started()
    face.credit("a", 1)
    face.credit("b", 1)
    face.credit("a", 1)
    assert told == []
    await anyio.lowlevel.checkpoint()
    face.credit("a", 1)
    await anyio.lowlevel.checkpoint()
    assert told == [Credit({"a": 2, "b": 1}), Credit({"a": 1})]


async def test_a_worker_that_died_is_told_nothing_and_the_next_one_only_what_is_new():
    told = []
    face = Face(0, told.append)
    face.worker_started()
    face.credit("a", 1)
    face.worker_ended(WorkerDiedError("gone"))
    await anyio.lowlevel.checkpoint()
    face.worker_started()
    face.credit("b", 1)
    await anyio.lowlevel.checkpoint()
    assert told == [Credit({"b": 1})]
