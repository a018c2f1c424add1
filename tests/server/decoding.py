"""Decodes audio files to samples, with the library that players use."""

import io

import av
import numpy as np


def decode(file, container=None):
    """Decode a file of any format to int16, 24 kHz, mono. `container` s16le means raw samples."""
    options = {"sample_rate": "24000", "ch_layout": "mono"} if container == "s16le" else {}
    resampler = av.AudioResampler("s16", "mono", 24_000)
    pieces = []
    with av.open(io.BytesIO(file), format=container, options=options) as opened:
        assert opened.streams.audio[0].channels == 1
        for frame in (*opened.decode(audio=0), None):
            pieces += [out.to_ndarray()[0] for out in resampler.resample(frame)]
    return np.concatenate([*pieces, np.zeros(0, np.int16)])


def seconds(file, container=None):
    """How many seconds a file plays."""
    return len(decode(file, container)) / 24_000
