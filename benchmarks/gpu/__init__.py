"""Qwen3-TTS of the real sizes on a GPU: `python -m benchmarks.gpu`."""
