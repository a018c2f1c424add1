"""Pipecat's OpenAI services for speech and for language models, unchanged."""

import asyncio

from loguru import logger
from pipecat.frames.frames import LLMContextFrame, LLMTextFrame, TTSAudioRawFrame, TTSSpeakFrame
from pipecat.pipeline.worker import PipelineParams
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.openai.tts import OpenAITTSService
from pipecat.tests.utils import run_test

TEXT = "One two three four five."
PCM_BYTES = 2 * 480 * len(TEXT.replace(" ", ""))

logger.remove()


def frames_of(service, frame):
    """The frames that leave a pipeline with only this service."""
    params = PipelineParams(audio_out_sample_rate=24_000)
    down, up = asyncio.run(run_test(service, frames_to_send=[frame], pipeline_params=params))
    assert not [frame for frame in up if type(frame).__name__ == "ErrorFrame"], up
    return down


def address_of(target):
    return {"api_key": target.key, "base_url": f"{target.url}/v1"}


def check_speech(target):
    settings = OpenAITTSService.Settings(model="tts-1", voice="nova")
    frames = frames_of(
        OpenAITTSService(**address_of(target), settings=settings), TTSSpeakFrame(TEXT)
    )
    sound = b"".join(frame.audio for frame in frames if isinstance(frame, TTSAudioRawFrame))
    assert len(sound.rstrip(b"\0")) > PCM_BYTES - 100
    assert len(sound) >= PCM_BYTES


def check_speech_with_speed_and_instructions(target):
    settings = OpenAITTSService.Settings(voice="nova", speed=2.0, instructions="Whisper.")
    frames = frames_of(
        OpenAITTSService(**address_of(target), settings=settings), TTSSpeakFrame(TEXT)
    )
    sound = b"".join(frame.audio for frame in frames if isinstance(frame, TTSAudioRawFrame))
    assert len(sound.rstrip(b"\0")) > PCM_BYTES / 2 - 500


def check_a_chat(target):
    settings = OpenAILLMService.Settings(
        model="fake-chat", temperature=0.5, max_completion_tokens=50
    )
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello big world"},
    ]
    frame = LLMContextFrame(LLMContext(messages))
    frames = frames_of(OpenAILLMService(**address_of(target), settings=settings), frame)
    text = "".join(frame.text for frame in frames if isinstance(frame, LLMTextFrame))
    assert text == "You said: hello big world", text
