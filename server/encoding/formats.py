"""Samples as files: one encoder for each format, fed as the sound is made.

Bytes leave with every piece, and nothing is lost at the end. What comes out does not depend on how
the sound was cut: the codecs collect their own frames. A file that is streamed does not know its
length; one that is whole says it. Libraries only; no program is run.
"""

from __future__ import annotations

import io
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import av
import numpy as np

from server.encoding.pcm import SAMPLE_BYTES, wav_header
from stages.contract.messages import OUTPUT_RATE_HZ

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from av.audio import _AudioCodecName


class Encoder(Protocol):
    """Makes one file of one sound. Samples are 16-bit little-endian PCM, 24 kHz, mono."""

    def head(self) -> bytes:
        """What stands before the first samples. Asked for once, first; may be empty."""

    def feed(self, samples: bytes) -> bytes:
        """Take samples; the bytes of the file that are ready. May be empty."""

    def flush(self) -> bytes:
        """The rest of the file. Nothing is fed after it."""

    def close(self) -> None:
        """Free what is held. Safe at any time, and again."""


class PassthroughEncoder:
    """The samples themselves behind a fixed head: PCM, and WAV of unknown length."""

    def __init__(self, head: bytes) -> None:
        self._head = head

    def head(self) -> bytes:
        """See Encoder."""
        return self._head

    def feed(self, samples: bytes) -> bytes:
        """See Encoder."""
        return samples

    def flush(self) -> bytes:
        """See Encoder."""
        return b""

    def close(self) -> None:
        """See Encoder."""


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec of FFmpeg, the container around it, and that container's options."""

    container: str
    name: _AudioCodecName
    bit_rate: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)


class _Pipe:
    """A sink that cannot seek: what is written comes out once."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, piece: Any) -> int:
        """Called by the muxer."""
        self._written += piece
        return len(piece)

    def take(self) -> bytes:
        """What was written since the last call."""
        taken = bytes(self._written)
        self._written.clear()
        return taken


class PyAvEncoder:
    """A codec in its container. Raises `av.FFmpegError` where it cannot be set up."""

    def __init__(self, codec: Codec) -> None:
        self._pipe = _Pipe()
        self._coding = _Coding(codec, self._pipe)

    def head(self) -> bytes:
        """See Encoder."""
        return self._pipe.take()

    def feed(self, samples: bytes) -> bytes:
        """See Encoder."""
        self._coding.feed(samples)
        return self._pipe.take()

    def flush(self) -> bytes:
        """See Encoder."""
        self._coding.finish()
        return self._pipe.take()

    def close(self) -> None:
        """See Encoder."""
        self._coding.close()


class _Coding:
    """Codes samples into a sink. A sink that can seek gets its lengths filled in at the end."""

    def __init__(self, codec: Codec, sink: _Pipe | io.BytesIO) -> None:
        self._container = av.open(sink, "w", codec.container, options=dict(codec.options))
        self._stream = self._container.add_stream(codec.name, rate=OUTPUT_RATE_HZ, layout="mono")
        if codec.bit_rate is not None:
            self._stream.bit_rate = codec.bit_rate
        self._container.start_encoding()
        self._fed = False

    def feed(self, samples: bytes) -> None:
        if not samples:
            return
        self._fed = True
        array = np.frombuffer(samples, "<i2")[np.newaxis]
        frame = av.AudioFrame.from_ndarray(array, "s16", "mono")
        frame.sample_rate = OUTPUT_RATE_HZ
        self._container.mux(self._stream.encode(frame))

    def finish(self) -> None:
        if not self._fed:  # without any frame most of these are no valid files
            self.feed(bytes(SAMPLE_BYTES))
        self._container.mux(self._stream.encode(None))
        self.close()

    def close(self) -> None:
        self._container.close()


# Ogg keeps pages to itself unless told otherwise, and draws a serial number; FLAC begins with 8 kB
# of padding, and MP3 with a tag.
OGG = {"page_duration": "20000", "flush_packets": "1", "fflags": "+bitexact"}
CODECS: Mapping[str, Codec] = {
    "mp3": Codec("mp3", "libmp3lame", 128_000, {"id3v2_version": "0"}),
    "opus": Codec("ogg", "libopus", 64_000, OGG),
    "aac": Codec("adts", "aac", 96_000),
    "flac": Codec("flac", "flac", None, {"metadata_header_padding": "0", "flush_packets": "1"}),
}


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of streamed sound. `in_thread`: its work takes too long for the event loop."""

    media_type: str
    open: Callable[[], Encoder]
    in_thread: bool


FORMATS: Mapping[str, FileFormat] = {
    **{
        name: FileFormat(f"audio/{media}", partial(PyAvEncoder, CODECS[name]), in_thread=True)
        for name, media in (("mp3", "mpeg"), ("opus", "opus"), ("aac", "aac"), ("flac", "flac"))
    },
    "wav": FileFormat("audio/wav", partial(PassthroughEncoder, wav_header(None)), in_thread=False),
    "pcm": FileFormat("audio/pcm", partial(PassthroughEncoder, b""), in_thread=False),
}


def whole_file(samples: bytes, name: str) -> bytes:
    """All of a sound as one file that says its length where the format has a place for it.

    `name` is one of the formats, or `pcm16`. Takes milliseconds for each second of sound.
    """
    if name in ("pcm", "pcm16"):
        return samples
    if name == "wav":
        return wav_header(len(samples)) + samples
    sink = io.BytesIO()
    with closing(_Coding(CODECS[name], sink)) as coding:
        coding.feed(samples)
        coding.finish()
    return sink.getvalue()
