"""An app over scripted stages: tests script their reports, and see what was submitted."""

from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import anyio
import numpy as np

from server.app import create_app
from server.config.settings import Settings
from server.serving.service import Service
from stages.contract.messages import (
    AudioChunk,
    AudioEnd,
    SpeechEnd,
    StageOutput,
    TextChunk,
    TextEnd,
)
from stages.contract.model import ModelSpec, VoiceSpec
from stages.contract.pipeline import AUDIO_ONLY, TEXT_AND_AUDIO, TEXT_ONLY, Medium, Pipeline
from stages.contract.request_settings import fill
from stages.contract.roles import Role
from stages.models.fake.family import is_speakable
from stages.models.fake.prompts import FakePrompts
from stages.models.fake.settings import FakeSettings
from stages.models.registry import build
from stages.runtime.placement import BuildConfig

FAKE_SETTINGS = partial(fill, FakeSettings)
SPEAKING = (Role.TALKER, Role.CODE2WAV)
SPEECH = {"model": "speaker", "input": "Hello there.", "voice": "low", "response_format": "pcm"}
CHAT = {"model": "chatter", "messages": [{"role": "user", "content": "Hello"}]}
SPOKEN = {**CHAT, "modalities": ["text", "audio"], "audio": {"voice": "low", "format": "pcm16"}}


class ScriptedStage:
    """A stage handle. Each submit is answered with the reports of `script`. `aborted`: it was."""

    def __init__(self, *script):
        self.script = script
        self.submitted = []
        self.aborted = anyio.Event()
        self.started = anyio.Event()
        self.reports_of = {}  # where a request was submitted, unless it was here
        self._more = anyio.Event()
        self._send, self._reports = anyio.create_memory_object_stream(float("inf"))

    async def submit(self, request_id, stage_input):
        self.submitted.append((request_id, stage_input))
        for item in self.script:
            self.report(item)
        self.started.set()
        self._more.set()
        self._more = anyio.Event()

    async def has(self, count):
        """Wait until `count` requests were submitted."""
        while len(self.submitted) < count:
            await self._more.wait()

    def report(self, item, index=-1):
        """Report data, an end or a failure of the last submitted request, or of another one."""
        request_id = self.submitted[index][0]
        ends = isinstance(item, TextEnd | AudioEnd | SpeechEnd)
        if isinstance(item, Exception):
            output = StageOutput(request_id, None, True, item)
        else:
            output = StageOutput(request_id, item, ends)
        self.reports_of.get(request_id, self._send).send_nowait(output)

    async def next_output(self):
        return await self._reports.receive()

    async def abort(self, _request_id):
        self.aborted.set()

    def close(self):
        self._send.close()
        self._reports.close()


class OtherPosition:
    """The handle of another position of a scripted stage; its reports are read here."""

    def __init__(self, stage):
        self._stage = stage
        self._send, self._reports = anyio.create_memory_object_stream(float("inf"))

    async def submit(self, request_id, stage_input):
        self._stage.reports_of[request_id] = self._send
        await self._stage.submit(request_id, stage_input)

    async def next_output(self):
        return await self._reports.receive()

    async def abort(self, request_id):
        await self._stage.abort(request_id)

    def close(self):
        self._send.close()
        self._reports.close()


class ScriptedDeployment:
    """Scripted stages as a speech model, a chat model, and a model that only writes text."""

    def __init__(self, thinker, talker, sounder, find_voices=None, speech_settings=FAKE_SETTINGS):
        self.is_up = True
        self.stages = ()
        self.speech = talker, sounder
        self.chat = thinker, ScriptedStage(SpeechEnd(1)), ScriptedStage(*sounder.script)
        self.writer = (ScriptedStage(*thinker.script),)
        voices = VoiceSpec("low", "en-US"), VoiceSpec("high", "en-GB")
        self.text = (OtherPosition(thinker),)
        text = Pipeline(Medium.TEXT, TEXT_ONLY, (Role.THINKER,), self.text, frozenset({0}))
        self.models = (
            _model(
                "speaker",
                ("tts-1",),
                (Pipeline(Medium.TEXT, AUDIO_ONLY, SPEAKING, self.speech, frozenset({1})),),
                voices,
                speech_settings,
                find_voices=find_voices,
            ),
            _model(
                "chatter",
                ("gpt-audio",),
                (
                    text,
                    Pipeline(
                        Medium.TEXT,
                        TEXT_AND_AUDIO,
                        (Role.THINKER, *SPEAKING),
                        self.chat,
                        frozenset({0, 2}),
                    ),
                ),
                voices,
                prompts=FakePrompts(),
            ),
            _model(
                "org/writer",
                (),
                (replace(text, handles=self.writer),),
                (),
                prompts=FakePrompts(),
            ),
        )

    async def start(self, timeout_s):
        pass

    async def stop(self):
        self.is_up = False
        for stage in {*self.speech, *self.chat, *self.text, *self.writer}:
            stage.close()


def _model(model_id, aliases, pipelines, voices, speech_settings=FAKE_SETTINGS, **more):
    return ModelSpec(
        model_id,
        aliases,
        pipelines,
        voices,
        is_speakable,
        speech_settings,
        **more,
    )


def tone(num_samples, value=1):
    return AudioChunk(np.full(num_samples, value, np.int16), 24_000)


HELLO = (TextChunk("Hi", 1), TextChunk(" there", 1), TextEnd("stop", 5, 2))
SOUND = (tone(2400, 1), tone(2401, 2), AudioEnd(4801, 5))


@asynccontextmanager
async def scripted(
    thinker=HELLO, sounder=SOUND, find_voices=None, speech_settings=FAKE_SETTINGS, **settings
):
    """The app, and the deployment behind it."""
    stages = ScriptedStage(*thinker), ScriptedStage(SpeechEnd(1)), ScriptedStage(*sounder)
    deployment = ScriptedDeployment(*stages, find_voices, speech_settings)
    service = Service(Settings(**settings), lambda: deployment)
    async with service.running():
        await service.settled.wait()
        assert service.failure is None
        yield create_app(service), deployment


def fake_service(**settings):
    """A service over the fake deployment."""
    chosen = Settings(model="fake", **settings)
    return Service(chosen, lambda: build(["fake"], BuildConfig(chosen.cache_dir)))


@asynccontextmanager
async def fake():
    """The app over the fake deployment."""
    service = fake_service()
    async with service.running():
        await service.settled.wait()
        assert service.failure is None
        yield create_app(service)
