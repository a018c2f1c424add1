"""Recordings of voices that a model copies: checked, decoded, kept in the server's folder.

A recording is only ever what was uploaded: containers that can name other files or URLs are not
opened. Names are those that make a file name and nothing else.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import anyio
import av
import numpy as np

from openapi.problems import Problem
from server.errors import RefusedError, UnknownVoiceError
from server.serving.voices import OPENAI_VOICES
from stages.contract.messages import OUTPUT_RATE_HZ
from stages.models.qwen3_tts.talker.recordings import (
    Samples,
    find_recordings,
    remove_recording,
    write_recording,
)

if TYPE_CHECKING:
    from pathlib import Path

    from openapi.voice import VoiceUpload
    from server.serving.service import Service

MIN_S = 1.0
# Formats of sound that hold their sound: no playlists, no lists of files.
DEMUXERS = "aac,flac,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mp3,ogg,wav"
NOT_HERE = Problem(
    "No model that is served here copies voices (docs/qwen3-tts.md says which do).",
    "name",
    "unsupported_value",
)


class Recordings:
    """What the routes do with recordings. Those of one server wait for each other."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = anyio.Lock()

    async def add(self, upload: VoiceUpload, sound: bytes) -> None:
        """Keep a recording under its name. Raises RefusedError, UnavailableError."""
        folder = self._folder()
        settings = self._service.settings
        samples = await anyio.to_thread.run_sync(decoded, sound, settings.max_recording_s)
        async with self._lock:
            self._check_name(upload.name, folder)
            await anyio.to_thread.run_sync(
                write_recording,
                folder,
                upload.name,
                samples,
                upload.transcript or "",
                upload.language or "",
            )
            await self._service.reload_voices()

    async def remove(self, name: str) -> None:
        """Forget a recording. Raises UnknownVoiceError, UnavailableError."""
        try:
            folder = self._folder()
        except RefusedError:
            raise UnknownVoiceError(name) from None
        async with self._lock:
            if name not in {one.name for one in find_recordings(folder)}:
                raise UnknownVoiceError(name)
            await anyio.to_thread.run_sync(remove_recording, folder, name)
            await self._service.reload_voices()

    def _folder(self) -> Path:
        for served in self._service.models:
            if served.pipeline.recordings is not None:
                return served.pipeline.recordings
        raise RefusedError(NOT_HERE)

    def _check_name(self, name: str, folder: Path) -> None:
        kept = find_recordings(folder)
        taken = {voice.name for one in self._service.models for voice in one.voices.known}
        if name in {*taken, *(one.name for one in kept), *OPENAI_VOICES}:
            raise RefusedError(Problem("There is a voice of this name.", "name", "voice_exists"))
        if len(kept) >= self._service.settings.max_recordings:
            message = f"There are {len(kept)} voices, and more are not kept: delete one first."
            raise RefusedError(Problem(message, "name", "too_many_voices"))


def decoded(sound: bytes, max_s: float) -> Samples:
    """A file of sound as samples at 24 kHz, mono. Raises RefusedError where it is none, or is
    shorter or longer than a voice can be copied from."""
    try:
        samples = _samples(sound, int(max_s * OUTPUT_RATE_HZ))
    except (av.FFmpegError, IndexError, ValueError):
        raise _refused("this is no sound that can be read", "invalid_audio") from None
    if len(samples) < MIN_S * OUTPUT_RATE_HZ:
        raise _refused(f"it is shorter than {MIN_S:g} s", "audio_too_short")
    if len(samples) > max_s * OUTPUT_RATE_HZ:
        raise _refused(f"it is longer than {max_s:g} s", "audio_too_long")
    return samples


def _samples(sound: bytes, enough: int) -> Samples:
    """At most a frame more than `enough`."""
    options = {"format_whitelist": DEMUXERS, "protocol_whitelist": ""}
    parts: list[Samples] = [np.zeros(0, np.float32)]
    with av.open(io.BytesIO(sound), "r", options=options) as container:
        resampler = av.AudioResampler("flt", "mono", OUTPUT_RATE_HZ)
        count = 0
        for frame in container.decode(container.streams.audio[0]):
            parts += [part.to_ndarray()[0] for part in resampler.resample(frame)]
            count += len(parts[-1])
            if count > enough:
                break
        parts += [part.to_ndarray()[0] for part in resampler.resample(None)]
    return np.concatenate(parts)


def _refused(reason: str, code: str) -> RefusedError:
    return RefusedError(Problem(f"Invalid 'audio_sample': {reason}.", "audio_sample", code))
