"""A voice that is copied in parts."""

import pytest

from stages.models.qwen3_tts.talker.copied_voice import CopiedVoice


def test_a_voice_is_copied_after_its_last_part_and_no_part_is_repeated():
    done = []

    def copy():
        for part in (1, 2):
            done.append(part)
            yield
        return "speaker", "frames"

    voice = CopiedVoice("", 0, copy)
    for is_copied in (False, False, True, True):
        voice.copy_next_part()
        assert voice.is_copied is is_copied
    assert (voice.speaker, voice.frames) == ("speaker", "frames")
    assert done == [1, 2]


def test_a_failed_copy_starts_again_at_the_next_call():
    failures = [MemoryError()]

    def copy():
        yield
        if failures:
            raise failures.pop()
        return "speaker", "frames"

    voice = CopiedVoice("", 0, copy)
    voice.copy_next_part()
    with pytest.raises(MemoryError):
        voice.copy_next_part()
    voice.copy_next_part()
    assert not voice.is_copied
    voice.copy_next_part()
    assert voice.is_copied
