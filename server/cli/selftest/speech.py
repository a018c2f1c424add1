"""Checks of speech: formats, speed, server-sent events, and refusals."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING

from server.cli.client.api import DONE
from server.cli.selftest.subject import SPEECH, expect, expect_error

if TYPE_CHECKING:
    from server.cli.selftest.subject import Subject

FIRST_BYTES = {
    "mp3": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
    "opus": (b"OggS",),
    "aac": (b"\xff\xf1", b"\xff\xf9"),
    "flac": (b"fLaC",),
    "wav": (b"RIFF",),
}
SPEED_TOLERANCE = 0.25  # as a share: voices do not shorten every sound alike
MIN_BYTES = 4800  # a tenth of a second; no voice says the text that fast


def check_speech_comes_in_each_format(subject: Subject) -> None:
    """Each file starts with the bytes that its format requires."""
    for name, first_bytes in FIRST_BYTES.items():
        file = subject.post(SPEECH, subject.speech(response_format=name)).content
        expect(file.startswith(first_bytes), f"the {name} file starts with {file[:4]!r}")


def check_pcm_is_whole_samples_and_not_silent(subject: Subject) -> None:
    """PCM is 16-bit samples, at least a tenth of a second of them."""
    pcm = subject.post(SPEECH, subject.speech(response_format="pcm")).content
    expect(len(pcm) % 2 == 0, f"{len(pcm)} bytes of audio are not whole 16-bit samples")
    expect(len(pcm) > MIN_BYTES, f"the audio is only {len(pcm)} bytes long")
    expect(any(pcm), "the audio is silent")


def check_speech_is_mp3_by_default(subject: Subject) -> None:
    """Without `response_format`, the content type is that of MP3."""
    content_type = subject.post(SPEECH, subject.speech()).headers.get("content-type", "")
    is_mp3 = content_type.startswith(("audio/mpeg", "audio/mp3"))
    expect(is_mp3, f"the content type is {content_type!r}")


def check_twice_the_speed_is_half_the_length(subject: Subject) -> None:
    """With `speed=2` the audio is half as long, give or take a quarter."""
    normal = subject.post(SPEECH, subject.speech(response_format="pcm")).content
    fast = subject.post(SPEECH, subject.speech(response_format="pcm", speed=2)).content
    ratio = 2 * len(fast) / len(normal)
    is_half = abs(ratio - 1) < SPEED_TOLERANCE
    expect(is_half, f"the audio has {ratio / 2:.2f} of its length at normal speed")


def check_speech_as_events(subject: Subject) -> None:
    """The events are deltas, then one `done` with the usage, then optionally `[DONE]`."""
    body = subject.speech(response_format="pcm", stream_format="sse")
    events = [json.loads(event) for event in subject.stream(SPEECH, body) if event != DONE]
    *deltas, last = [event["type"] for event in events]
    expect(set(deltas) == {"speech.audio.delta"}, f"the events before the last are {deltas}")
    expect(last == "speech.audio.done", f"the last event is {last}")
    expect(any(any(b64decode(event["audio"])) for event in events[:-1]), "the audio is silent")
    usage = events[-1]["usage"]
    total = usage["input_tokens"] + usage["output_tokens"]
    expect(usage["total_tokens"] == total, f"the usage does not add up: {usage}")


def check_invalid_speech_requests_are_refused(subject: Subject) -> None:
    """An empty input, a speed of 9 and an unknown format are each refused with 400."""
    invalid: dict[str, object] = {"input": "", "speed": 9, "response_format": "midi"}
    for name, value in invalid.items():
        subject.expect_refusal(SPEECH, subject.speech(**{name: value}))


def check_an_unknown_voice_is_refused(subject: Subject) -> None:
    """It is refused with 400."""
    subject.expect_refusal(SPEECH, subject.speech(voice="no-such-voice"))


def check_an_unknown_speech_model_is_refused(subject: Subject) -> None:
    """It is refused with 404 or, as some servers do, 400."""
    response = subject.client.post(SPEECH, json=subject.speech(model="no-such-model"))
    expect_error(response, 400 if response.status_code == 400 else 404)
