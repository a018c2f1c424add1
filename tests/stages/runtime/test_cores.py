"""How many threads a worker may use, and who waits for first sounds."""

import threading

from stages.runtime.cores import Cores, FirstSounds


def test_a_worker_that_alone_has_work_may_use_all_cores():
    cores = Cores(2)
    cores.enter("thinker")
    cores.enter("thinker")
    assert cores.num_threads() == 2


def test_beside_another_worker_it_may_use_one_thread_until_that_one_leaves():
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


def first_sounds(patience_s):
    sounds = FirstSounds(patience_s)
    sounds.made_here = True
    return sounds


def test_nobody_waits_for_sounds_that_another_process_makes():
    sounds = FirstSounds(patience_s=1e6)
    sounds.begin("a")
    assert sounds.num_coming == 0
    sounds.give_way()


def test_nobody_waits_when_no_first_sound_is_coming():
    sounds = first_sounds(patience_s=1e6)
    sounds.give_way()
    sounds.begin("a")
    sounds.end("a")
    sounds.end("a")
    sounds.give_way()


def test_others_wait_until_all_first_sounds_are_ready():
    sounds = first_sounds(patience_s=1e6)
    order = []
    sounds.begin("a")
    sounds.begin("b")

    def others():
        sounds.give_way()
        order.append("others")

    thread = threading.Thread(target=others)
    thread.start()
    sounds.end("a")
    order.append("a is ready")
    order.append("b is ready")
    sounds.end("b")
    thread.join()
    assert order == ["a is ready", "b is ready", "others"]


def test_others_wait_only_once_for_a_sound_that_takes_too_long():
    sounds = first_sounds(patience_s=0.0)
    sounds.begin("a")
    sounds.give_way()
    assert sounds.num_coming == 0
