"""How long a call of Qwen3-TTS's code2wav takes, by its size: `python -m benchmarks.gpu.codec`.

The real size with random weights, without a talker or a server. Prints for each size the median
milliseconds of `--calls` calls, and audio seconds per second. `--device cpu` computes with one
thread.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import torch

from benchmarks.gpu.sizes import SPEECH_TOKENIZER
from stages.contract.messages import OUTPUT_RATE_HZ
from stages.kernels.cuda_graphs import CudaCapture
from stages.kernels.device import pick_dtype
from stages.models.qwen3_tts.code2wav.batch_decoder import CALL_FRAMES, BatchDecoder
from stages.models.qwen3_tts.code2wav.decoder import Decoder
from stages.models.qwen3_tts.code2wav.model_config import CodecConfig

STREAMS = (1, 2, 4, 8, 16, 32, 64)


class RandomWeights:
    """Stands for any checkpoint: gives a random tensor of the shape that was last checked."""

    def check(self, name, *shape):
        self._shape = shape

    def __getitem__(self, name):
        scale = 0.3 if len(self._shape) == 1 else math.prod(self._shape[1:]) ** -0.5
        return torch.randn(self._shape) * scale

    def __iter__(self):
        return iter(())


def real_config():
    """The sizes of the public checkpoints."""
    sizes = SPEECH_TOKENIZER["decoder_config"]
    names = CodecConfig.__dataclass_fields__.keys() & sizes.keys()
    values = {name: sizes[name] for name in names}
    for name in ("upsampling_ratios", "upsample_rates"):
        values[name] = tuple(values[name])
    return CodecConfig(**values)


def call_s(batch_decoder, num_streams, num_frames, num_calls):
    """The median seconds of some calls, each for the next frames of the same streams."""
    streams = [batch_decoder.new_stream() for _ in range(num_streams)]
    codes = [torch.randint(0, 2048, (num_frames, 16), device=batch_decoder.device) for _ in streams]
    times_s = []
    for _ in range(num_calls + 2):
        begin_s = time.perf_counter()
        batch_decoder.decode(streams, codes)  # ends when the samples are on the host
        times_s.append(time.perf_counter() - begin_s)
    return statistics.median(times_s[2:])


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser("benchmarks.gpu.codec")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--calls", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    device, config = torch.device(options.device), real_config()
    decoder = Decoder(config, RandomWeights(), device, pick_dtype(options.dtype))
    batch_decoder = BatchDecoder(decoder, CudaCapture(device) if device.type == "cuda" else None)
    begin_s = time.perf_counter()
    batch_decoder.warm()
    print(
        f"warm in {time.perf_counter() - begin_s:.1f} s; a stream keeps {decoder.state_size} values"
    )
    for num_frames in CALL_FRAMES:
        for num_streams in STREAMS:
            if num_streams > batch_decoder.max_streams(num_frames):
                continue
            took_s = call_s(batch_decoder, num_streams, num_frames, options.calls)
            audio_s = num_streams * num_frames * config.hop / OUTPUT_RATE_HZ
            print(
                f"{num_streams:2} streams, {num_frames} frames: {1000 * took_s:7.2f} ms,"
                f" {audio_s / took_s:7.1f} audio s/s",
                flush=True,
            )


if __name__ == "__main__":
    main()
