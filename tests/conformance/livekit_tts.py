"""LiveKit's OpenAI TTS plugin, unchanged: audio files for tts-1, events for newer models."""

import asyncio

from livekit.plugins import openai

TEXT = "One two three four five."
SECONDS = 0.02 * len(TEXT.replace(" ", ""))
CODEC_DELAY_S = 0.1
# The plugin's decoder opens files with `nobuffer`. It so loses the frame that it probed, of every
# Ogg and FLAC file: 20 ms and 96 ms.
LOST_S = {"opus": 0.02, "flac": 0.096}


def speak(target, model, **options):
    """The audio as the plugin decodes it."""

    async def main():
        tts = openai.TTS(
            base_url=f"{target.url}/v1", api_key=target.key, model=model, voice="alloy", **options
        )
        try:
            return await tts.synthesize(TEXT).collect()
        finally:
            await tts.aclose()

    return asyncio.run(main())


def assert_length(frame, seconds):
    assert (frame.sample_rate, frame.num_channels) == (24_000, 1)
    assert seconds - 0.01 < frame.duration < seconds + CODEC_DELAY_S, frame.duration


def check_audio_files_in_each_format(target):
    for name in ("mp3", "opus", "aac", "flac", "wav", "pcm"):
        assert_length(speak(target, "tts-1", response_format=name), SECONDS - LOST_S.get(name, 0))


def check_events_in_each_format(target):
    for name in ("mp3", "opus", "aac", "flac", "wav", "pcm"):
        frame = speak(target, "gpt-4o-mini-tts", response_format=name)
        assert_length(frame, SECONDS - LOST_S.get(name, 0))


def check_speed_and_instructions(target):
    assert_length(speak(target, "gpt-4o-mini-tts", speed=2.0, instructions="Whisper."), SECONDS / 2)
