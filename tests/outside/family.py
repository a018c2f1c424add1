"""A family outside the tree: it chats and speaks in Morse code, with three stages of its own.

It has a chunk type, a request setting, captions and voice uploads of its own. Nothing in `server/`
or `stages/` knows of it: the test adds one line to the registry.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stages.contract.messages import (
    OUTPUT_RATE_HZ,
    AudioChunk,
    AudioEnd,
    Caption,
    SpeechEnd,
    TextChunk,
    TextEnd,
    TextSpan,
)
from stages.contract.model import ModelSpec, VoiceSpec
from stages.contract.pipeline import AUDIO_ONLY, TEXT_AND_AUDIO, TEXT_ONLY, Medium
from stages.contract.request_settings import SettingError, fill
from stages.contract.roles import Role
from stages.contract.stage import Emit
from stages.models.fake.prompts import FakePrompts
from stages.runtime.builder import SpeechStages
from stages.runtime.deployment import PipelineStage
from stages.runtime.family import WeightFile

SIGNS = {"e": ".", "t": "-", "a": ".-", "i": "..", "n": "-."}
DOT_SAMPLES = OUTPUT_RATE_HZ * 60 // 1000


@dataclass(frozen=True)
class MorseSettings:
    """`pitch_hz` is the tone; it is this family's own."""

    pitch_hz: float = 600.0


def morse_settings(values, extra):
    """The settings of a request. Raises SettingError for a tone that nobody hears."""
    settings = fill(MorseSettings, values, extra)
    if not 100 <= settings.pitch_hz <= 4000:
        raise SettingError("pitch_hz", "it must be from 100 to 4000")
    return settings


@dataclass(frozen=True)
class KeyedChunk:
    """A chunk type of this family: when the key is down, in dots, and for which letter."""

    keyed: tuple[int, ...]
    letter: int


@dataclass
class Waiting:
    """One request of a stage."""

    params: Any
    items: deque = field(default_factory=deque)
    ended: bool = False
    made: int = 0


class MorseStage:
    """What the three stages share: requests by id, and one item of input per step."""

    def __init__(self):
        self._requests = {}

    def load(self):
        pass

    def warm(self):
        pass

    def open(self, request_id, params):
        self._requests[request_id] = Waiting(params)

    def feed(self, request_id, chunk):
        self._requests[request_id].items.extend(self.items_of(chunk))

    def items_of(self, chunk):
        return [chunk]

    def end_input(self, request_id):
        self._requests[request_id].ended = True

    def wants_chunk(self, request_id):
        return len(self._requests[request_id].items) < 4

    def ready(self, request_id, credit):
        request = self._requests[request_id]
        return credit.both > 0 and bool(request.items or request.ended)

    def step(self, credit):
        for request_id in credit:
            request = self._requests[request_id]
            if request.items:
                yield Emit(request_id, self.chunk_of(request, request.items.popleft()))
            else:
                yield Emit(request_id, end=self.end_of(request))

    def close(self, request_id):
        del self._requests[request_id]


class Thinker(MorseStage):
    """Answers "e t"."""

    def open(self, request_id, params):
        super().open(request_id, params)
        self._requests[request_id].items.extend(["e", " t"][: params.max_tokens])
        self._requests[request_id].ended = True

    def chunk_of(self, request, text):
        request.made += 1
        return TextChunk(text, 1)

    def end_of(self, request):
        prompt = FakePrompts().tokenize(request.params.prompt)
        return TextEnd("stop", len(prompt), request.made)


class Keyer(MorseStage):
    """Letters to keyed dots."""

    def items_of(self, chunk):
        return list(chunk.text.lower())

    def chunk_of(self, request, letter):
        keyed = []
        for sign in SIGNS.get(letter, ""):
            keyed += [1] * (3 if sign == "-" else 1) + [0]
        request.made += 1
        return KeyedChunk((*keyed, 0, 0), request.made - 1)

    def end_of(self, request):
        return SpeechEnd(request.made)


class Beeper(MorseStage):
    """Keyed dots to sound, with a caption for each letter."""

    def chunk_of(self, request, chunk):
        assert isinstance(chunk, KeyedChunk)
        key = np.repeat(np.array(chunk.keyed, np.float32), DOT_SAMPLES)
        begin, request.made = request.made, request.made + len(key)
        span = TextSpan(chunk.letter, chunk.letter + 1, begin, request.made)
        tone = np.sin(2 * np.pi * 600 * np.arange(len(key)) / OUTPUT_RATE_HZ)
        return AudioChunk((8000 * key * tone).astype(np.int16), OUTPUT_RATE_HZ, (Caption(span),))

    def end_of(self, request):
        return AudioEnd(request.made, -(-request.made // (OUTPUT_RATE_HZ // 20)))


@dataclass(frozen=True)
class KeyFolder:
    """Uploaded voices, which only have names."""

    folder: Path

    def names(self):
        return sorted(path.stem for path in self.folder.glob("*.key"))

    def add(self, name, samples, transcript, language):
        (self.folder / f"{name}.key").write_text(f"{len(samples)} {transcript} {language}")

    def remove(self, name):
        (self.folder / f"{name}.key").unlink()


class MorseFamily:
    """Found by `"model_type": "morse"` in a checkpoint's config.json."""

    kinds = ("morse",)
    speaks_with = ()
    has_collection = False

    def build(self, source, builder):
        speech = builder.speech_of(source)
        thinker = builder.stage(source, Role.THINKER, Thinker)
        thinks = PipelineStage(thinker, Role.THINKER, final=True)
        config = json.loads((Path(source) / "config.json").read_text())
        return [
            ModelSpec(
                model_id=config["id"],
                aliases=("tts-1", "gpt-audio"),
                pipelines=(
                    builder.pipeline(Medium.TEXT, AUDIO_ONLY, speech.steps),
                    builder.pipeline(Medium.TEXT, TEXT_ONLY, (thinks,)),
                    builder.pipeline(Medium.TEXT, TEXT_AND_AUDIO, (thinks, *speech.steps)),
                ),
                voices=speech.voices,
                speakable=speech.speakable,
                speech_settings=speech.speech_settings,
                prompts=FakePrompts(),
                find_voices=speech.find_voices,
                uploads=speech.uploads,
            )
        ]

    def speech(self, source, builder):
        keyer = builder.stage(source, Role.TALKER, Keyer)
        beeper = builder.stage(source, Role.CODE2WAV, Beeper)
        return SpeechStages(
            steps=(
                PipelineStage(keyer, Role.TALKER, final=False),
                PipelineStage(beeper, Role.CODE2WAV, final=True),
            ),
            voices=self.voices(source, builder.config),
            speakable=lambda text: any(letter in SIGNS for letter in text.lower()),
            speech_settings=morse_settings,
            find_voices=partial(self.voices, source, builder.config),
            uploads=KeyFolder(Path(source)),
        )

    def voices(self, source, config):
        names = ["key", *KeyFolder(Path(source)).names()]
        return tuple(VoiceSpec(name, "en-US") for name in names)

    def weights(self, source, config):
        return [WeightFile(Path(source) / "config.json")]

    def memory_bytes(self, source, config):
        return dict.fromkeys((Role.THINKER, Role.TALKER, Role.CODE2WAV), 1_000_000)


FAMILY = MorseFamily()
