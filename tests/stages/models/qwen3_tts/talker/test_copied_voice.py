"""A voice that is copied in parts."""

import pytest

from stages.models.qwen3_tts.talker.copied_voice import CopiedVoice


def test_a_voice_is_there_after_its_last_part_and_nothing_is_done_again():
    done = []

    def copy():
        for part in (1, 2):
            done.append(part)
            yield
        return "speaker", "frames"

    voice = CopiedVoice("", 0, copy)
    for is_copied in (False, False, True, True):
        voice.copy_on()
        assert voice.is_copied is is_copied
    assert (voice.speaker, voice.frames) == ("speaker", "frames")
    assert done == [1, 2]


def test_what_failed_is_tried_from_the_start_by_the_next_who_asks():
    failures = [MemoryError()]

    def copy():
        yield
        if failures:
            raise failures.pop()
        return "speaker", "frames"

    voice = CopiedVoice("", 0, copy)
    voice.copy_on()
    with pytest.raises(MemoryError):
        voice.copy_on()
    voice.copy_on()
    assert not voice.is_copied
    voice.copy_on()
    assert voice.is_copied
