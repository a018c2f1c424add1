"""Samples as bytes: 16-bit little-endian PCM, with or without a RIFF header.

The length of a streamed WAV file is not known when its header is sent, so the header says
0xFFFFFFFF. In a whole file it has the real length. Nothing follows the data.
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
    """The samples of a chunk. Raises ValueError if its rate is not the output rate of 24 kHz."""
    if chunk.rate_hz != OUTPUT_RATE_HZ:
        raise ValueError(f"audio at {chunk.rate_hz} Hz, but the output rate is {OUTPUT_RATE_HZ} Hz")
    return chunk.samples.astype("<i2", copy=False).tobytes()


def wav_header(num_data_bytes: int | None) -> bytes:
    """The 44-byte header of a WAV file; None means that the length is not known yet."""
    if num_data_bytes is None:
        riff_bytes = data_bytes = UNKNOWN_SIZE
    else:
        riff_bytes, data_bytes = WAV_HEADER_BYTES - 8 + num_data_bytes, num_data_bytes
    fmt = struct.pack(
        "<HHIIHH", 1, 1, OUTPUT_RATE_HZ, OUTPUT_RATE_HZ * SAMPLE_BYTES, SAMPLE_BYTES, 16
    )
    riff = b"RIFF" + struct.pack("<I", riff_bytes) + b"WAVE"
    return riff + b"fmt " + struct.pack("<I", 16) + fmt + b"data" + struct.pack("<I", data_bytes)
