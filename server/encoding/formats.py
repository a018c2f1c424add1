"""Samples as files: one encoder for each format, fed while the audio is generated.

Every chunk gives bytes as soon as the codec allows, and the end loses nothing. The output does not
depend on how the audio was cut into chunks, as the codecs collect their own frames. A streamed file
does not contain its length; a whole file does. Only libraries are used, no external programs.
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
    """Encodes one file. Samples are 16-bit little-endian PCM, 24 kHz, mono."""

    def head(self) -> bytes:
        """The bytes before the first samples; may be empty. Called once, before all else."""

    def feed(self, samples: bytes) -> bytes:
        """Add samples. Returns the bytes of the file that are ready; may be empty."""

    def flush(self) -> bytes:
        """The rest of the file. Nothing may be fed after it."""

    def close(self) -> None:
        """Free all resources. May be called at any time, and more than once."""


class PassthroughEncoder:
    """The samples themselves after a fixed head: PCM, and WAV of unknown length."""

    def __init__(self, head: bytes) -> None:
        self._head = head

    def head(self) -> bytes:
        """The head."""
        return self._head

    def feed(self, samples: bytes) -> bytes:
        """The samples, unchanged."""
        return samples

    def flush(self) -> bytes:
        """Nothing is left."""
        return b""

    def close(self) -> None:
        """Nothing to free."""


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec of FFmpeg, its container, and the options of the container."""

    container: str
    name: _AudioCodecName
    bit_rate: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)


class _StreamSink:
    """A file that cannot seek. Written bytes are taken out with `take`."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: Any) -> int:
        """Append `data`. The muxer calls this."""
        self._written += data
        return len(data)

    def take(self) -> bytes:
        """The bytes written since the last call."""
        taken = bytes(self._written)
        self._written.clear()
        return taken


class PyAvEncoder:
    """A codec in its container. Raises `av.FFmpegError` if it cannot be opened."""

    def __init__(self, codec: Codec) -> None:
        self._sink = _StreamSink()
        self._muxer = _Muxer(codec, self._sink)

    def head(self) -> bytes:
        """The header that the muxer wrote on opening."""
        return self._sink.take()

    def feed(self, samples: bytes) -> bytes:
        """Encode samples; returns what the muxer wrote."""
        self._muxer.feed(samples)
        return self._sink.take()

    def flush(self) -> bytes:
        """Encode what the codec still holds, and write the trailer."""
        self._muxer.finish()
        return self._sink.take()

    def close(self) -> None:
        """Close the container."""
        self._muxer.close()


class _Muxer:
    """Encodes samples into a sink. If the sink can seek, lengths are filled in at the end."""

    def __init__(self, codec: Codec, sink: _StreamSink | io.BytesIO) -> None:
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
        if not self._fed:  # without any frame most formats give an invalid file
            self.feed(bytes(SAMPLE_BYTES))
        self._container.mux(self._stream.encode(None))
        self.close()

    def close(self) -> None:
        self._container.close()


# Without these options Ogg buffers pages and draws a random serial number, FLAC starts with 8 kB of
# padding, and MP3 starts with a tag.
OGG = {"page_duration": "20000", "flush_packets": "1", "fflags": "+bitexact"}
CODECS: Mapping[str, Codec] = {
    "mp3": Codec("mp3", "libmp3lame", 128_000, {"id3v2_version": "0"}),
    "opus": Codec("ogg", "libopus", 64_000, OGG),
    "aac": Codec("adts", "aac", 96_000),
    "flac": Codec("flac", "flac", None, {"metadata_header_padding": "0", "flush_packets": "1"}),
}


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of streamed audio. `in_thread`: encoding takes too long for the event loop."""

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
    """All samples as one file, which contains its length if the format has a field for it.

    `name` is one of `FORMATS`, or `pcm16`. Takes milliseconds for each second of audio.
    """
    if name in ("pcm", "pcm16"):
        return samples
    if name == "wav":
        return wav_header(len(samples)) + samples
    sink = io.BytesIO()
    with closing(_Muxer(CODECS[name], sink)) as muxer:
        muxer.feed(samples)
        muxer.finish()
    return sink.getvalue()
