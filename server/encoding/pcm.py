"""Samples as bytes: 16-bit little-endian PCM, bare or behind a RIFF header.

A WAV file that is streamed does not know its length and says 0xFFFFFFFF; one that is whole says
the truth. Nothing follows the data.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from stages.contract.messages import OUTPUT_RATE_HZ

if TYPE_CHECKING:
    from stages.contract.messages import AudioChunk

SAMPLE_BYTES = 2
BYTES_PER_S = OUTPUT_RATE_HZ * SAMPLE_BYTES
UNKNOWN_SIZE = 0xFFFFFFFF
WAV_HEADER_BYTES = 44


def pcm(chunk: AudioChunk) -> bytes:
    """The samples of a chunk. Raises ValueError at another rate than the one that is promised."""
    if chunk.rate_hz != OUTPUT_RATE_HZ:
        raise ValueError(f"audio at {chunk.rate_hz} Hz where {OUTPUT_RATE_HZ} Hz is promised")
    return chunk.samples.astype("<i2", copy=False).tobytes()


def wav_header(num_data_bytes: int | None) -> bytes:
    """The 44 bytes before the samples; `None` for a length that is not known yet."""
    if num_data_bytes is None:
        riff_bytes = data_bytes = UNKNOWN_SIZE
    else:
        riff_bytes, data_bytes = WAV_HEADER_BYTES - 8 + num_data_bytes, num_data_bytes
    fmt = struct.pack(
        "<HHIIHH", 1, 1, OUTPUT_RATE_HZ, OUTPUT_RATE_HZ * SAMPLE_BYTES, SAMPLE_BYTES, 16
    )
    riff = b"RIFF" + struct.pack("<I", riff_bytes) + b"WAVE"
    return riff + b"fmt " + struct.pack("<I", 16) + fmt + b"data" + struct.pack("<I", data_bytes)
