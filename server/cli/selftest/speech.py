"""Speech: formats, streams, events, and what is refused."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING

from server.cli.client.api import DONE
from server.cli.selftest.subject import SPEECH, error_in, expect

if TYPE_CHECKING:
    from server.cli.selftest.subject import Subject

STARTS = {
    "mp3": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
    "opus": (b"OggS",),
    "aac": (b"\xff\xf1", b"\xff\xf9"),
    "flac": (b"fLaC",),
    "wav": (b"RIFF",),
}
TOLERANCE = 0.25
MIN_BYTES = 4800  # a tenth of a second, which no voice says the text in


def check_speech_comes_in_each_format(subject: Subject) -> None:
    """By the first bytes of the file."""
    for name, starts in STARTS.items():
        found = subject.post(SPEECH, subject.speech(response_format=name)).content
        expect(found.startswith(starts), f"{name} begins with {found[:4]!r}")


def check_pcm_is_whole_samples_and_not_silent(subject: Subject) -> None:
    """16 bits each."""
    found = subject.post(SPEECH, subject.speech(response_format="pcm")).content
    expect(len(found) % 2 == 0, f"{len(found)} bytes are not whole samples")
    expect(len(found) > MIN_BYTES, f"it is {len(found)} bytes long")
    expect(any(found), "there is no sound in it")


def check_speech_is_mp3_where_no_format_is_named(subject: Subject) -> None:
    """By its type."""
    kind = subject.post(SPEECH, subject.speech()).headers.get("content-type", "")
    expect(kind.startswith(("audio/mpeg", "audio/mp3")), f"its type is {kind!r}")


def check_twice_the_speed_is_half_the_length(subject: Subject) -> None:
    """Within a quarter: voices slur."""
    usual = subject.post(SPEECH, subject.speech(response_format="pcm")).content
    fast = subject.post(SPEECH, subject.speech(response_format="pcm", speed=2)).content
    ratio = 2 * len(fast) / len(usual)
    expect(abs(ratio - 1) < TOLERANCE, f"it is {ratio / 2:.2f} of the length")


def check_speech_as_events(subject: Subject) -> None:
    """Deltas, then one end with the usage, then at most `[DONE]`."""
    ask = subject.speech(response_format="pcm", stream_format="sse")
    found = [json.loads(event) for event in subject.stream(SPEECH, ask) if event != DONE]
    kinds = [event["type"] for event in found]
    expect(kinds[:-1] and set(kinds[:-1]) == {"speech.audio.delta"}, f"its events are {kinds}")
    expect(kinds[-1] == "speech.audio.done", f"its last event is {kinds[-1]}")
    expect(any(any(b64decode(event["audio"])) for event in found[:-1]), "there is no sound in it")
    usage = found[-1]["usage"]
    both = usage["input_tokens"] + usage["output_tokens"]
    expect(usage["total_tokens"] == both, f"its usage does not add up: {usage}")


def check_speech_that_cannot_be_is_refused(subject: Subject) -> None:
    """With 400, whatever is wrong."""
    wrong: dict[str, object] = {"input": "", "speed": 9, "response_format": "midi"}
    for name, value in wrong.items():
        subject.refused(SPEECH, subject.speech(**{name: value}))


def check_a_voice_that_is_not_there_is_refused(subject: Subject) -> None:
    """With 400."""
    subject.refused(SPEECH, subject.speech(voice="no-such-voice"))


def check_a_speech_model_that_is_not_there_is_refused(subject: Subject) -> None:
    """With 404, or 400 as some say it."""
    reply = subject.client.post(SPEECH, json=subject.speech(model="no-such-model"))
    error_in(reply, 400 if reply.status_code == 400 else 404)
