"""Files of sound back into samples, by the library that players use."""

import io

import av
import numpy as np


def decode(file, container=None):
    """int16 at 24 kHz, mono, of a file in any format; raw samples where `container` is s16le."""
    options = {"sample_rate": "24000", "ch_layout": "mono"} if container == "s16le" else {}
    resampler = av.AudioResampler("s16", "mono", 24_000)
    pieces = []
    with av.open(io.BytesIO(file), format=container, options=options) as opened:
        assert opened.streams.audio[0].channels == 1
        for frame in (*opened.decode(audio=0), None):
            pieces += [out.to_ndarray()[0] for out in resampler.resample(frame)]
    return np.concatenate([*pieces, np.zeros(0, np.int16)])


def seconds(file, container=None):
    """How long it plays."""
    return len(decode(file, container)) / 24_000
