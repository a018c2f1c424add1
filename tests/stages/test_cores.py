"""Who may use how many threads."""

from stages.cores import Cores


def test_one_that_has_work_alone_has_all_cores():
    cores = Cores(2)
    cores.enter("thinker")
    cores.enter("thinker")
    assert cores.num_threads() == 2


def test_beside_another_one_has_one_thread_until_that_leaves():
    cores = Cores(2)
    cores.enter("thinker")
    cores.enter("talker")
    assert cores.num_threads() == 1
    cores.leave("talker")
    cores.leave("talker")
    assert (cores.num_workers, cores.num_threads()) == (1, 2)


def test_a_limit_only_lowers():
    cores = Cores(2)
    cores.limit(4)
    assert cores.num_threads() == 2
    cores.limit(1)
    assert cores.num_threads() == 1
