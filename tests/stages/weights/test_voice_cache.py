"""The voice cache: least recently used idle voices are evicted; threads share one object."""

import gc

from stages.contract.messages import VoiceFile
from stages.weights.voice_cache import VoiceCache, WeakCache


def test_idle_voices_beyond_the_limit_are_evicted():
    loaded = []

    def load(path):
        loaded.append(str(path))
        return str(path)

    voices = VoiceCache(load, max_loaded=2)
    a, b, c = (VoiceFile(name, 1) for name in "abc")
    for file in (a, b):
        voices.open(file)
        voices.close(file)
    assert voices.open(a) == "a"  # most recently used now
    voices.open(c)
    assert len(voices) == 2  # b was evicted
    voices.open(b)
    assert len(voices) == 3  # all are in use
    voices.close(a)
    assert len(voices) == 2
    assert loaded == ["a", "b", "c", "b"]
    voices.close(c)
    voices.close(b)
    assert len(voices) == 2


class Voice:
    """An object that a weak reference can point to."""


def test_an_object_is_shared_while_somebody_holds_it():
    cache = WeakCache()
    voice = cache.get("a", Voice)
    assert cache.get("a", Voice) is voice
    assert cache.get("b", Voice) is not voice
    del voice
    gc.collect()
    made = []
    cache.get("a", lambda: made.append("a") or Voice())
    assert made == ["a"]
