"""What a call of code2wav takes in float32, with TF32 products and in bfloat16, of the real size.

On a CPU only one call in float32 is measured. What is captured is kept for the part `together`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from benchmarks.gpu.codec import RandomWeights, call_s, real_config
from benchmarks.gpu.first_run import cudnn_attention, rounded_ms, tf32_products
from stages.models.qwen3_tts.code2wav.batch_decoder import BatchDecoder
from stages.models.qwen3_tts.code2wav.decoder import Decoder

if TYPE_CHECKING:
    from benchmarks.gpu.first_run import Run

FRAME_S = 0.08
CALLS = ((1, 1), (8, 1), (64, 1), (64, 4), (32, 8))  # streams, frames of each
KINDS = {  # the decoder's type, and whether its products are in TF32
    "float32": (torch.float32, False),
    "tf32": (torch.float32, True),
    "bfloat16": (torch.bfloat16, False),
}


def measure(run: Run) -> None:
    """Measure each kind, and keep it."""
    for kind in KINDS if run.on_gpu else ("float32",):
        dtype, tf32 = KINDS[kind]
        with cudnn_attention(False), tf32_products(tf32):
            batch_decoder = new_batch_decoder(run, kind, dtype)
            record_calls(run, kind, batch_decoder)
        run.codecs[kind] = batch_decoder


def new_batch_decoder(run: Run, kind: str, dtype: torch.dtype) -> BatchDecoder:
    """A decoder with its graphs captured; records how long that took."""
    decoder = Decoder(real_config(), RandomWeights(), run.device, dtype)
    capture = run.capture()
    batch_decoder = BatchDecoder(decoder, capture)
    begin_s = time.perf_counter()
    if capture is not None:
        batch_decoder.warm()
        run.sync()
    num_graphs = capture.num_graphs if capture else 0
    took_s = round(time.perf_counter() - begin_s, 2)
    run.record(f"codec {kind}", {"capture_s": took_s, "num_graphs": num_graphs})
    return batch_decoder


def record_calls(run: Run, kind: str, batch_decoder: BatchDecoder) -> None:
    """Milliseconds of calls by their size, and the audio that they make."""
    for num_streams, num_frames in CALLS if run.on_gpu else CALLS[:1]:
        took_s = call_s(batch_decoder, num_streams, num_frames, 10 if run.on_gpu else 1)
        audio_s = num_streams * num_frames * FRAME_S
        cost = {"call_ms": rounded_ms(took_s), "audio_s_per_s": round(audio_s / took_s, 1)}
        run.record(f"codec {kind}, {num_streams} x {num_frames}", cost)
