"""Who may use how many threads."""

import threading

from stages.runtime.cores import Cores, FirstSounds


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


def first_sounds(patience_s):
    sounds = FirstSounds(patience_s)
    sounds.made_here = True
    return sounds


def test_nobody_waits_for_sounds_that_another_process_makes():
    sounds = FirstSounds(patience_s=1e6)
    sounds.begin("a")
    assert sounds.num_coming == 0
    sounds.give_way()


def test_nobody_waits_where_no_first_sound_is_coming():
    sounds = first_sounds(patience_s=1e6)
    sounds.give_way()
    sounds.begin("a")
    sounds.end("a")
    sounds.end("a")
    sounds.give_way()


def test_others_wait_until_all_that_come_are_heard():
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
    order.append("a is heard")
    order.append("b is heard")
    sounds.end("b")
    thread.join()
    assert order == ["a is heard", "b is heard", "others"]


def test_one_that_takes_too_long_is_waited_for_once():
    sounds = first_sounds(patience_s=0.0)
    sounds.begin("a")
    sounds.give_way()
    assert sounds.num_coming == 0
