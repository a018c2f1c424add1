"""Uploaded recordings of voices: checks and decodes them, and stores them for voice cloning.

Only the uploaded bytes are read: container formats that can refer to other files or URLs are not
opened. The name of a voice cannot contain a path (`openapi/voice.py`).
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import anyio
import av
import numpy as np

from openapi.problems import Problem
from server.errors import RefusedError, UnknownVoiceError
from server.serving.voices import OPENAI_VOICES
from stages.contract.messages import OUTPUT_RATE_HZ

Samples = np.ndarray[Any, np.dtype[np.float32]]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openapi.voice import VoiceUpload
    from server.serving.service import Service
    from stages.contract.model import VoiceUploads

MIN_RECORDING_S = 1.0
# Formats that contain their audio. Playlists and lists of files are left out.
DEMUXERS = "aac,flac,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mp3,ogg,wav"
NO_CLONING_MODEL = Problem(
    "Voices cannot be uploaded: no model of this server can clone voices "
    "(docs/voices.md says which models can).",
    "name",
    "unsupported_value",
)


class Recordings:
    """Adds and removes the recordings of one server, one change at a time."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = anyio.Lock()

    async def add(self, upload: VoiceUpload, file: bytes) -> None:
        """Store a recording under its name. Raises RefusedError, UnavailableError."""
        uploads = self._uploads()
        settings = self._service.settings
        samples = await anyio.to_thread.run_sync(decode_recording, file, settings.max_recording_s)
        async with self._lock:
            names = await anyio.to_thread.run_sync(uploads.names)
            self._check_name(upload.name, names)
            await anyio.to_thread.run_sync(
                uploads.add,
                upload.name,
                samples,
                upload.transcript or "",
                upload.language or "",
            )
            await self._service.reload_voices()

    async def remove(self, name: str) -> None:
        """Remove a recording. Raises UnknownVoiceError, UnavailableError."""
        try:
            uploads = self._uploads()
        except RefusedError:
            raise UnknownVoiceError(name) from None
        async with self._lock:
            if name not in await anyio.to_thread.run_sync(uploads.names):
                raise UnknownVoiceError(name)
            await anyio.to_thread.run_sync(uploads.remove, name)
            await self._service.reload_voices()

    def _uploads(self) -> VoiceUploads:
        for served in self._service.models:
            if served.model.uploads is not None:
                return served.model.uploads
        raise RefusedError(NO_CLONING_MODEL)

    def _check_name(self, name: str, uploaded: Sequence[str]) -> None:
        voices = {voice.name for served in self._service.models for voice in served.voices.known}
        if name in {*voices, *uploaded, *OPENAI_VOICES}:
            message = "Invalid 'name': there is already a voice with this name. Choose another one."
            raise RefusedError(Problem(message, "name", "voice_exists"))
        if len(uploaded) >= (limit := self._service.settings.max_recordings):
            message = f"This server stores at most {limit} uploaded voices. Delete one first."
            raise RefusedError(Problem(message, "name", "too_many_voices"))


def decode_recording(file: bytes, max_s: float) -> Samples:
    """The samples of an audio file, mono at 24 kHz, as float32.

    Raises RefusedError if the file is not audio, shorter than 1 s, or longer than `max_s`.
    """
    try:
        samples = _decode(file, int(max_s * OUTPUT_RATE_HZ))
    except (av.FFmpegError, IndexError, ValueError):
        raise _refused("it is not an audio file that can be decoded", "invalid_audio") from None
    if len(samples) < MIN_RECORDING_S * OUTPUT_RATE_HZ:
        raise _refused(f"it is shorter than {MIN_RECORDING_S:g} s", "audio_too_short")
    if len(samples) > max_s * OUTPUT_RATE_HZ:
        raise _refused(f"it is longer than {max_s:g} s", "audio_too_long")
    return samples


def _decode(file: bytes, max_samples: int) -> Samples:
    """Stops at the first frame that goes over `max_samples`."""
    options = {"format_whitelist": DEMUXERS, "protocol_whitelist": ""}
    parts: list[Samples] = [np.zeros(0, np.float32)]
    with av.open(io.BytesIO(file), "r", options=options) as container:
        resampler = av.AudioResampler("flt", "mono", OUTPUT_RATE_HZ)
        num_samples = 0
        for frame in container.decode(container.streams.audio[0]):
            parts += [part.to_ndarray()[0] for part in resampler.resample(frame)]
            num_samples += len(parts[-1])
            if num_samples > max_samples:
                break
        parts += [part.to_ndarray()[0] for part in resampler.resample(None)]
    return np.concatenate(parts)


def _refused(reason: str, code: str) -> RefusedError:
    return RefusedError(Problem(f"Invalid 'audio_sample': {reason}.", "audio_sample", code))
